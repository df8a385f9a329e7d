//! RDMA devices.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;

const DEVICES: &str = "/sys/class/infiniband";

/// RDMA devices as the kernel reports them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RdmaDevices {
    /// RDMA devices.
    pub devices: Fact<Vec<Device>>,
    /// Device nodes in /dev/infiniband.
    pub nodes: Fact<Vec<String>>,
}

/// An RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Device {
    /// Name of the device.
    pub name: String,
    /// Kernel driver of the NIC; absent for a software device.
    pub driver: Fact<String>,
    /// Name of its verbs device for user space, such as `uverbs0`; absent if the kernel created none.
    pub verbs: Fact<String>,
    /// Ports of the device.
    pub ports: Fact<Vec<Port>>,
}

/// A port of an RDMA device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Port {
    /// Port number, from 1.
    pub number: String,
    /// Port state: `ACTIVE`, `DOWN`, `INIT` …
    pub state: Fact<String>,
    /// Link layer: `InfiniBand` or `Ethernet`.
    pub link_layer: Fact<String>,
    /// Link rate, such as `400 Gb/sec (4X NDR)`.
    pub rate: Fact<String>,
    /// Network interface of the port.
    pub interface: Fact<String>,
    /// Number of used entries in the GID table.
    pub gids: Fact<usize>,
}

impl RdmaDevices {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let device = |name: String| {
            let at = format!("{DEVICES}/{name}");
            let ports = tree.names(&format!("{at}/ports"));
            Device {
                driver: tree.link_name(&format!("{at}/device/driver")),
                verbs: verbs(&name, tree),
                ports: ports.map(|numbers| numbers.into_iter().map(|number| port(&at, number, tree)).collect()),
                name,
            }
        };
        Self {
            devices: tree.names(DEVICES).map(|names| names.into_iter().map(device).collect()),
            nodes: tree.names("/dev/infiniband"),
        }
    }
}

/// The verbs device whose `ibdev` names this device.
fn verbs(device: &str, tree: &HostTree) -> Fact<String> {
    const CLASS: &str = "/sys/class/infiniband_verbs";
    tree.names(CLASS).and_then(|names, _| {
        let is_its = |name: &String| tree.text(&format!("{CLASS}/{name}/ibdev")).value().is_some_and(|of| of == device);
        names.into_iter().find(is_its).into()
    })
}

fn port(device: &str, number: String, tree: &HostTree) -> Port {
    let at = format!("{device}/ports/{number}");
    let read = |name: &str| tree.text(&format!("{at}/{name}"));
    let by_table = || read("gid_attrs/ndevs/0");
    let by_card = tree.names(&format!("{device}/device/net")).and_then(|names, _| match names.as_slice() {
        [name] => Fact::known(name.clone()),
        // A NIC with several ports lists the interfaces of all.
        _ => Fact::Absent,
    });
    Port {
        // `4: ACTIVE`.
        state: read("state").map(|text| text.split(' ').next_back().unwrap_or_default().to_owned()),
        link_layer: read("link_layer"),
        rate: read("rate"),
        interface: by_card.or_else(by_table),
        gids: tree.names(&format!("{at}/gids")).map(|names| names.iter().filter(|name| is_used(&at, name, tree)).count()),
        number,
    }
}

/// Returns true for a used GID. An unused entry is all zeros, or cannot be read.
fn is_used(port: &str, index: &str, tree: &HostTree) -> bool {
    let gid = tree.text(&format!("{port}/gids/{index}"));
    gid.value().is_some_and(|gid| gid.bytes().any(|byte| !matches!(byte, b'0' | b':')))
}
