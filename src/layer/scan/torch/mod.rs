//! PyTorch's own libraries: what their code and their literals say of how they were built.

mod literals;
mod options;
mod spool;

pub(super) use literals::{ARCH_FLAGS, NCCL_VERSION};
pub(super) use options::{BUILD_OPTIONS, build_options};
