//! The step `topology`: connections between GPUs and RDMA devices.

use std::collections::BTreeMap;

use super::Field;

objects! {
    /// Connections between devices.
    pub struct TopologyBody is step "topology" {
        pub gpus: Field<Vec<TopologyGpu>>,
        pub matrix: Field<Matrix>,
        pub gpu_pairs: Field<Vec<GpuPair>>,
    }

    /// Attachment of a GPU: PCI path, NUMA node, CPU affinity and NVLinks.
    pub struct TopologyGpu {
        pub name: Field<String>,
        /// Number of active NVLinks to `switch`, or to a GPU by its PCI address.
        pub nvlink_ends: Field<BTreeMap<String, i64>>,
    }

    /// Attachment of an RDMA device.
    pub struct Nic {
        pub name: Field<String>,
    }

    /// Matrix of `nvidia-smi topo -m`: a word for each pair of devices, null if unknown.
    pub struct Matrix {
        pub names: Field<Vec<String>>,
        pub rows: Field<Vec<Vec<Option<String>>>>,
    }

    /// Path from one GPU to another, and the supported peer access.
    pub struct GpuPair {
        pub from: Field<String>,
        pub to: Field<String>,
        pub nvlinks: Field<i64>,
        pub cuda_can_access: Field<bool>,
    }
}
