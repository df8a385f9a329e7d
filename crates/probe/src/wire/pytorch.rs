//! The step `pytorch`: the imported torch, and a small kernel on each GPU.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Field, Nullable};

/// Kind of torch's code that a GPU runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "GpuCode")]
pub enum TorchGpuCode {
    Exact,
    Compatible,
    Ptx,
    None,
}

/// Moment at which mapped libraries were listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum When {
    Import,
    Cuda,
    Collective,
}

objects! {
    /// CUDA as PyTorch sees it, and the results on each GPU.
    #[schemars(rename = "pytorch")]
    pub struct PytorchBody is step "pytorch" {
        pub driver: Field<CudaLibrary>,
        pub cuda_available: Field<bool>,
        pub cuda_error: Nullable<String>,
        pub warnings: Field<Vec<String>>,
        pub devices: Nullable<Vec<TorchDevice>>,
        pub peer_access: Nullable<Vec<Vec<Option<bool>>>>,
        pub nccl_loaded_version: Nullable<String>,
    }

    /// CUDA's driver library, called without PyTorch.
    pub struct CudaLibrary {
        pub library: Field<String>,
        pub init_code: Nullable<i64>,
        pub init_error: Nullable<String>,
        pub version: Nullable<i64>,
        pub devices: Nullable<i64>,
    }

    /// A GPU, and a small kernel on it.
    pub struct TorchDevice {
        pub index: Field<i64>,
        pub name: Field<String>,
        pub capability: Field<String>,
        pub memory_bytes: Field<i64>,
        pub multiprocessors: Field<i64>,
        pub code: Field<TorchGpuCode>,
        pub code_from: Nullable<String>,
        pub kernel_correct: Nullable<bool>,
        pub context_seconds: Nullable<f64>,
        pub first_kernel_seconds: Nullable<f64>,
        pub second_kernel_seconds: Nullable<f64>,
        pub error: Nullable<String>,
    }

    /// Build of torch, which is known even without a GPU.
    pub struct TorchBuild is part "build" {
        pub import_seconds: Field<f64>,
        pub version: Field<String>,
        pub file: Nullable<String>,
        pub git_version: Nullable<String>,
        pub cuda_version: Nullable<String>,
        pub config: Nullable<String>,
        pub distributed_available: Nullable<bool>,
        pub nccl_available: Nullable<bool>,
        pub nccl_version: Nullable<String>,
        pub cudnn_version: Nullable<i64>,
        pub arch_list: Nullable<Vec<String>>,
    }

    /// Shared libraries that the process has mapped.
    pub struct MappedLibraries is part "libraries" {
        pub when: Field<When>,
        pub paths: Field<Vec<String>>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub variant: Field<i64>,
        #[serde(skip_serializing_if = "Field::is_absent")]
        pub round: Field<i64>,
    }
}
