//! NVSwitches, Fabric Manager, and memory shared between machines (IMEX).

use serde::{Deserialize, Serialize};

use model::Fact;

use super::processes::Processes;
use super::{HostTree, pci};

/// The NVLink fabric.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fabric {
    /// NVSwitches bound to this machine's driver, without those of a rack or of another virtual machine.
    pub nvswitches: Fact<usize>,
    /// Process ID of Fabric Manager.
    pub manager: Fact<u32>,
    /// Process ID of the IMEX daemon, which shares memory between machines.
    pub imex: Fact<u32>,
    /// Device nodes of IMEX channels.
    pub imex_channels: Fact<usize>,
}

impl Fabric {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let processes = Processes::read(tree);
        // PCI class 0680, "other bridge".
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
