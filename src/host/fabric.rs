//! NVSwitches and what manages them, and memory shared between machines.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::processes::Processes;
use super::{HostTree, pci};

/// NVLink's fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Fabric {
    /// NVSwitches that this machine's driver has; those of a rack, or given to another virtual machine, are not.
    pub nvswitches: Fact<usize>,
    /// Number of the process that manages them.
    pub manager: Fact<u32>,
    /// Number of the process that shares memory between machines (IMEX).
    pub imex: Fact<u32>,
    /// Nodes of IMEX channels.
    pub imex_channels: Fact<usize>,
}

impl Fabric {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let processes = Processes::read(tree);
        // NVSwitches are bridges of another kind, class 0680.
        let switches = pci::nvidia(tree, "0x0680").map(|addresses| {
            let is_ours = |address: &&String| {
                pci::driver(tree, address).value().is_some_and(|driver| driver == "nvidia-nvswitch")
            };
            addresses.iter().filter(is_ours).count()
        });
        let channels = tree.names("/dev/nvidia-caps-imex-channels");
        Self {
            nvswitches: switches.and_then(|count, _| Some(count).filter(|count| *count > 0).into()),
            manager: processes.find("nv-fabricmanager"),
            imex: processes.find("nvidia-imex"),
            imex_channels: channels.map(|names| names.len()),
        }
    }
}
