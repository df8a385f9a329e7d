//! Hosts as users describe them: machines that an image is to run on.

use std::fmt;

use serde::Deserialize;

use model::{Arch, Version};

/// A described machine. A property that the description leaves out is `None`, and nothing is concluded from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Name in reports.
    pub name: String,
    /// Version of the NVIDIA driver, as `nvidia-smi` shows it.
    pub driver: Option<Version>,
    /// CUDA release that the driver supports, if the user overrides the one derived from the driver's version.
    pub cuda: Option<Version>,
    /// GPUs, all of one model.
    pub gpu: Option<Gpu>,
    /// Interconnect of the GPUs.
    pub fabric: Option<Fabric>,
    /// NICs for RDMA.
    pub rdma: Option<Nic>,
    /// Version of the Linux kernel.
    pub kernel: Option<Version>,
}

/// GPUs of one model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// The model as the user wrote it.
    pub name: String,
    /// Architecture.
    pub arch: Arch,
    /// Market segment; `None` if only the architecture was given.
    pub class: Option<Class>,
    /// Number of GPUs.
    pub count: Option<u16>,
}

/// Market segment of a GPU. CUDA forward compatibility supports data-centre GPUs (CUDA Compatibility, "Forward
/// Compatibility").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Data centres.
    DataCenter,
    /// Workstations.
    Workstation,
    /// Consumer graphics (GeForce).
    Consumer,
}

impl Class {
    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::DataCenter => "datacenter",
            Self::Workstation => "workstation",
            Self::Consumer => "consumer",
        }
    }
}

/// Declares an enumeration with the names that users write.
macro_rules! names {
    ($(#[doc = $about:literal])+ $kind:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)* }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind {
            $($(#[doc = $meaning])+ $variant,)*
        }

        impl $kind {
            /// All names.
            pub const NAMES: &[&str] = &[$($name),*];

            /// Returns the name, as users write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// Returns the variant with this name.
            pub fn parse(text: &str) -> Option<Self> {
                match text {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

names! {
    /// Interconnect of the GPUs of a host.
    Fabric {
        /// NVLink through NVSwitch, all to all.
        NvSwitch = "nvswitch",
        /// PCI Express alone.
        Pcie = "pcie",
    }
}

names! {
    /// NICs for RDMA, by their user-space provider.
    Nic {
        /// NVIDIA ConnectX and BlueField.
        Mlx5 = "mlx5",
        /// AWS Elastic Fabric Adapter.
        Efa = "efa",
        /// No RDMA NIC.
        Nothing = "none",
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
