//! RDMA devices.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::HostTree;

const DEVICES: &str = "/sys/class/infiniband";

/// What the kernel tells of RDMA.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct RdmaDevices {
    /// The devices.
    pub devices: Fact<Vec<Device>>,
    /// Nodes in /dev/infiniband.
    pub nodes: Fact<Vec<String>>,
}

/// A device.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Device {
    /// Its name.
    pub name: String,
    /// The kernel driver of the card; absent for one in software.
    pub driver: Fact<String>,
    /// Name of its interface for user space, `uverbs0`; absent where the kernel gives it none.
    pub verbs: Fact<String>,
    /// Its ports.
    pub ports: Fact<Vec<Port>>,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Port {
    /// Its number, from 1.
    pub number: String,
    /// `ACTIVE`, `DOWN`, `INIT` …
    pub state: Fact<String>,
    /// `InfiniBand` or `Ethernet`.
    pub link_layer: Fact<String>,
    /// `400 Gb/sec (4X NDR)`.
    pub rate: Fact<String>,
    /// The network interface of the same port.
    pub interface: Fact<String>,
    /// Entries of its table of addresses that are in use.
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

/// The interface for user space that says that it is of this device.
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
        // A card of several ports lists the interfaces of all.
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

/// An entry that is not in use is all zeros, or cannot be read.
fn is_used(port: &str, index: &str, tree: &HostTree) -> bool {
    let gid = tree.text(&format!("{port}/gids/{index}"));
    gid.value().is_some_and(|gid| gid.bytes().any(|byte| !matches!(byte, b'0' | b':')))
}
