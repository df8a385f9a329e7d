//! Kernel modules for GPUs and RDMA.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::HostTree;

/// Modules that are looked for.
const NAMES: &[&str] = &[
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nv_peer_mem",
    "nvidia_fs",
    "gdrdrv",
    "efa_nv_peermem",
    "nouveau",
    "ib_core",
    "ib_uverbs",
    "ib_umad",
    "ib_ipoib",
    "rdma_cm",
    "rdma_ucm",
    "mlx5_core",
    "mlx5_ib",
    "mlx4_ib",
    "efa",
    "irdma",
    "bnxt_re",
    "mana_ib",
    "rdma_rxe",
    "siw",
];

/// What is loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Modules {
    /// Those that are loaded or built in.
    pub loaded: Fact<Vec<Module>>,
    /// Clients of peer memory: those through whom NICs reach the memory of GPUs. Kernels from 6.4 on do not list them.
    pub peer_memory: Fact<Vec<String>>,
}

/// A module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct Module {
    /// Its name.
    pub name: String,
    /// Its version, which most of the kernel's own do not have.
    pub version: Fact<String>,
}

impl Modules {
    /// Whether a module is loaded.
    pub fn has(&self, name: &str) -> Fact<bool> {
        self.loaded.as_ref().map(|loaded| loaded.iter().any(|module| module.name == name))
    }

    pub(super) fn collect(tree: &HostTree) -> Self {
        let loaded = tree.names("/sys/module").map(|there| {
            let ours = there.into_iter().filter(|name| NAMES.contains(&name.as_str()));
            ours.map(|name| Module { version: tree.text(&format!("/sys/module/{name}/version")), name }).collect()
        });
        Self { loaded, peer_memory: tree.names("/sys/kernel/mm/memory_peers") }
    }
}
