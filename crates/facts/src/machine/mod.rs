//! Inventory of a machine: read from `/proc`, `/sys`, `/etc` and `/dev`, and from NVML if the driver is installed.
//! Nothing is run, and no GPU is required.
//!
//! Each subject is a module of this folder and a line of the list below: a type that is [collected](Record::collect)
//! from a [`HostTree`], which may be a recorded one. Each item is known, absent, or unknown with its reason.

mod description;
mod host;
mod logind;
pub(crate) mod models;
mod parse;
mod pci_config;
mod processes;
mod subordinate;
mod tree;

use serde::{Deserialize, Serialize};

use model::document::{Document, DocumentError, to_yaml};

pub use crate::words::{Class, Fabric, Nic};
pub use host::{Gpu, Host};
pub use tree::HostTree;

/// Declares the subjects of a record, in the order of the report.
macro_rules! subjects {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ident;)*) => {
        $(pub mod $name;)*

        /// Inventory of one machine at one time.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Record {
            /// Version of the record's schema.
            pub schema: RecordSchema,
            $($(#[doc = $about])+ #[serde(default)] pub $name: $name::$kind,)*
        }

        impl Record {
            /// Collects a record from the files of a machine, without NVML, which only describes the running machine.
            pub fn collect(tree: &HostTree) -> Self {
                Self { schema: RecordSchema::Version1, $($name: $name::$kind::collect(tree),)* }
            }
        }
    };
}

subjects! {
    /// Operating system and virtualization.
    system: OperatingSystem;
    /// NVIDIA's kernel driver.
    driver: KernelDriver;
    /// GPUs as the driver reports them.
    gpus: DriverGpus;
    /// GPUs on the PCI bus, and what redirects their peer-to-peer traffic: the IOMMU and ACS.
    pci: Pci;
    /// NVSwitches, Fabric Manager, and memory shared between machines (IMEX).
    fabric: Fabric;
    /// Kernel modules for GPUs and RDMA.
    modules: Modules;
    /// RDMA devices.
    rdma: RdmaDevices;
    /// Network interfaces.
    network: Network;
    /// Memory and NUMA nodes.
    memory: HostMemory;
    /// Resource limits of this process, which its children inherit.
    limits: ResourceLimits;
    /// Control groups, by which engines limit containers.
    cgroups: ControlGroups;
    /// Container engines and their defaults for containers.
    containers: Containers;
    /// Specifications of the Container Device Interface (CDI).
    cdi: Cdi;
    /// Kernel parameters and systemd settings.
    settings: KernelSettings;
}

/// Versions of the record's schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RecordSchema {
    /// The first version.
    #[serde(rename = "ncclcheck-host/1")]
    Version1,
}

impl Record {
    /// Returns true for the text of a record of any version.
    pub fn is_one(text: &str) -> bool {
        text.contains("ncclcheck-host/")
    }

    /// Collects a record of this machine, including NVML's values.
    pub fn here() -> Self {
        let mut record = Self::collect(&HostTree::new("/"));
        record.gpus.ask();
        record
    }

    /// Parses a record in JSON or YAML.
    pub fn parse(document: Document<'_>) -> Result<Self, DocumentError> {
        // YAML is a superset of JSON.
        document.parse()
    }

    /// Serializes the record to YAML.
    ///
    /// # Errors
    ///
    /// Fails if YAML cannot represent the record.
    pub fn to_yaml(&self) -> Result<String, String> {
        to_yaml(self)
    }
}

#[cfg(test)]
mod tests;
