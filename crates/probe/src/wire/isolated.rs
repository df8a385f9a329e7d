//! The step `isolated`, which ncclcheck runs itself: one container for each GPU.

use super::Field;

objects! {
    /// Results of each arrangement of containers.
    #[derive(serde::Serialize)]
    pub struct IsolatedBody is step "isolated" {
        pub gpus: Field<u32>,
        /// Size of the measured all_reduce, in bytes.
        pub bytes: Field<u64>,
        /// The first row is one container with all GPUs.
        pub rows: Field<Vec<IsolatedRow>>,
    }

    /// Result of one arrangement of containers.
    #[derive(serde::Serialize)]
    pub struct IsolatedRow {
        pub arrangement: Field<String>,
        /// Number of nodes that NCCL counts.
        pub nodes: Field<u32>,
        pub transports: Field<Vec<String>>,
        pub all_reduce_bytes_per_second: Field<f64>,
        pub error: Field<String>,
        pub warning: Field<String>,
    }
}
