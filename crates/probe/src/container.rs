//! The arrangement of a probe's container, as it is asked for and on an engine.

use std::path::Path;

use facts::is_shown;
use model::conceal_words;

use super::arrangement::{Arrangement, EntrypointUse, GpuSelection, GpuWay, PullPolicy, Ulimit};
use super::engine::Offers;

const RDMA_DEVICES: &str = "/dev/infiniband";

/// Default limit on the processes and threads of a container.
const DEFAULT_PIDS: u32 = 32768;

impl Arrangement {
    /// A container with all GPUs on the host's network.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            entrypoint: EntrypointUse::Replaced,
            image_entrypoint: Vec::new(),
            python: "python3".to_owned(),
            arguments: Vec::new(),
            gpus: GpuSelection::All,
            gpu_capabilities: Vec::new(),
            gpu_way: None,
            network: "host".to_owned(),
            ipc: None,
            pid: None,
            hostname: None,
            shm_size: None,
            ulimits: None,
            rdma: None,
            devices: Vec::new(),
            env: Vec::new(),
            volumes: Vec::new(),
            tmpfs: Vec::new(),
            user: None,
            capabilities: Vec::new(),
            privileged: false,
            security: Vec::new(),
            runtime: None,
            cpus: None,
            cpuset_cpus: None,
            cpuset_mems: None,
            memory: None,
            pids: DEFAULT_PIDS,
            pull: PullPolicy::Missing,
            labels: Vec::new(),
        }
    }

    /// The arrangement on this engine: with its way of requesting GPUs, and with the defaults that are not its own.
    pub(super) fn on(&self, offers: &Offers) -> Self {
        let mut arrangement = self.clone();
        // Names of the Container Device Interface have no capabilities.
        let has_capabilities = !self.gpu_capabilities.is_empty();
        arrangement.gpu_way.get_or_insert_with(|| if has_capabilities { GpuWay::Request } else { offers.gpu_way() });
        if self.rdma.unwrap_or_else(|| offers.is_local && has_verbs(Path::new(RDMA_DEVICES))) {
            arrangement.devices.push(RDMA_DEVICES.to_owned());
        }
        // Registered memory is locked memory, and training pins its host buffers.
        arrangement.ulimits.get_or_insert_with(|| vec![Ulimit { name: "memlock".to_owned(), soft: -1, hard: -1 }]);
        let three_quarters = offers.memory.map(|bytes| bytes / 4 * 3);
        arrangement.memory = self.memory.or(three_quarters).filter(|bytes| *bytes > 0);
        arrangement
    }
}

/// Returns true if a folder of device nodes has one for verbs. Without hardware the folder may exist without such a
/// node.
fn has_verbs(folder: &Path) -> bool {
    let mut nodes = folder.read_dir().into_iter().flatten().flatten();
    nodes.any(|node| node.file_name().to_string_lossy().starts_with("uverbs"))
}

/// Returns the arrangement for reports, without the values of variables that may be secrets.
pub(super) fn shown(arrangement: &Arrangement) -> Arrangement {
    let mut shown = arrangement.clone();
    for (name, value) in &mut shown.env {
        if !is_shown(name) {
            "...".clone_into(value);
        }
    }
    shown.image_entrypoint = conceal_words(&shown.image_entrypoint);
    shown.labels.clear();
    shown
}

#[cfg(test)]
mod tests {
    use super::super::arrangement::tests::plain;
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        let env =
            [("NCCL_DEBUG", "INFO"), ("HF_TOKEN", "secret")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let shown = shown(&Arrangement { env: env.to_vec(), ..plain() });
        let values: Vec<_> = shown.env.iter().map(|(_, value)| value.as_str()).collect();
        assert_eq!(values, ["INFO", "..."]);
        assert!(shown.labels.is_empty());
    }

    #[test]
    fn rdma_needs_a_verbs_device() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rdma_cm"), "").unwrap();
        assert!(!has_verbs(folder.path()));
        std::fs::write(folder.path().join("uverbs0"), "").unwrap();
        assert!(has_verbs(folder.path()));
    }
}
