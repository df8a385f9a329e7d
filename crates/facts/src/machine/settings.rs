//! Kernel parameters and systemd settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use model::Fact;

use super::processes::Processes;
use super::{HostTree, logind};

/// Kernel parameters (sysctl) that NCCL's and NVIDIA's guides name.
const NAMES: &[&str] = &[
    "kernel.numa_balancing",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.ip_local_port_range",
];

/// Kernel parameters and systemd settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct KernelSettings {
    /// Kernel parameters by name.
    pub kernel: BTreeMap<String, Fact<String>>,
    /// Process ID of systemd-logind.
    pub logind: Fact<u32>,
    /// RemoveIPC of systemd-logind, which removes the shared memory of users who log out: as set, or the default that
    /// its configuration file shows.
    pub remove_ipc: Fact<String>,
}

impl KernelSettings {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let value = |name: &&str| {
            let text = tree.text(&format!("/proc/sys/{}", name.replace('.', "/")));
            ((*name).to_owned(), text.map(|text| text.replace('\t', " ")))
        };
        Self {
            kernel: NAMES.iter().map(value).collect(),
            logind: Processes::read(tree).find("systemd-logind"),
            remove_ipc: logind::remove_ipc(tree),
        }
    }
}
