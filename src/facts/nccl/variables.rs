//! `NCCL_*` variables of the image that its NCCL does not read.

use crate::model::{Fact, Gap, Site};

use super::super::Context;
use super::loaded::Loaded;
use super::strings;

/// Names that begin like NCCL's variables and are others': notes of packagers and build systems, PyTorch's own
/// (`ProcessGroupNCCL.hpp`; newer releases write `TORCH_NCCL_`), and programs that only use NCCL.
const OTHERS: &[&str] = &[
    "NCCL_VERSION",
    "NCCL_HOME",
    "NCCL_ROOT",
    "NCCL_ROOT_DIR",
    "NCCL_DIR",
    "NCCL_INCLUDE_DIR",
    "NCCL_INCLUDE_DIRS",
    "NCCL_LIB_DIR",
    "NCCL_LIBRARY",
    "NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING",
    "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    "NCCL_TRACE_BUFFER_SIZE",
];

/// Families of network plugins and of nccl-tests: only their own libraries know these names.
const OTHER_FAMILIES: &[&str] =
    &["NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_", "NCCL_SHARP_", "NCCL_UCX_", "NCCL_TESTS_", "NCCL_PLUGIN_"];

/// The variables of the image's environment that begin with `NCCL_` and mean nothing to this copy.
pub(super) fn unknown(context: &Context<'_>, loaded: &Fact<Loaded<'_>>) -> Fact<Vec<String>> {
    let Some(config) = context.config else {
        return Fact::Unknown(
            Gap::new("an unpacked root file system has no image configuration").settled_by("check the image itself"),
        );
    };
    let loaded = match loaded {
        Fact::Seen { value, .. } => value,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    let Some(known) = strings(&loaded.file).map(|strings| &strings.variables).filter(|known| !known.is_empty()) else {
        return loaded.no_banner();
    };
    let (names, at): (Vec<_>, Vec<_>) = config
        .environment
        .keys()
        .filter(|name| name.starts_with("NCCL_") && !known.contains(*name) && !is_of_others(name))
        .map(|name| (name.clone(), Site::Config(format!("Env {name}"))))
        .unzip();
    if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names, at } }
}

fn is_of_others(name: &str) -> bool {
    OTHERS.contains(&name) || OTHER_FAMILIES.iter().any(|family| name.starts_with(family))
}
