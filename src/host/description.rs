//! A recorded machine in the words of `--host`.

use crate::model::{Arch, Fabric, Gpu, Host, Nic, Variant, Version};

use super::{Item, Record, gpus};

impl Record {
    /// The machine as one would describe it. What is not known is left out, as what was not said.
    pub fn host(&self) -> Host {
        Host {
            name: self.system.name.known().cloned().unwrap_or_else(|| "recorded host".to_owned()),
            driver: self.driver.version.known().and_then(|version| Version::parse(version)),
            cuda: self.gpus.cuda.known().and_then(|version| Version::parse(version)),
            gpu: self.gpu().known().cloned(),
            fabric: self.fabric.nvswitches.known().map(|_| Fabric::NvSwitch),
            rdma: self.nic().known().copied(),
            kernel: self.system.kernel.known().and_then(|version| Version::parse(version)),
        }
    }

    /// Its GPUs, if they are all of one model.
    pub fn gpu(&self) -> Item<Gpu> {
        let several = "its GPUs are of several models, and are not judged together";
        self.gpus.list.as_ref().and_then(|gpus| {
            let Some(first) = gpus.first() else { return Item::Absent };
            if gpus.iter().any(|gpu| gpu.model != first.model) {
                return Item::unknown(several);
            }
            let count = u16::try_from(gpus.len()).ok();
            first.model.as_ref().and_then(|model| {
                let gpu = Gpu::of_model(model, arch(first));
                gpu.map_or_else(
                    || Item::unknown(format!("which architecture '{model}' has is not known here")),
                    |gpu| Item::Known(Gpu { count, ..gpu }),
                )
            })
        })
    }

    /// Its NICs for RDMA; absent where they are of a kind that has no name here.
    pub fn nic(&self) -> Item<Nic> {
        let devices = match self.rdma.devices.as_ref() {
            Item::Known(_) => self.fabric_devices().collect::<Vec<_>>(),
            Item::Absent => Vec::new(),
            Item::Unknown(why) => return Item::Unknown(why),
        };
        let has = |driver: &str| devices.iter().any(|device| device.driver.known().is_some_and(|of| of == driver));
        match () {
            () if devices.is_empty() => Item::Known(Nic::Nothing),
            () if has("mlx5_core") => Item::Known(Nic::Mlx5),
            () if has("efa") => Item::Known(Nic::Efa),
            () => Item::Absent,
        }
    }

    /// Its RDMA devices, without those that Azure gives to every virtual machine for the sake of its Ethernet: their interface
    /// belongs to one of the host's making (hv_netvsc), and they reach no other machine by RDMA.
    pub fn fabric_devices(&self) -> impl Iterator<Item = &super::rdma::Device> {
        let interfaces = self.network.interfaces.known().map(Vec::as_slice).unwrap_or_default();
        let find = |name: &String| interfaces.iter().find(|interface| interface.name == *name);
        let is_accelerator = move |device: &&super::rdma::Device| {
            let ports = device.ports.known().map(Vec::as_slice).unwrap_or_default();
            ports.iter().any(|port| {
                let master = port.interface.known().and_then(find).and_then(|interface| interface.master.known());
                let driver = master.and_then(find).and_then(|master| master.driver.known());
                driver.is_some_and(|driver| driver == "hv_netvsc")
            })
        };
        let devices = self.rdma.devices.known().map(Vec::as_slice).unwrap_or_default();
        devices.iter().filter(move |device| !is_accelerator(device))
    }
}

fn arch(gpu: &gpus::Gpu) -> Option<Arch> {
    let (major, minor) = gpu.capability.known()?.split_once('.')?;
    let (major, minor): (u32, u32) = (major.parse().ok()?, minor.parse().ok()?);
    Arch::new(major.checked_mul(10)?.checked_add(minor)?, Variant::Plain)
}
