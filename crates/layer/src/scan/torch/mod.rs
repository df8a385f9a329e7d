//! Build settings of PyTorch's own libraries, from their code and literals.

mod literals;
mod options;

pub(super) use literals::{ARCH_FLAGS, NCCL_VERSION};
pub(super) use options::{BUILD_OPTIONS, build_options};
