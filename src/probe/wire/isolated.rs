//! The step `isolated`, which we run ourselves: one container for each GPU.

use super::{Field, Nullable, StepBody};

impl StepBody for IsolatedBody {
    const STEP: &'static str = "isolated";
}

objects! {
    /// What each arrangement of containers came to.
    #[schemars(rename = "isolated")]
    pub struct IsolatedBody {
        pub gpus: Field<u32>,
        /// Bytes of the all_reduce that was measured.
        pub bytes: Field<u64>,
        /// The first is one container with all GPUs.
        pub rows: Field<Vec<IsolatedRow>>,
    }

    /// An arrangement of containers.
    pub struct IsolatedRow {
        pub arrangement: Field<String>,
        /// Hosts as NCCL counts them.
        pub nodes: Nullable<u32>,
        pub transports: Field<Vec<String>>,
        pub all_reduce_bytes_per_second: Nullable<f64>,
        pub error: Nullable<String>,
        pub warning: Nullable<String>,
    }
}
