//! Container engines and their defaults for containers.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use model::Fact;

use super::limits::{Limit, ResourceLimits};
use super::processes::Processes;
use super::subordinate::files_without_user;
use super::HostTree;

const CONFIG: &str = "/etc/docker/daemon.json";
/// Files of NVIDIA's container toolkit: of its packages, and where the GPU Operator installs it.
const TOOLKIT: &[&str] = &[
    "/etc/nvidia-container-runtime/config.toml",
    "/usr/bin/nvidia-container-runtime",
    "/usr/bin/nvidia-cdi-hook",
    "/usr/local/nvidia/toolkit/nvidia-container-runtime",
];
/// Engines whose resource limits the containers inherit.
const ENGINES: &[&str] = &["containerd", "dockerd", "crio"];

/// Container engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Containers {
    /// Configuration of the Docker daemon.
    pub docker: Fact<Docker>,
    /// True if NVIDIA's container toolkit is installed.
    pub nvidia_runtime: Fact<bool>,
    /// The files among /etc/subuid and /etc/subgid that give this user no IDs, which rootless engines need; absent for root.
    pub without_subordinate_ids: Fact<Vec<String>>,
    /// Resource limits of the running engines: the default of their containers.
    pub engines: BTreeMap<String, ResourceLimits>,
}

/// Settings of the Docker daemon (`daemon.json`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Docker {
    /// Additional runtimes.
    pub runtimes: Vec<String>,
    /// Default runtime.
    pub default_runtime: Fact<String>,
    /// Default resource limits of containers.
    pub default_ulimits: BTreeMap<String, Limit>,
    /// Default size of /dev/shm.
    pub default_shm_size: Fact<String>,
}

impl Containers {
    pub(super) fn collect(tree: &HostTree) -> Self {
        let processes = Processes::read(tree);
        let running = ENGINES.iter().filter_map(|name| Some((*name, *processes.find(name).value()?)));
        let docker = tree.text(CONFIG).and_then(|text, _| match serde_json::from_str::<Json>(&text) {
            Ok(config) => docker(&config),
            Err(error) => Fact::unknown(format!("{CONFIG}: {error}")),
        });
        Self {
            docker,
            nvidia_runtime: toolkit(tree),
            without_subordinate_ids: files_without_user(tree),
            engines: running.map(|(name, id)| (name.to_owned(), ResourceLimits::of(tree, &id.to_string()))).collect(),
        }
    }

    /// Default locked-memory limit of a container; absent if no engine runs.
    pub fn memlock(&self) -> Fact<Limit> {
        self.limit("memlock", |limits| &limits.memlock)
    }

    /// Default limit of open files of a container; absent if no engine runs.
    pub fn nofile(&self) -> Fact<Limit> {
        self.limit("nofile", |limits| &limits.nofile)
    }

    /// Default stack limit of a container; absent if no engine runs.
    pub fn stack(&self) -> Fact<Limit> {
        self.limit("stack", |limits| &limits.stack)
    }

    /// The limit in Docker's configuration, else that of the engine's process.
    fn limit(&self, name: &str, of: fn(&ResourceLimits) -> &Fact<Limit>) -> Fact<Limit> {
        let docker = self.docker.as_ref().and_then(|docker, _| docker.default_ulimits.get(name).copied().into());
        docker.or_else(|| {
            let engine = ENGINES.iter().find_map(|name| self.engines.get(*name));
            engine.map_or(Fact::Absent, |limits| of(limits).clone())
        })
    }
}

/// True if a file of NVIDIA's container toolkit is there.
fn toolkit(tree: &HostTree) -> Fact<bool> {
    let found: Vec<_> = TOOLKIT.iter().map(|path| tree.has(path)).collect();
    let yes = found.iter().find(|found| **found == Fact::known(true));
    let unread = || found.iter().find(|found| matches!(found, Fact::Unknown(_)));
    yes.or_else(unread).cloned().unwrap_or(Fact::known(false))
}

fn docker(config: &Json) -> Fact<Docker> {
    let text = |name: &str| {
        let value = config.get(name)?;
        Some(value.as_str().map_or_else(|| value.to_string(), ToOwned::to_owned))
    };
    let entries = |name: &str| config.get(name).and_then(Json::as_object).into_iter().flatten();
    let limit = |value: &Json| {
        let bound = |name: &str| value.get(name).or_else(|| value.get(name.to_ascii_lowercase()))?.as_i64();
        Some(Limit { soft: bound("Soft")?, hard: bound("Hard")? })
    };
    let mut limits = BTreeMap::new();
    for (name, value) in entries("default-ulimits") {
        let Some(limit) = limit(value) else {
            return Fact::unknown(format!("{CONFIG}: default-ulimits: invalid limit {value} for {name}"));
        };
        limits.insert(name.clone(), limit);
    }
    Fact::known(Docker {
        runtimes: entries("runtimes").map(|(name, _)| name.clone()).collect(),
        default_runtime: text("default-runtime").into(),
        default_ulimits: limits,
        default_shm_size: text("default-shm-size").into(),
    })
}
