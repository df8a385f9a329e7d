//! GPUs as the PCI bus tells of them, and what stands between them and other devices.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::{HostTree, pci_config};

const DEVICES: &str = "/sys/bus/pci/devices";
const NVIDIA: &str = "0x10de";

/// What the PCI bus tells.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Pci {
    /// NVIDIA's GPUs.
    pub gpus: Fact<Vec<PciGpu>>,
}

/// A GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct PciGpu {
    /// Its address.
    pub address: String,
    /// The kernel driver that has it.
    pub driver: Fact<String>,
    /// How the IOMMU treats it: `identity`, or `DMA` and `DMA-FQ` where it translates; absent without an IOMMU.
    pub iommu: Fact<String>,
    /// Ports of PCIe switches above it that send what devices write to each other up to the root.
    pub redirecting_ports: Fact<Vec<String>>,
}

impl Pci {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let gpu = |address: &str| PciGpu {
            address: address.to_owned(),
            driver: driver(tree, address),
            iommu: iommu(address, tree),
            redirecting_ports: redirecting(address, tree),
        };
        // Display controllers, class 3: VGA (00) and 3D (02).
        let gpus = nvidia(tree, "0x03");
        Self { gpus: gpus.map(|addresses| addresses.iter().map(|address| gpu(address)).collect()) }
    }
}

/// Addresses of NVIDIA's devices whose class begins so.
pub(super) fn nvidia(tree: &HostTree, class: &str) -> Fact<Vec<String>> {
    let read = |address: &str, file: &str| tree.text(&format!("{DEVICES}/{address}/{file}"));
    tree.names(DEVICES).map(|addresses| {
        let is_wanted = |address: &String| {
            let of = |file: &str, start: &str| read(address, file).value().is_some_and(|text| text.starts_with(start));
            of("vendor", NVIDIA) && of("class", class)
        };
        addresses.into_iter().filter(is_wanted).collect()
    })
}

/// The kernel driver of a device.
pub(super) fn driver(tree: &HostTree, address: &str) -> Fact<String> {
    tree.link_name(&format!("{DEVICES}/{address}/driver"))
}

fn iommu(address: &str, tree: &HostTree) -> Fact<String> {
    tree.link_name(&format!("{DEVICES}/{address}/iommu_group")).and_then(|group, _| {
        let path = format!("/sys/kernel/iommu_groups/{group}/type");
        tree.text(&path).or_else(|| Fact::unknown(format!("this kernel has no {path}")))
    })
}

/// The bridges above a device are the folders above it: `../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/…`.
fn redirecting(address: &str, tree: &HostTree) -> Fact<Vec<String>> {
    tree.link(&format!("{DEVICES}/{address}")).and_then(|path, _| {
        let above = path.split('/').filter(|part| *part != address && part.matches(':').count() == 2);
        let mut found = Vec::new();
        for bridge in above {
            let config = tree.bytes(&format!("{DEVICES}/{bridge}/config"));
            let Fact::Seen { value: config, .. } = config else { return config.map(|_| Vec::new()) };
            match pci_config::redirects(&config) {
                Some(true) => found.push(bridge.to_owned()),
                Some(false) => {}
                None if config.len() <= pci_config::PUBLIC => {
                    return Fact::unknown(format!("only root may read all of {DEVICES}/{bridge}/config"));
                }
                None => return Fact::unknown(format!("{DEVICES}/{bridge}/config ends after {} bytes", config.len())),
            }
        }
        Fact::known(found)
    })
}
