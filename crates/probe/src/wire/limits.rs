//! The step `limits`: limits and resources of the container.

use std::collections::BTreeMap;

use super::Field;

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
    pub struct LimitsBody is step "limits" {
        pub shm: Field<Shm>,
        pub rlimits: Field<BTreeMap<String, Rlimit>>,
        /// Processors that the process may run on.
        pub affinity: Field<Vec<i64>>,
        pub cgroup: Field<Cgroup>,
        pub hostname: Field<String>,
        /// Inodes by namespace type; equal inodes are the same namespace.
        pub namespaces: Field<BTreeMap<String, i64>>,
        pub interfaces: Field<Vec<NetworkInterface>>,
        /// Older programs do not write it.
        pub rendezvous: Field<Rendezvous>,
        /// Values by the name of the setting; those that the kernel does not have are left out. Older programs do not write it.
        pub sysctls: Field<BTreeMap<String, String>>,
        /// The clock follows another one, by NTP or PTP. Older programs do not write it.
        pub clock_synchronised: Field<bool>,
        pub devices: Field<Vec<DeviceNode>>,
        pub variables: Field<BTreeMap<String, String>>,
    }

    /// The file system at /dev/shm.
    pub struct Shm {
        pub size_bytes: Field<i64>,
    }

    /// A resource limit; -1 is unlimited.
    pub struct Rlimit {
        pub soft: Field<i64>,
    }

    /// The control group; -1 is unlimited.
    pub struct Cgroup {
        /// CPU time limit of the group, in processors.
        pub cpu_quota: Field<f64>,
        /// Processors that the group may use, as the kernel lists them.
        pub cpuset: Field<String>,
    }

    /// A network interface.
    pub struct NetworkInterface {
        pub name: Field<String>,
    }

    /// What the ranks of a job need to meet.
    pub struct Rendezvous {
        /// Addresses of the name in `hostname`.
        pub hostname_addresses: Field<Vec<String>>,
        /// The value of MASTER_PORT, if it is set.
        pub port: Field<i64>,
        /// True if MASTER_ADDR is this machine and another process listens on the port.
        pub port_taken: Field<bool>,
    }

    /// A device node for GPUs or RDMA.
    pub struct DeviceNode {
        pub path: Field<String>,
    }
}
