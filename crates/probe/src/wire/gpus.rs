//! The step `gpus`: the driver and the GPUs, as NVML and CUDA report them.

use std::collections::BTreeMap;

use super::Field;

objects! {
    /// The driver and the GPUs.
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
        pub version: Field<String>,
        pub cuda_version: Field<String>,
    }

    /// A GPU that NVML can open.
    pub struct GpuState {
        pub index: Field<i64>,
        pub name: Field<String>,
        pub compute_capability: Field<String>,
        pub persistence_mode: Field<bool>,
        pub compute_mode: Field<String>,
        /// Processes with a context on the GPU, as far as the driver shows them to this container.
        pub processes: Field<Vec<GpuProcess>>,
        /// Percent of the last sample period, at most a second, in which a kernel ran.
        pub busy_percent: Field<i64>,
        pub memory: Field<GpuMemory>,
        pub mig: Field<Mig>,
        pub ecc: Field<Ecc>,
        pub remapped_rows: Field<RemappedRows>,
        pub clocks: Field<Clocks>,
        pub temperature: Field<Temperature>,
        pub pcie: Field<Pcie>,
        pub nvlinks: Field<Vec<NvLink>>,
        pub fabric: Field<FabricState>,
        pub traffic: Field<LinkTraffic>,
    }

    /// What crosses the NVLinks of a GPU that no rank uses, in each direction.
    pub struct LinkTraffic {
        pub nvlink_sent_bytes_per_second: Field<i64>,
        pub nvlink_received_bytes_per_second: Field<i64>,
    }

    /// A process with a context on a GPU.
    pub struct GpuProcess {
        pub pid: Field<i64>,
        /// Readable only in the PID namespace of the host.
        pub name: Field<String>,
        pub used_bytes: Field<i64>,
    }

    /// Device memory. `used_bytes` excludes memory that the driver reserves.
    pub struct GpuMemory {
        pub total_bytes: Field<i64>,
        pub free_bytes: Field<i64>,
        pub used_bytes: Field<i64>,
    }

    /// Multi-Instance GPU mode, now and after a reset.
    pub struct Mig {
        pub enabled: Field<bool>,
    }

    /// ECC. Volatile counts start when the driver is loaded; aggregate counts cover the GPU's lifetime.
    pub struct Ecc {
        pub volatile_uncorrected: Field<i64>,
    }

    /// Memory rows that spare rows replaced (Ampere and later).
    pub struct RemappedRows {
        /// True if a row will be remapped at the next reset.
        pub pending: Field<bool>,
        /// True if no spare row was left.
        pub failure: Field<bool>,
    }

    /// Clocks, and the reasons that currently limit them.
    pub struct Clocks {
        pub event_reasons: Field<Vec<String>>,
    }

    /// Current temperatures, and the thresholds for slowdown and shutdown.
    pub struct Temperature {
        pub gpu_celsius: Field<i64>,
    }

    /// The PCIe link: current values, and the maxima of this system and of the GPU.
    pub struct Pcie {
        pub width: Field<i64>,
        pub width_max: Field<i64>,
    }

    /// An NVLink. A field that could not be read is left out; `nvlinks_unread` has its reason once for all links.
    pub struct NvLink {
        pub active: Field<bool>,
        pub speed_mbytes_per_s: Field<i64>,
    }

    /// Registration with the fabric manager.
    pub struct FabricState {
        pub state: Field<String>,
        pub status: Field<String>,
    }

    /// A GPU that NVML counts but cannot open.
    pub struct UnreachableGpu {
        pub index: Field<i64>,
        pub why: Field<String>,
    }

    /// CUDA's own list of GPUs, and its differences from NVML's.
    pub struct Cuda {
        pub library: Field<String>,
        pub in_compat_folder: Field<bool>,
        pub devices: Field<Vec<CudaDevice>>,
        /// UUIDs.
        pub only_nvml_sees: Field<Vec<String>>,
    }

    /// A GPU that CUDA lists.
    pub struct CudaDevice {
        pub uuid: Field<String>,
    }

    /// Xid errors in the kernel's log.
    pub struct Xid {
        pub events: Field<Vec<XidEvent>>,
    }

    /// An Xid error.
    pub struct XidEvent {
        pub pci: Field<String>,
        pub xid: Field<i64>,
    }
}
