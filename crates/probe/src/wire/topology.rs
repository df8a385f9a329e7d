//! The step `topology`: connections between GPUs and RDMA devices.

use std::collections::BTreeMap;

use super::{Field, Nullable};

objects! {
    /// Connections between devices.
    #[schemars(rename = "topology")]
    pub struct TopologyBody is step "topology" {
        pub gpus: Field<Vec<TopologyGpu>>,
        pub nics: Field<Vec<Nic>>,
        pub matrix: Field<Matrix>,
        pub gpu_pairs: Field<Vec<GpuPair>>,
        pub iommu: Field<Iommu>,
    }

    /// Attachment of a GPU: PCI path, NUMA node, CPU affinity and NVLinks.
    pub struct TopologyGpu {
        pub name: Field<String>,
        pub index: Field<i64>,
        pub uuid: Nullable<String>,
        pub pci_bus_id: Nullable<String>,
        pub cpu_affinity: Nullable<String>,
        pub numa_affinity: Nullable<String>,
        pub gpu_numa_id: Nullable<i64>,
        /// Number of active NVLinks to `switch`, or to a GPU by its PCI address.
        pub nvlink_ends: Nullable<BTreeMap<String, i64>>,
        pub pci_path: Nullable<Vec<String>>,
        pub numa_node: Nullable<i64>,
        pub isolation: Nullable<PciIsolation>,
    }

    /// Attachment of an RDMA device.
    pub struct Nic {
        pub name: Field<String>,
        pub pci_bus_id: Nullable<String>,
        pub pci_path: Nullable<Vec<String>>,
        pub numa_node: Nullable<i64>,
        pub isolation: Nullable<PciIsolation>,
    }

    /// Remapping and redirection of a PCI device's traffic: its IOMMU group, and ACS in the bridges above it.
    pub struct PciIsolation {
        pub iommu_group: Nullable<i64>,
        pub iommu_group_type: Nullable<String>,
        pub iommu_group_devices: Nullable<Vec<String>>,
        pub bridges: Field<Vec<Bridge>>,
    }

    /// A PCI bridge.
    pub struct Bridge {
        pub pci_bus_id: Field<String>,
        /// Enabled ACS controls.
        pub acs_controls: Nullable<Vec<String>>,
    }

    /// Matrix of `nvidia-smi topo -m`: a word for each pair of devices, null if unknown.
    pub struct Matrix {
        pub names: Field<Vec<String>>,
        pub rows: Field<Vec<Vec<Option<String>>>>,
        /// Reasons for null words, by the names of the two devices.
        pub unread: Field<BTreeMap<String, String>>,
    }

    /// Path from one GPU to another, and the supported peer access.
    pub struct GpuPair {
        pub from: Field<String>,
        pub to: Field<String>,
        pub ancestor: Nullable<String>,
        pub nvlinks: Nullable<i64>,
        pub p2p_read: Nullable<String>,
        pub p2p_write: Nullable<String>,
        pub p2p_nvlink: Nullable<String>,
        pub p2p_atomics: Nullable<String>,
        pub p2p_pci: Nullable<String>,
        pub cuda_can_access: Nullable<bool>,
        pub cuda_performance_rank: Nullable<i64>,
        pub cuda_access_supported: Nullable<i64>,
        pub cuda_native_atomics_supported: Nullable<i64>,
        pub cuda_array_access_supported: Nullable<i64>,
    }

    /// The host's IOMMUs.
    pub struct Iommu {
        pub units: Nullable<Vec<String>>,
        pub kernel_parameters: Nullable<Vec<String>>,
    }
}
