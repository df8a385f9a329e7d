//! Whether a host's driver is of an older CUDA than the one that NCCL was built with.

use crate::model::{Fact, Value, Version};

use super::super::{Facts, key};

/// NCCL brings a CUDA runtime of its own, which starts with a driver of the same major version or a newer one.
pub(super) fn produce(facts: &mut Facts) {
    let loaded = facts.get(key::NCCL_LOADED_PATH.name).clone();
    let copies = facts.get(key::NCCL_COPIES.name).clone();
    let beyond = facts.get(key::HOST_CUDA.name).clone().and_then(|release, _| {
        loaded.and_then(|path, _| {
            copies.and_then(|copies, at| {
                let driver = Version::parse(&release.to_string());
                let built = built_with(&copies, &path);
                match (driver, built) {
                    (Some(driver), Some(built)) if built.major() > driver.major() => {
                        Fact::Seen { value: built.to_string().into(), at }
                    }
                    _ => Fact::Absent,
                }
            })
        })
    });
    facts.insert::<Value>(key::HOST_NCCL_CUDA, beyond);
}

/// The CUDA release of the copy at a path.
fn built_with(copies: &Value, path: &Value) -> Option<Version> {
    let Value::List(copies) = copies else { return None };
    copies.iter().find_map(|copy| match copy {
        Value::Map(copy) if copy.get("path") == Some(path) => Version::parse(&copy.get("cuda")?.to_string()),
        _ => None,
    })
}
