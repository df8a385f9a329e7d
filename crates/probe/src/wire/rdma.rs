//! The step `rdma`: RDMA devices, and the container's access to them.

use super::Field;

objects! {
    /// RDMA devices, and their prerequisites.
    pub struct RdmaBody is step "rdma" {
        pub devices: Field<Vec<RdmaDevice>>,
        pub gpu_direct: Field<GpuDirect>,
    }

    /// A device in sysfs, and the results of verbs on it.
    pub struct RdmaDevice {
        pub name: Field<String>,
        pub opens: Field<bool>,
        /// Reason why the device does not open, as a keyword.
        pub closed_cause: Field<String>,
        /// Reason why the device does not open, as a sentence.
        pub closed_because: Field<String>,
        pub memory_regions: Field<Vec<MemoryRegion>>,
        pub ports: Field<Vec<RdmaPort>>,
    }

    /// An attempt to register memory.
    pub struct MemoryRegion {
        pub bytes: Field<i64>,
        pub ok: Field<bool>,
        pub error: Field<String>,
    }

    /// A port, as sysfs and verbs report it.
    pub struct RdmaPort {
        pub port: Field<i64>,
        pub state: Field<String>,
        pub link_layer: Field<String>,
        /// Non-empty entries.
        pub gids: Field<Vec<Gid>>,
        pub verbs: Field<VerbsPort>,
        /// GID index that each range of NCCL releases selects, the newest range last.
        pub nccl_gid: Field<Vec<GidChoice>>,
        pub ping: Field<Ping>,
    }

    /// An entry of a port's GID table.
    pub struct Gid {
        pub index: Field<i64>,
        pub gid: Field<String>,
        #[serde(rename = "type")]
        pub kind: Field<String>,
    }

    /// Attributes from ibv_query_port.
    pub struct VerbsPort {
        pub state: Field<String>,
    }

    /// GID index that a range of NCCL releases selects.
    pub struct GidChoice {
        pub index: Field<i64>,
        pub because: Field<String>,
    }

    /// A verbs ping through a port: the steps that passed, and the one that failed.
    pub struct Ping {
        pub failed: Field<String>,
        pub error: Field<String>,
    }

    /// GPUDirect RDMA: kernel and library support, and registrations of GPU memory.
    pub struct GpuDirect {
        pub gpus: Field<Vec<GpuDirectGpu>>,
    }

    /// A GPU, and the registrations of its memory with each device.
    pub struct GpuDirectGpu {
        pub registrations: Field<Vec<GpuRegistrations>>,
    }

    /// Registrations of a GPU's memory with a device.
    pub struct GpuRegistrations {
        pub peermem: Field<GpuRegistration>,
        pub dmabuf: Field<GpuRegistration>,
    }

    /// An attempt to register GPU memory.
    pub struct GpuRegistration {
        pub ok: Field<bool>,
    }
}
