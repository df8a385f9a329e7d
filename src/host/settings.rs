//! Kernel parameters and systemd settings.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::HostTree;

/// Kernel parameters (sysctl) that NCCL's and NVIDIA's guides name.
const NAMES: &[&str] = &[
    "kernel.numa_balancing",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "net.ipv4.ip_local_port_range",
];

const LOGIND: &str = "/etc/systemd/logind.conf";

/// Kernel parameters and systemd settings.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct KernelSettings {
    /// Kernel parameters by name.
    pub kernel: BTreeMap<String, Fact<String>>,
    /// RemoveIPC of systemd-logind, which removes the shared memory of users who log out; absent if systemd's default
    /// applies.
    pub remove_ipc: Fact<String>,
}

impl KernelSettings {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let value = |name: &&str| {
            let text = tree.text(&format!("/proc/sys/{}", name.replace('.', "/")));
            ((*name).to_owned(), text.map(|text| text.replace('\t', " ")))
        };
        Self { kernel: NAMES.iter().map(value).collect(), remove_ipc: remove_ipc(tree) }
    }
}

/// Reads RemoveIPC. The last file that sets it wins (logind.conf(5)).
fn remove_ipc(tree: &HostTree) -> Fact<String> {
    let folder = format!("{LOGIND}.d");
    let mut files = vec![LOGIND.to_owned()];
    match tree.names(&folder) {
        Fact::Seen { value: names, .. } => files.extend(names.iter().map(|name| format!("{folder}/{name}"))),
        Fact::Absent => {}
        Fact::Unknown(why) => return Fact::Unknown(why),
    }
    let mut found = Fact::Absent;
    for file in files {
        match tree.text(&file) {
            Fact::Seen { value: text, .. } => {
                let value = text.lines().filter_map(|line| line.trim().strip_prefix("RemoveIPC=")).next_back();
                found = value.map_or(found, |value| Fact::known(value.to_owned()));
            }
            Fact::Absent => {}
            Fact::Unknown(why) => return Fact::Unknown(why),
        }
    }
    found
}
