//! Hosts in the JSON report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use facts::machine::{Fabric, Gpu, Host, Nic};
use model::Version;

/// A host as the user described it. Omitted values are null.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Host")]
pub(super) struct HostJson {
    /// Name of the host.
    name: String,
    /// Version of the NVIDIA driver.
    driver: Option<String>,
    /// CUDA release of the driver.
    cuda: Option<String>,
    /// Model of the GPUs.
    gpu: Option<String>,
    /// Architecture of the GPUs, as sm_90.
    gpu_arch: Option<String>,
    /// Number of GPUs.
    gpu_count: Option<u16>,
    /// GPU interconnect: nvswitch or pcie.
    fabric: Option<String>,
    /// RDMA NICs: mlx5, efa or none.
    rdma: Option<String>,
    /// Version of the Linux kernel.
    kernel: Option<String>,
}

impl From<&Host> for HostJson {
    fn from(host: &Host) -> Self {
        let version = |version: &Option<Version>| version.as_ref().map(ToString::to_string);
        let gpu = host.gpu.as_ref();
        Self {
            name: host.name.clone(),
            driver: version(&host.driver),
            cuda: version(&host.cuda),
            gpu: gpu.map(|gpu| gpu.name.clone()),
            gpu_arch: gpu.map(|gpu| format!("sm_{}", gpu.arch)),
            gpu_count: gpu.and_then(|gpu| gpu.count),
            fabric: host.fabric.map(|fabric| fabric.name().to_owned()),
            rdma: host.rdma.map(|rdma| rdma.name().to_owned()),
            kernel: version(&host.kernel),
        }
    }
}

/// The host, as far as reports have it.
impl From<HostJson> for Host {
    fn from(host: HostJson) -> Self {
        let version = |text: Option<String>| text.as_deref().and_then(Version::parse);
        let arch = host.gpu_arch.and_then(|arch| arch.parse().ok());
        let gpu = host.gpu.zip(arch).map(|(name, arch)| Gpu { name, arch, class: None, count: host.gpu_count });
        Self {
            name: host.name,
            driver: version(host.driver),
            cuda: version(host.cuda),
            gpu,
            fabric: host.fabric.as_deref().and_then(Fabric::parse),
            rdma: host.rdma.as_deref().and_then(Nic::parse),
            kernel: version(host.kernel),
        }
    }
}
