//! Network interfaces.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;

const INTERFACES: &str = "/sys/class/net";

/// Network configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Network {
    /// Network interfaces.
    pub interfaces: Fact<Vec<Interface>>,
}

/// A network interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Interface {
    /// Name of the interface.
    pub name: String,
    /// Operational state: `up`, `down`, `unknown` (of a loopback) …
    pub state: Fact<String>,
    /// MTU in bytes.
    pub mtu: Fact<u32>,
    /// Speed in Mb/s; absent for an interface that is down or virtual.
    pub speed: Fact<u32>,
    /// Ethernet, InfiniBand, loopback, or the number of another type (ARPHRD_*, linux/if_arp.h).
    pub kind: Fact<String>,
    /// Kernel driver of the NIC; absent for a virtual interface.
    pub driver: Fact<String>,
    /// Interface that this one is enslaved to: a bond, a bridge, or the synthetic interface of a virtual machine.
    pub master: Fact<String>,
}

impl Network {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let interface = |name: String| {
            let at = format!("{INTERFACES}/{name}");
            let state = tree.text(&format!("{at}/operstate"));
            Interface {
                speed: speed(&at, &state, tree),
                mtu: tree.parsed(&format!("{at}/mtu")),
                kind: tree.text(&format!("{at}/type")).map(|number| kind(&number)),
                driver: tree.link_name(&format!("{at}/device/driver")),
                master: tree.link_name(&format!("{at}/master")),
                state,
                name,
            }
        };
        Self { interfaces: tree.names(INTERFACES).map(|names| names.into_iter().map(interface).collect()) }
    }
}

/// Speed in Mb/s. The kernel refuses to read it while an interface is down, and reports -1 if it is unknown.
fn speed(at: &str, state: &Fact<String>, tree: &HostTree) -> Fact<u32> {
    if state.value().is_some_and(|state| state != "up") {
        return Fact::Absent;
    }
    match tree.parsed::<i64>(&format!("{at}/speed")) {
        Fact::Seen { value: speed, .. } => u32::try_from(speed).ok().into(),
        Fact::Absent => Fact::Absent,
        Fact::Unknown(why) => Fact::Unknown(why),
    }
}

fn kind(number: &str) -> String {
    match number {
        "1" => "Ethernet",
        "32" => "InfiniBand",
        "772" => "loopback",
        number => number,
    }
    .to_owned()
}
