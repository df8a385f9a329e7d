//! The step `rdma`: RDMA devices, and the container's access to them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Field, Nullable};

/// A limit on locked memory.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum MemlockLimit {
    Bytes(u64),
    /// `unlimited`.
    Word(String),
}

objects! {
    /// RDMA devices, and their prerequisites.
    #[schemars(rename = "rdma")]
    pub struct RdmaBody is step "rdma" {
        pub libibverbs: Field<Libibverbs>,
        pub providers: Field<Providers>,
        pub device_nodes: Field<Vec<RdmaNode>>,
        pub memlock: Field<Memlock>,
        pub devices: Field<Vec<RdmaDevice>>,
        pub gpu_direct: Field<GpuDirect>,
    }

    /// The library libibverbs, and the devices that it lists.
    pub struct Libibverbs {
        pub sysfs_devices: Nullable<Vec<String>>,
        pub library: Nullable<String>,
        pub verbs_devices: Nullable<Vec<String>>,
        pub warnings: Nullable<Vec<String>>,
    }

    /// The providers of libibverbs.
    pub struct Providers {
        pub from_environment: Field<Vec<String>>,
        pub config_folder: Nullable<String>,
        pub library_pattern: Nullable<String>,
        pub configured: Nullable<Vec<ConfiguredProvider>>,
        pub libraries: Nullable<Vec<ProviderLibrary>>,
    }

    /// A provider that the configuration names.
    pub struct ConfiguredProvider {
        pub name: Field<String>,
        pub file: Field<String>,
    }

    /// A provider's library: the loaded file, or the error.
    pub struct ProviderLibrary {
        pub name: Field<String>,
        pub loads: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub library: Field<String>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }

    /// A device node below /dev/infiniband.
    pub struct RdmaNode {
        pub path: Field<String>,
        pub exists: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub opens: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }

    /// The limit on locked memory, and the capability that lifts it.
    pub struct Memlock {
        pub soft_bytes: Field<MemlockLimit>,
        pub hard_bytes: Field<MemlockLimit>,
        pub cap_ipc_lock: Nullable<bool>,
    }

    /// A device in sysfs, and the results of verbs on it.
    pub struct RdmaDevice {
        pub name: Field<String>,
        pub node_type: Nullable<String>,
        pub node_guid: Nullable<String>,
        pub sys_image_guid: Nullable<String>,
        pub fw_ver: Nullable<String>,
        pub hca_type: Nullable<String>,
        pub board_id: Nullable<String>,
        pub kernel_driver: Nullable<String>,
        pub pci_path: Nullable<Vec<String>>,
        pub numa_node: Nullable<i64>,
        pub netdevs: Nullable<Vec<String>>,
        pub uverbs: Nullable<String>,
        /// True if libibverbs lists the device.
        pub listed: Field<bool>,
        pub opens: Field<bool>,
        /// Reason why the device does not open, as a keyword.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub closed_cause: Field<String>,
        /// Reason why the device does not open, as a sentence.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub closed_because: Field<String>,
        pub attributes: Nullable<DeviceAttributes>,
        pub steps: Nullable<Vec<VerbsStep>>,
        pub memory_regions: Nullable<Vec<MemoryRegion>>,
        pub ports: Nullable<Vec<RdmaPort>>,
    }

    /// Attributes from ibv_query_device.
    pub struct DeviceAttributes {
        pub fw_ver: Field<String>,
        pub vendor_id: Field<String>,
        pub vendor_part_id: Field<i64>,
        pub phys_port_cnt: Field<i64>,
        pub max_qp: Field<i64>,
        pub max_cq: Field<i64>,
        pub max_mr: Field<i64>,
        pub max_mr_size_bytes: Field<u64>,
    }

    /// One of the calls that open and use a device.
    pub struct VerbsStep {
        pub step: Field<String>,
        pub ok: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }

    /// An attempt to register memory.
    pub struct MemoryRegion {
        pub bytes: Field<i64>,
        pub ok: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }

    /// A port, as sysfs and verbs report it.
    pub struct RdmaPort {
        pub port: Field<i64>,
        pub state: Nullable<String>,
        pub phys_state: Nullable<String>,
        pub link_layer: Nullable<String>,
        pub rate: Nullable<String>,
        pub rate_gbits_per_s: Nullable<f64>,
        pub lid: Nullable<i64>,
        pub sm_lid: Nullable<i64>,
        pub gid_table_length: Nullable<i64>,
        /// Non-empty entries.
        pub gids: Nullable<Vec<Gid>>,
        /// Non-zero counters.
        pub counters: Nullable<BTreeMap<String, i64>>,
        /// Non-zero counters.
        pub hw_counters: Nullable<BTreeMap<String, i64>>,
        pub verbs: Nullable<VerbsPort>,
        /// GID index that each range of NCCL releases selects, the newest range last.
        pub nccl_gid: Nullable<Vec<GidChoice>>,
        pub ping: Nullable<Ping>,
    }

    /// An entry of a port's GID table.
    pub struct Gid {
        pub index: Field<i64>,
        pub gid: Field<String>,
        #[serde(rename = "type")]
        pub kind: Nullable<String>,
        pub netdev: Nullable<String>,
    }

    /// Attributes from ibv_query_port.
    pub struct VerbsPort {
        pub state: Field<String>,
        pub link_layer: Field<String>,
        pub lid: Field<i64>,
        pub sm_lid: Field<i64>,
        pub gid_table_length: Field<i64>,
        pub active_mtu_bytes: Nullable<i64>,
        pub max_mtu_bytes: Nullable<i64>,
        pub pkeys: Nullable<Vec<String>>,
    }

    /// GID index that a range of NCCL releases selects.
    pub struct GidChoice {
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub since: Field<String>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub before: Field<String>,
        pub index: Nullable<i64>,
        pub because: Nullable<String>,
    }

    /// A verbs ping through a port: the steps that passed, and the one that failed.
    pub struct Ping {
        pub passed: Field<Vec<String>>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub gid_index: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub rounds: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub bytes: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub path_mtu_bytes: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub send_median_us: Field<f64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub write_median_us: Field<f64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub failed: Field<String>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }

    /// GPUDirect RDMA: kernel and library support, and registrations of GPU memory.
    pub struct GpuDirect {
        pub kernel_release: Field<String>,
        pub kernel_has_dmabuf: Nullable<bool>,
        pub peermem_modules: Field<Vec<String>>,
        pub peermem_files: Field<Vec<String>>,
        pub memory_peers: Nullable<Vec<String>>,
        pub libibverbs_has_dmabuf: Field<bool>,
        pub device_dmabuf: Field<Vec<DeviceDmabuf>>,
        pub gpus: Nullable<Vec<GpuDirectGpu>>,
    }

    /// DMA-BUF support of a device.
    pub struct DeviceDmabuf {
        pub device: Field<String>,
        pub supported: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }

    /// A GPU, and the registrations of its memory with each device.
    pub struct GpuDirectGpu {
        pub pci_bus_id: Nullable<String>,
        pub dma_buf_supported: Nullable<bool>,
        pub gpu_direct_rdma_supported: Nullable<bool>,
        pub registrations: Nullable<Vec<GpuRegistrations>>,
    }

    /// Registrations of a GPU's memory with a device.
    pub struct GpuRegistrations {
        pub device: Field<String>,
        pub peermem: Field<GpuRegistration>,
        pub dmabuf: Field<GpuRegistration>,
    }

    /// An attempt to register GPU memory.
    pub struct GpuRegistration {
        pub ok: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub error: Field<String>,
    }
}
