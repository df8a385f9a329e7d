//! The step `pytorch`: the imported torch, and a small kernel on each GPU.

use super::Field;

objects! {
    /// CUDA as PyTorch sees it, and the results on each GPU.
    pub struct PytorchBody is step "pytorch" {
        pub cuda_error: Field<String>,
        pub devices: Field<Vec<TorchDevice>>,
    }

    /// A GPU, and a small kernel on it.
    pub struct TorchDevice {
        pub index: Field<i64>,
        pub name: Field<String>,
        pub capability: Field<String>,
        /// Kind of torch's code that the GPU runs: `exact`, `compatible`, `ptx` or `none`.
        pub code: Field<String>,
        pub code_from: Field<String>,
        pub kernel_correct: Field<bool>,
        pub error: Field<String>,
    }

    /// Build of torch, which is known even without a GPU.
    pub struct TorchBuild is part "build" {
        pub version: Field<String>,
        pub file: Field<String>,
        pub nccl_available: Field<bool>,
        pub nccl_version: Field<String>,
    }

    /// Shared libraries that the process has mapped.
    pub struct MappedLibraries is part "libraries" {
        /// `import`, `cuda` or `collective`.
        pub when: Field<String>,
        pub paths: Field<Vec<String>>,
    }
}
