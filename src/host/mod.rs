//! What a machine says of itself, without a GPU's being needed and without running anything: read from `/proc`, `/sys`, `/etc`
//! and `/dev`, and from NVIDIA's management library where that is there.
//!
//! Each subject is a file of this folder and a line of the list below: a type that is [collected](Record::collect) from a
//! [`Tree`], which may be a recorded one. Every single item is known, absent, or unknown with its reason.

mod description;
mod file;
mod models;
mod parse;
mod pci_config;
mod processes;
mod tree;

use serde::{Deserialize, Serialize};

pub use parse::HostError;
pub use tree::HostTree;

/// Declares the subjects of a record, in the order of its page.
macro_rules! subjects {
    ($($(#[doc = $about:literal])+ $name:ident: $kind:ident;)*) => {
        $(pub mod $name;)*

        /// What was read of one machine at one time.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Record {
            /// The form of this record.
            pub schema: RecordSchema,
            $($(#[doc = $about])+ #[serde(default)] pub $name: $name::$kind,)*
        }

        impl Record {
            /// What the files of a machine tell. NVIDIA's management library is not asked, which speaks for the running
            /// machine alone.
            pub fn collect(tree: &HostTree) -> Self {
                Self { schema: RecordSchema::Version1, $($name: $name::$kind::collect(tree),)* }
            }
        }
    };
}

subjects! {
    /// The operating system, and whether the machine is a virtual one.
    system: OperatingSystem;
    /// NVIDIA's kernel driver.
    driver: KernelDriver;
    /// GPUs as the driver tells of them.
    gpus: DriverGpus;
    /// GPUs as the PCI bus tells of them, and what stands between them and other devices.
    pci: Pci;
    /// NVSwitches and what manages them, and memory shared between machines.
    fabric: Fabric;
    /// Kernel modules for GPUs and RDMA.
    modules: Modules;
    /// RDMA devices.
    rdma: RdmaDevices;
    /// Network interfaces.
    network: Network;
    /// Memory, and the nodes that it belongs to.
    memory: HostMemory;
    /// Limits of this process, which what it starts inherits.
    limits: ResourceLimits;
    /// Container engines and what they give to every container.
    containers: Containers;
    /// Specifications of the Container Device Interface.
    cdi: Cdi;
    /// Settings of the kernel and of systemd.
    settings: KernelSettings;
}

/// Forms of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum RecordSchema {
    /// The first.
    #[serde(rename = "ncclcheck-host/1")]
    Version1,
}

impl Record {
    /// What this machine tells now.
    pub fn here() -> Self {
        let mut record = Self::collect(&HostTree::new("/"));
        record.gpus.ask();
        record
    }
}

#[cfg(test)]
mod tests;
