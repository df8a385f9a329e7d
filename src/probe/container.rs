//! Options of a probe's container, and the arrangement that they result in on an engine.

use std::path::Path;

use crate::facts::is_shown;
use crate::model::conceal_words;

use super::arrangement::{Arrangement, EntrypointUse, GpuSelection, GpuWay, Ulimit};
use super::engine::{Offers, PullPolicy};

const RDMA_DEVICES: &str = "/dev/infiniband";

/// Default limit on the processes and threads of a container.
pub const DEFAULT_PIDS: u32 = 32768;

/// Options of the container that runs an image. `None` and empty fields mean the engine's default, unless the field
/// documents another one.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ContainerOptions {
    /// Name or ID of the image, as the engine knows it.
    pub image: String,
    /// What the container does with the image's entrypoint.
    pub entrypoint: EntrypointUse,
    /// Python of the image, by path or by name on its PATH.
    pub python: String,
    /// GPUs of the container.
    pub gpus: GpuSelection,
    /// Way of requesting the GPUs; `None` is the way that the engine supports.
    pub gpu_way: Option<GpuWay>,
    /// Network mode.
    pub network: String,
    /// IPC mode.
    pub ipc: Option<String>,
    /// PID mode.
    pub pid: Option<String>,
    /// Host name of the container.
    pub hostname: Option<String>,
    /// Size of /dev/shm in bytes.
    pub shm_size: Option<u64>,
    /// Resource limits; if empty, locked memory is unlimited where the engine permits it.
    pub ulimits: Vec<Ulimit>,
    /// True if the container gets /dev/infiniband; `None` passes it if this host has it.
    pub rdma: Option<bool>,
    /// Other devices of the host, by path.
    pub devices: Vec<String>,
    /// Mounts, as `docker run -v` takes them.
    pub volumes: Vec<String>,
    /// Environment variables, which override the image's.
    pub env: Vec<(String, String)>,
    /// User in the container; `None` is the image's user.
    pub user: Option<String>,
    /// Capabilities that are kept, or behind the image's entrypoint added to the engine's default ones.
    pub capabilities: Vec<String>,
    /// Memory limit in bytes; 0 is unlimited, `None` is three quarters of the engine's memory.
    pub memory: Option<u64>,
    /// Limit on processes and threads; 0 is unlimited.
    pub pids: u32,
    /// Policy for fetching the image.
    pub pull: PullPolicy,
}

impl ContainerOptions {
    /// Options of a container with all GPUs on the host's network.
    pub fn new(image: impl Into<String>) -> Self {
        Self {
            image: image.into(),
            entrypoint: EntrypointUse::Replaced,
            python: "python3".to_owned(),
            gpus: GpuSelection::All,
            gpu_way: None,
            network: "host".to_owned(),
            ipc: None,
            pid: None,
            hostname: None,
            shm_size: None,
            ulimits: Vec::new(),
            rdma: None,
            devices: Vec::new(),
            volumes: Vec::new(),
            env: Vec::new(),
            user: None,
            capabilities: Vec::new(),
            memory: None,
            pids: DEFAULT_PIDS,
            pull: PullPolicy::Missing,
        }
    }

    /// The arrangement on this engine, without the program's arguments.
    pub(super) fn arrangement(&self, offers: &Offers) -> Arrangement {
        let mut devices = self.devices.clone();
        if self.rdma.unwrap_or_else(|| offers.is_local && has_verbs(Path::new(RDMA_DEVICES))) {
            devices.push(RDMA_DEVICES.to_owned());
        }
        let unlimited = Ulimit { name: "memlock".to_owned(), soft: -1, hard: -1 };
        // Registered memory is locked memory, and training pins its host buffers.
        let three_quarters = offers.memory.map(|bytes| bytes / 4 * 3);
        Arrangement {
            image: self.image.clone(),
            entrypoint: self.entrypoint,
            image_entrypoint: Vec::new(),
            python: self.python.clone(),
            arguments: Vec::new(),
            gpus: self.gpus.clone(),
            way: self.gpu_way.unwrap_or_else(|| offers.gpu_way()),
            network: self.network.clone(),
            ipc: self.ipc.clone(),
            pid: self.pid.clone(),
            hostname: self.hostname.clone(),
            shm_size: self.shm_size,
            ulimits: if self.ulimits.is_empty() { vec![unlimited] } else { self.ulimits.clone() },
            devices,
            env: self.env.clone(),
            volumes: self.volumes.clone(),
            user: self.user.clone(),
            capabilities: self.capabilities.clone(),
            memory: self.memory.or(three_quarters).filter(|bytes| *bytes > 0),
            pids: self.pids,
            labels: Vec::new(),
        }
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
