//! The step `gpus`: the driver and the GPUs, as NVML and CUDA have them.

use std::collections::BTreeMap;

use super::{Field, Nullable, StepBody};

impl StepBody for GpusBody {
    const STEP: &'static str = "gpus";
}

objects! {
    /// The driver and the GPUs.
    #[schemars(rename = "gpus")]
    pub struct GpusBody {
        pub driver: Field<GpuDriver>,
        pub environment: Field<BTreeMap<String, String>>,
        pub gpus: Field<Vec<GpuState>>,
        pub unreachable_gpus: Field<Vec<UnreachableGpu>>,
        pub cuda: Field<Cuda>,
        pub xid: Field<Xid>,
    }

    /// The driver's library, and the kernel module below it.
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
        /// Why fields are missing in links, by the name of the field.
        pub nvlinks_unread: Nullable<BTreeMap<String, String>>,
        pub fabric: Field<FabricState>,
    }

    /// Device memory. What the driver keeps for itself is no part of `used_bytes`.
    pub struct GpuMemory {
        pub total_bytes: Nullable<i64>,
        pub reserved_bytes: Nullable<i64>,
        pub free_bytes: Nullable<i64>,
        pub used_bytes: Nullable<i64>,
    }

    /// Multi-Instance GPU: now, and after a reset.
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

    /// Error correction. Counts since the driver was loaded are volatile, those of the GPU's life aggregate.
    pub struct Ecc {
        pub enabled: Nullable<bool>,
        pub pending: Nullable<bool>,
        pub volatile_corrected: Nullable<i64>,
        pub volatile_uncorrected: Nullable<i64>,
        pub aggregate_corrected: Nullable<i64>,
        pub aggregate_uncorrected: Nullable<i64>,
    }

    /// Rows of memory that spares replaced, from Ampere on.
    pub struct RemappedRows {
        pub correctable: Nullable<i64>,
        pub uncorrectable: Nullable<i64>,
        /// A row is remapped at the next reset.
        pub pending: Nullable<bool>,
        /// No spare was left.
        pub failure: Nullable<bool>,
    }

    /// Pages of memory that are out of use, before Ampere.
    pub struct RetiredPages {
        pub multiple_single_bit: Nullable<i64>,
        pub double_bit: Nullable<i64>,
        pub pending: Nullable<bool>,
    }

    /// Clocks, and why they are not higher now.
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

    /// Temperatures now, and where the GPU slows down or shuts down.
    pub struct Temperature {
        pub gpu_celsius: Nullable<i64>,
        pub memory_celsius: Nullable<i64>,
        pub shutdown_celsius: Nullable<i64>,
        pub slowdown_celsius: Nullable<i64>,
    }

    /// Power now, the limit in force, and the limit of a GPU left alone.
    pub struct Power {
        pub now_milliwatts: Nullable<i64>,
        pub limit_milliwatts: Nullable<i64>,
        pub default_limit_milliwatts: Nullable<i64>,
    }

    /// The PCIe link now, at most in this system, and at most for this GPU.
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

    /// An NVLink. A field that could not be read is left out: its reason stands once for all links, beside their list.
    pub struct NvLink {
        pub link: Field<i64>,
        /// The counters that are not zero.
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

    /// The registration with the fabric manager.
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

    /// A GPU that NVML counts and cannot open.
    pub struct UnreachableGpu {
        pub index: Field<i64>,
        pub why: Field<String>,
    }

    /// CUDA's own list of GPUs, and how it differs from NVML's.
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

    /// A GPU that CUDA offers.
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
