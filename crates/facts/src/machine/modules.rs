//! Kernel modules for GPUs and RDMA.

use serde::{Deserialize, Serialize};

use model::{Fact, is_among};

use super::HostTree;

/// Modules to look for.
const NAMES: &str = "nvidia nvidia_uvm nvidia_modeset nvidia_drm nvidia_peermem nv_peer_mem nvidia_fs gdrdrv \
    efa_nv_peermem nouveau ib_core ib_uverbs ib_umad ib_ipoib rdma_cm rdma_ucm mlx5_core mlx5_ib mlx4_ib efa irdma \
    bnxt_re mana_ib rdma_rxe siw";

/// Loaded kernel modules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Modules {
    /// Modules that are loaded or built in.
    pub loaded: Fact<Vec<Module>>,
    /// Peer-memory clients, through which NICs access GPU memory. Kernels from 6.4 on do not list them.
    pub peer_memory: Fact<Vec<String>>,
}

/// A kernel module.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Module {
    /// Name of the module.
    pub name: String,
    /// Version of the module; most in-tree modules have none.
    pub version: Fact<String>,
}

impl Modules {
    /// Returns true if a module is loaded or built in.
    pub fn has(&self, name: &str) -> Fact<bool> {
        self.loaded.as_ref().map(|loaded| loaded.iter().any(|module| module.name == name))
    }

    pub(super) fn collect(tree: &HostTree) -> Self {
        let loaded = tree.names("/sys/module").map(|there| {
            let ours = there.into_iter().filter(|name| is_among(name, NAMES));
            ours.map(|name| Module { version: tree.text(&format!("/sys/module/{name}/version")), name }).collect()
        });
        Self { loaded, peer_memory: tree.names("/sys/kernel/mm/memory_peers") }
    }
}
