//! GPUs on the PCI bus, and what redirects their peer-to-peer traffic: the IOMMU and ACS.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::{HostTree, pci_config};

const DEVICES: &str = "/sys/bus/pci/devices";
const NVIDIA: &str = "0x10de";

/// Devices on the PCI bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pci {
    /// NVIDIA GPUs.
    pub gpus: Fact<Vec<PciGpu>>,
}

/// A GPU on the PCI bus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PciGpu {
    /// PCI address.
    pub address: String,
    /// Kernel driver that the GPU is bound to.
    pub driver: Fact<String>,
    /// Type of the GPU's IOMMU domain: `identity`, or `DMA` or `DMA-FQ` if the IOMMU translates; absent without an
    /// IOMMU.
    pub iommu: Fact<String>,
    /// Upstream PCIe switch ports where ACS redirects peer-to-peer traffic to the root complex.
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

/// Addresses of NVIDIA devices whose class begins with `class`.
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

/// Kernel driver that a device is bound to.
pub(super) fn driver(tree: &HostTree, address: &str) -> Fact<String> {
    tree.link_name(&format!("{DEVICES}/{address}/driver"))
}

fn iommu(address: &str, tree: &HostTree) -> Fact<String> {
    tree.link_name(&format!("{DEVICES}/{address}/iommu_group")).and_then(|group, _| {
        let path = format!("/sys/kernel/iommu_groups/{group}/type");
        tree.text(&path).or_else(|| Fact::unknown(format!("this kernel has no {path}")))
    })
}

/// Switch ports above a device that redirect. The folders above a device are its bridges:
/// `../../../devices/pci0000:15/0000:15:01.0/0000:16:00.0/…`.
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
