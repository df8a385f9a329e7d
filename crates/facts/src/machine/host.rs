//! Hosts as users describe them: machines that an image is to run on.

use std::fmt;

use model::{Arch, Version};

use crate::words::{Class, Fabric, Nic};

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

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
