//! Whether a host's driver is of an older CUDA than the one that NCCL was built with.

use crate::model::{Fact, ImagePath, Version};

use super::super::records::NcclCopy;
use super::super::{Facts, key};

/// NCCL brings a CUDA runtime of its own, which starts with a driver of the same major version or a newer one.
pub(super) fn produce(facts: &mut Facts) {
    let loaded = facts.get(key::NCCL_LOADED_PATH).as_ref();
    let copies = facts.get(key::NCCL_COPIES).as_ref();
    let beyond = facts.get(key::HOST_CUDA).as_ref().and_then(|driver, _| {
        loaded.and_then(|path, _| {
            copies.and_then(|copies, at| match built_with(copies, path) {
                Some(built) if built.major() > driver.major() => Fact::Seen { value: built.to_string(), at },
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
