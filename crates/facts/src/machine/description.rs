//! Conversion of a record to the description that `--host` takes.

use crate::machine::{Fabric, Gpu, Host, Nic};
use model::{Arch, Fact, Variant, Version};

use super::{Record, gpus};

impl Record {
    /// The machine as a user would describe it, without what is unknown.
    pub fn host(&self) -> Host {
        Host {
            name: self.system.name.value().cloned().unwrap_or_else(|| "recorded host".to_owned()),
            driver: self.driver.version.value().and_then(|version| Version::parse(version)),
            cuda: self.gpus.cuda.value().and_then(|version| Version::parse(version)),
            gpu: self.gpu().value().cloned(),
            fabric: self.fabric.nvswitches.value().map(|_| Fabric::NvSwitch),
            rdma: self.nic().value().copied(),
            kernel: self.system.kernel.value().and_then(|version| Version::parse(version)),
        }
    }

    /// The GPUs of the machine, if all are of one model.
    pub fn gpu(&self) -> Fact<Gpu> {
        let several = "the host has GPUs of several models, which cannot be judged together";
        self.gpus.list.as_ref().and_then(|gpus, _| {
            let Some(first) = gpus.first() else { return Fact::Absent };
            if gpus.iter().any(|gpu| gpu.model != first.model) {
                return Fact::unknown(several);
            }
            let count = u16::try_from(gpus.len()).ok();
            first.model.as_ref().and_then(|model, _| {
                let gpu = Gpu::of_model(model, arch(first));
                gpu.map_or_else(
                    || Fact::unknown(format!("unknown GPU model '{model}': no architecture is recorded for it")),
                    |gpu| Fact::known(Gpu { count, ..gpu }),
                )
            })
        })
    }

    /// The RDMA NICs of the machine; absent if [`Nic`] has no name for their kind.
    pub fn nic(&self) -> Fact<Nic> {
        let devices = match self.rdma.devices.as_ref() {
            Fact::Seen { .. } => self.fabric_devices().collect::<Vec<_>>(),
            Fact::Absent => Vec::new(),
            Fact::Unknown(why) => return Fact::Unknown(why),
        };
        let has = |driver: &str| devices.iter().any(|device| device.driver.value().is_some_and(|of| of == driver));
        match () {
            () if devices.is_empty() => Fact::known(Nic::Nothing),
            () if has("mlx5_core") => Fact::known(Nic::Mlx5),
            () if has("efa") => Fact::known(Nic::Efa),
            () => Fact::Absent,
        }
    }

    /// RDMA devices, without those that Azure gives to every virtual machine to accelerate its Ethernet: the interface
    /// of such a device belongs to a synthetic one of the hypervisor (hv_netvsc), and it reaches no other machine by
    /// RDMA.
    pub fn fabric_devices(&self) -> impl Iterator<Item = &super::rdma::Device> {
        let interfaces = self.network.interfaces.value().map(Vec::as_slice).unwrap_or_default();
        let find = |name: &String| interfaces.iter().find(|interface| interface.name == *name);
        let is_accelerator = move |device: &&super::rdma::Device| {
            let ports = device.ports.value().map(Vec::as_slice).unwrap_or_default();
            ports.iter().any(|port| {
                let master = port.interface.value().and_then(find).and_then(|interface| interface.master.value());
                let driver = master.and_then(find).and_then(|master| master.driver.value());
                driver.is_some_and(|driver| driver == "hv_netvsc")
            })
        };
        let devices = self.rdma.devices.value().map(Vec::as_slice).unwrap_or_default();
        devices.iter().filter(move |device| !is_accelerator(device))
    }
}

fn arch(gpu: &gpus::DriverGpu) -> Option<Arch> {
    let (major, minor) = gpu.capability.value()?.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Arch::new(major.checked_mul(10)?.checked_add(minor)?, Variant::Plain)
}
