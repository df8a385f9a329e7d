//! An engine's account of a container: the fields of its answer to ContainerInspect that are compared with what was
//! requested and with what the container sees.

use serde_json::{Map, Value, json};

use super::Field;

/// Key of the account in the answer.
const HOST_CONFIG: &str = "HostConfig";
/// Key of the container's process in the answer.
const CONFIG: &str = "Config";

/// The part of an engine's answer that a recording keeps. It excludes the environment, which may contain secrets.
pub fn answer(host_config: Value, entrypoint: &[String]) -> Value {
    let config = json!({ "Entrypoint": entrypoint });
    Value::Object(Map::from_iter([(HOST_CONFIG.to_owned(), host_config), (CONFIG.to_owned(), config)]))
}

/// The entrypoint in what [`answer`] keeps; `None` in recordings of earlier versions.
pub fn entrypoint(answer: &Value) -> Option<Vec<String>> {
    serde_json::from_value(answer.get(CONFIG)?.get("Entrypoint")?.clone()).ok()
}

/// Reads what [`answer`] keeps.
pub fn read(answer: &Value) -> HostConfig {
    answer.get(HOST_CONFIG).and_then(Value::as_object).map(super::read).unwrap_or_default()
}

objects! {
    /// Configuration of a container, as the engine reports it.
    #[serde(rename_all = "PascalCase")]
    pub struct HostConfig {
        pub device_requests: Field<Vec<DeviceRequest>>,
        /// Size of /dev/shm in bytes.
        pub shm_size: Field<i64>,
        pub network_mode: Field<String>,
        pub ipc_mode: Field<String>,
        pub pid_mode: Field<String>,
        pub ulimits: Field<Vec<GivenUlimit>>,
        pub devices: Field<Vec<GivenDevice>>,
        pub privileged: Field<bool>,
        /// Mounts, as `docker run -v` takes them.
        pub binds: Field<Vec<String>>,
        pub cap_add: Field<Vec<String>>,
        pub readonly_rootfs: Field<bool>,
        pub security_opt: Field<Vec<String>>,
        /// Memory limit in bytes; 0 is unlimited.
        pub memory: Field<i64>,
        /// Limit on the time of CPUs, in billionths of a CPU; 0 is unlimited.
        pub nano_cpus: Field<i64>,
        /// CPUs, as the kernel lists them; empty for all.
        pub cpuset_cpus: Field<String>,
        /// NUMA nodes, as the kernel lists them; empty for all.
        pub cpuset_mems: Field<String>,
        /// OCI runtime; engines name their default one.
        pub runtime: Field<String>,
        /// Limit on processes and threads; 0 and -1 are unlimited.
        pub pids_limit: Field<i64>,
    }

    /// A request for GPUs.
    #[serde(rename_all = "PascalCase")]
    pub struct DeviceRequest {
        /// Number of GPUs; -1 is all.
        pub count: Field<i64>,
        #[serde(rename = "DeviceIDs")]
        pub device_ids: Field<Vec<String>>,
    }

    /// A resource limit.
    #[serde(rename_all = "PascalCase")]
    pub struct GivenUlimit {
        pub name: Field<String>,
        pub soft: Field<i64>,
    }

    /// A device of the host.
    #[serde(rename_all = "PascalCase")]
    pub struct GivenDevice {
        pub path_on_host: Field<String>,
    }
}
