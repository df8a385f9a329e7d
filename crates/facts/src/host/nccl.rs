//! Detects a host driver whose CUDA release is older than the one that NCCL was built with.

use model::{Fact, ImagePath, Version};

use super::super::records::NcclCopy;
use super::super::{Facts, key};

/// NCCL contains its own CUDA runtime, which needs a driver of the same or a newer major version.
pub(super) fn produce(facts: &mut Facts) {
    let loaded = facts.get(key::NCCL_LOADED_PATH).as_ref();
    let copies = facts.get(key::NCCL_COPIES).as_ref();
    let cuda = facts.get(key::HOST_CUDA).as_ref();
    let beyond = facts.get(key::HOST_CUDA_MIN).as_ref().and_then(|at_least, _| {
        loaded.and_then(|path, _| {
            copies.and_then(|copies, at| match built_with(copies, path) {
                // A driver that is only known to support an older release may support this one too.
                Some(built) if built.major() > at_least.major() => {
                    cuda.and_then(|_, _| Fact::Seen { value: built.to_string(), at })
                }
                _ => Fact::Absent,
            })
        })
    });
    facts.insert(key::HOST_NCCL_CUDA, beyond);
}

/// The CUDA release of the copy at a path.
fn built_with(copies: &[NcclCopy], path: &ImagePath) -> Option<Version> {
    let path = path.to_string();
    let copy = copies.iter().find(|copy| copy.path.as_ref() == Some(&path))?;
    Version::parse(copy.cuda.as_ref()?)
}
