//! The step `limits`: limits and resources of the container.

use std::collections::BTreeMap;

use super::{Field, Nullable};

impl LimitsBody {
    /// Size of /dev/shm in bytes.
    pub fn shm_bytes(&self) -> Option<i64> {
        self.shm.value()?.size_bytes.copied()
    }

    /// The soft limit of a resource, by its name in lower case and without `RLIMIT_`.
    pub fn soft_limit(&self, resource: &str) -> Option<i64> {
        self.rlimits.value()?.get(resource)?.soft.copied()
    }
}

objects! {
    /// Limits and resources of the container.
    #[schemars(rename = "limits")]
    pub struct LimitsBody is step "limits" {
        pub shm: Nullable<Shm>,
        pub rlimits: Nullable<BTreeMap<String, Rlimit>>,
        /// Processors that the process may run on.
        pub affinity: Nullable<Vec<i64>>,
        /// Number of processors of the machine.
        pub processors: Nullable<i64>,
        pub cgroup: Nullable<Cgroup>,
        pub memory: Nullable<MachineMemory>,
        pub user: Nullable<User>,
        pub capabilities: Nullable<Capabilities>,
        pub seccomp: Nullable<String>,
        pub no_new_privileges: Nullable<bool>,
        pub hostname: Nullable<String>,
        pub kernel: Nullable<String>,
        pub boot_id: Nullable<String>,
        /// Inodes by namespace type; equal inodes are the same namespace.
        pub namespaces: Nullable<BTreeMap<String, i64>>,
        pub process_1: Nullable<InitProcess>,
        pub interfaces: Nullable<Vec<NetworkInterface>>,
        pub default_routes: Nullable<Vec<DefaultRoute>>,
        /// Older programs do not write it.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub rendezvous: Nullable<Rendezvous>,
        pub devices: Nullable<Vec<DeviceNode>>,
        pub writable: Nullable<Vec<Writable>>,
        pub working_folder: Nullable<String>,
        pub runtime_marks: Field<Vec<String>>,
        pub variables: Field<BTreeMap<String, String>>,
    }

    /// The file system at /dev/shm.
    pub struct Shm {
        pub size_bytes: Field<i64>,
        pub free_bytes: Field<i64>,
        pub mount: Nullable<String>,
        pub options: Nullable<Vec<String>>,
        pub device: Field<i64>,
    }

    /// A resource limit; -1 is unlimited.
    pub struct Rlimit {
        pub soft: Field<i64>,
        pub hard: Field<i64>,
    }

    /// The control group; -1 is unlimited.
    pub struct Cgroup {
        pub version: Nullable<i64>,
        pub cpuset: Nullable<String>,
        /// CPU time limit of the group, in processors.
        pub cpu_quota: Nullable<f64>,
        pub memory_max_bytes: Nullable<i64>,
        pub memory_current_bytes: Nullable<i64>,
        pub pids_max: Nullable<i64>,
        pub pids_current: Nullable<i64>,
    }

    /// The machine's memory.
    pub struct MachineMemory {
        pub total_bytes: Field<i64>,
        pub available_bytes: Field<i64>,
    }

    /// User of the process.
    pub struct User {
        pub uid: Field<i64>,
        pub gid: Field<i64>,
        pub groups: Field<Vec<i64>>,
        pub home: Nullable<String>,
        pub name: Nullable<String>,
    }

    /// Capabilities by name.
    pub struct Capabilities {
        pub effective: Field<Vec<String>>,
        pub permitted: Field<Vec<String>>,
        pub bounding: Field<Vec<String>>,
    }

    /// Process 1 of the container.
    pub struct InitProcess {
        pub name: Field<String>,
        /// First word only, because the others may be secrets.
        pub command: Field<String>,
    }

    /// A network interface.
    pub struct NetworkInterface {
        pub name: Field<String>,
        pub index: Field<i64>,
        pub ipv6: Field<Vec<String>>,
        pub flags: Nullable<Vec<String>>,
        pub ipv4: Nullable<String>,
        pub state: Nullable<String>,
        pub mtu_bytes: Nullable<i64>,
        pub speed_mbit_per_second: Nullable<i64>,
        pub device: Nullable<String>,
    }

    /// A default route.
    pub struct DefaultRoute {
        pub interface: Field<String>,
        pub gateway: Nullable<String>,
        pub metric: Field<i64>,
    }

    /// What the ranks of a job need to meet.
    pub struct Rendezvous {
        /// Addresses of the name in `hostname`.
        pub hostname_addresses: Nullable<Vec<String>>,
        /// The value of MASTER_PORT, if it is set.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub port: Nullable<i64>,
        /// True if MASTER_ADDR is this machine and another process listens on the port.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub port_taken: Nullable<bool>,
    }

    /// A device node for GPUs or RDMA.
    #[schemars(rename = "LimitsDeviceNode")]
    pub struct DeviceNode {
        pub path: Field<String>,
        /// True if its mode lets this user read and write.
        pub permitted: Field<bool>,
    }

    /// A folder, and the result of creating a file in it.
    pub struct Writable {
        pub path: Field<String>,
        pub writable: Field<bool>,
        pub why: Nullable<String>,
    }
}
