//! Hosts as users describe them: machines that are not here, and that an image shall run on.

use std::fmt;

use serde::Deserialize;

use super::{Arch, Version};

/// A machine. What was not said of it is `None`, and nothing is concluded from that.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Host {
    /// What reports call it.
    pub name: String,
    /// Version of the NVIDIA driver, as `nvidia-smi` shows it.
    pub driver: Option<Version>,
    /// The CUDA release that the driver brings, where the user knows better than the driver's version tells.
    pub cuda: Option<Version>,
    /// Its GPUs, all of one model.
    pub gpu: Option<Gpu>,
    /// What connects its GPUs.
    pub fabric: Option<Fabric>,
    /// Its NICs for RDMA.
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
    /// Market that it is made for; not known where only the architecture was given.
    pub class: Option<Class>,
    /// How many.
    pub count: Option<u16>,
}

/// The market that a GPU is made for. Forward compatibility of CUDA is for data centres (CUDA Compatibility, "Forward
/// Compatibility").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Data centres.
    DataCenter,
    /// Workstations.
    Workstation,
    /// Games.
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

/// Declares an enumeration of names that users write.
macro_rules! names {
    ($(#[doc = $about:literal])+ $kind:ident { $($(#[doc = $meaning:literal])+ $variant:ident = $name:literal,)* }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $kind {
            $($(#[doc = $meaning])+ $variant,)*
        }

        impl $kind {
            /// All names.
            pub(crate) const NAMES: &[&str] = &[$($name),*];

            /// The name, as users write it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// The variant of a name.
            pub(crate) fn parse(text: &str) -> Option<Self> {
                match text {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

names! {
    /// What connects the GPUs of a host.
    Fabric {
        /// NVLink through NVSwitch, each with each.
        NvSwitch = "nvswitch",
        /// PCI Express alone.
        Pcie = "pcie",
    }
}

names! {
    /// NICs for RDMA, by the provider that drives them in user space.
    Nic {
        /// ConnectX and BlueField of NVIDIA.
        Mlx5 = "mlx5",
        /// Elastic Fabric Adapter of AWS.
        Efa = "efa",
        /// None.
        Nothing = "none",
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
