//! Network interfaces.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::HostTree;

const INTERFACES: &str = "/sys/class/net";

/// The network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Network {
    /// Its interfaces.
    pub interfaces: Fact<Vec<Interface>>,
}

/// An interface.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Interface {
    /// Its name.
    pub name: String,
    /// `up`, `down`, `unknown` (which a loopback says) …
    pub state: Fact<String>,
    /// Bytes of its largest packet.
    pub mtu: Fact<u32>,
    /// Mb/s; interfaces that are down or virtual have none.
    pub speed: Fact<u32>,
    /// Ethernet, InfiniBand, loopback or the number of another kind (ARPHRD_*, linux/if_arp.h).
    pub kind: Fact<String>,
    /// The kernel driver of the card; absent for a virtual one.
    pub driver: Fact<String>,
    /// The interface that it belongs to: a bond, a bridge, or of a virtual machine the one that its host made.
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

/// The file cannot be read of an interface that is down, and has -1 where nothing is known.
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
