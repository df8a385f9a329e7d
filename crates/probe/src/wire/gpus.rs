//! The step `gpus`: the driver and the GPUs, as NVML and CUDA report them.

use std::collections::BTreeMap;

use super::{Field, Nullable};

objects! {
    /// The driver and the GPUs.
    #[schemars(rename = "gpus")]
    pub struct GpusBody is step "gpus" {
        pub driver: Field<GpuDriver>,
        pub environment: Field<BTreeMap<String, String>>,
        pub gpus: Field<Vec<GpuState>>,
        pub unreachable_gpus: Field<Vec<UnreachableGpu>>,
        pub cuda: Field<Cuda>,
        pub xid: Field<Xid>,
    }

    /// The driver's libraries and kernel module.
    pub struct GpuDriver {
        pub version: Nullable<String>,
        pub nvml_version: Nullable<String>,
        pub cuda_version: Nullable<String>,
        pub nvml_library: Nullable<String>,
        pub kernel_module_version: Nullable<String>,
        pub kernel_module: Nullable<String>,
    }

    /// A GPU that NVML can open.
    pub struct GpuState {
        pub index: Field<i64>,
        pub uuid: Nullable<String>,
        pub name: Nullable<String>,
        pub pci_bus_id: Nullable<String>,
        pub serial: Nullable<String>,
        pub minor_number: Nullable<i64>,
        pub compute_capability: Nullable<String>,
        pub architecture: Nullable<String>,
        pub persistence_mode: Nullable<bool>,
        pub compute_mode: Nullable<String>,
        pub compute_processes: Nullable<i64>,
        /// Processes with a context on the GPU, as far as the driver shows them to this container.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub processes: Nullable<Vec<GpuProcess>>,
        /// Percent of the last sample period, at most a second, in which a kernel ran.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub busy_percent: Nullable<i64>,
        /// Percent of that period in which memory was read or written.
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub memory_busy_percent: Nullable<i64>,
        pub memory: Field<GpuMemory>,
        pub mig: Field<Mig>,
        pub ecc: Field<Ecc>,
        pub remapped_rows: Field<RemappedRows>,
        pub retired_pages: Field<RetiredPages>,
        pub clocks: Field<Clocks>,
        pub temperature: Field<Temperature>,
        pub power: Field<Power>,
        pub pcie: Field<Pcie>,
        pub nvlinks: Nullable<Vec<NvLink>>,
        /// Reasons for missing fields in links, by field name.
        pub nvlinks_unread: Nullable<BTreeMap<String, String>>,
        pub fabric: Field<FabricState>,
    }

    /// A process with a context on a GPU.
    pub struct GpuProcess {
        pub pid: Field<i64>,
        /// Readable only in the PID namespace of the host.
        pub name: Nullable<String>,
        pub used_bytes: Nullable<i64>,
    }

    /// Device memory. `used_bytes` excludes memory that the driver reserves.
    pub struct GpuMemory {
        pub total_bytes: Nullable<i64>,
        pub reserved_bytes: Nullable<i64>,
        pub free_bytes: Nullable<i64>,
        pub used_bytes: Nullable<i64>,
    }

    /// Multi-Instance GPU mode, now and after a reset.
    pub struct Mig {
        pub enabled: Nullable<bool>,
        pub pending: Nullable<bool>,
        pub devices: Nullable<Vec<MigDevice>>,
    }

    /// A MIG device.
    pub struct MigDevice {
        pub index: Field<i64>,
        pub uuid: Nullable<String>,
        pub name: Nullable<String>,
        pub gpu_instance: Nullable<i64>,
        pub compute_instance: Nullable<i64>,
        pub memory: Field<GpuMemory>,
    }

    /// ECC. Volatile counts start when the driver is loaded; aggregate counts cover the GPU's lifetime.
    pub struct Ecc {
        pub enabled: Nullable<bool>,
        pub pending: Nullable<bool>,
        pub volatile_corrected: Nullable<i64>,
        pub volatile_uncorrected: Nullable<i64>,
        pub aggregate_corrected: Nullable<i64>,
        pub aggregate_uncorrected: Nullable<i64>,
    }

    /// Memory rows that spare rows replaced (Ampere and later).
    pub struct RemappedRows {
        pub correctable: Nullable<i64>,
        pub uncorrectable: Nullable<i64>,
        /// True if a row will be remapped at the next reset.
        pub pending: Nullable<bool>,
        /// True if no spare row was left.
        pub failure: Nullable<bool>,
    }

    /// Retired memory pages (before Ampere).
    pub struct RetiredPages {
        pub multiple_single_bit: Nullable<i64>,
        pub double_bit: Nullable<i64>,
        pub pending: Nullable<bool>,
    }

    /// Clocks, and the reasons that currently limit them.
    pub struct Clocks {
        pub graphics_mhz: Nullable<i64>,
        pub graphics_max_mhz: Nullable<i64>,
        pub graphics_application_mhz: Nullable<i64>,
        pub sm_mhz: Nullable<i64>,
        pub sm_max_mhz: Nullable<i64>,
        pub sm_application_mhz: Nullable<i64>,
        pub memory_mhz: Nullable<i64>,
        pub memory_max_mhz: Nullable<i64>,
        pub memory_application_mhz: Nullable<i64>,
        pub event_reasons_mask: Nullable<i64>,
        pub event_reasons: Nullable<Vec<String>>,
    }

    /// Current temperatures, and the thresholds for slowdown and shutdown.
    pub struct Temperature {
        pub gpu_celsius: Nullable<i64>,
        pub memory_celsius: Nullable<i64>,
        pub shutdown_celsius: Nullable<i64>,
        pub slowdown_celsius: Nullable<i64>,
    }

    /// Current power, the limit in force, and the default limit.
    pub struct Power {
        pub now_milliwatts: Nullable<i64>,
        pub limit_milliwatts: Nullable<i64>,
        pub default_limit_milliwatts: Nullable<i64>,
    }

    /// The PCIe link: current values, and the maxima of this system and of the GPU.
    pub struct Pcie {
        pub generation: Nullable<i64>,
        pub generation_max: Nullable<i64>,
        pub generation_gpu_max: Nullable<i64>,
        pub width: Nullable<i64>,
        pub width_max: Nullable<i64>,
        pub replays: Nullable<i64>,
        pub speed_gts: Nullable<f64>,
        pub speed_max_gts: Nullable<f64>,
    }

    /// An NVLink. A field that could not be read is left out; `nvlinks_unread` has its reason once for all links.
    pub struct NvLink {
        pub link: Field<i64>,
        /// Non-zero counters.
        pub errors: Field<BTreeMap<String, i64>>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub active: Field<bool>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub version: Field<String>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub speed_mbytes_per_s: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub remote_type: Field<String>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub remote_pci_bus_id: Field<String>,
    }

    /// Registration with the fabric manager.
    pub struct FabricState {
        pub state: Nullable<String>,
        pub status: Nullable<String>,
        pub cluster_uuid: Nullable<String>,
        pub clique: Nullable<i64>,
        pub degraded_bandwidth: Nullable<bool>,
        pub route_recovery: Nullable<bool>,
        pub route_unhealthy: Nullable<bool>,
        pub access_timeout_recovery: Nullable<bool>,
        pub configuration: Nullable<String>,
    }

    /// A GPU that NVML counts but cannot open.
    pub struct UnreachableGpu {
        pub index: Field<i64>,
        pub why: Field<String>,
    }

    /// CUDA's own list of GPUs, and its differences from NVML's.
    pub struct Cuda {
        pub library: Nullable<String>,
        pub library_version: Nullable<String>,
        pub in_compat_folder: Nullable<bool>,
        pub cuda_version: Nullable<String>,
        pub devices: Nullable<Vec<CudaDevice>>,
        /// UUIDs.
        pub only_nvml_sees: Nullable<Vec<String>>,
        /// UUIDs.
        pub only_cuda_sees: Nullable<Vec<String>>,
    }

    /// A GPU that CUDA lists.
    pub struct CudaDevice {
        pub ordinal: Field<i64>,
        pub uuid: Nullable<String>,
        pub name: Nullable<String>,
        pub pci_bus_id: Nullable<String>,
    }

    /// Xid errors in the kernel's log.
    pub struct Xid {
        pub events: Nullable<Vec<XidEvent>>,
    }

    /// An Xid error.
    pub struct XidEvent {
        pub pci: Field<String>,
        pub xid: Field<i64>,
        pub boot_time_us: Field<i64>,
        pub text: Field<String>,
    }
}
