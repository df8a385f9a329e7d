//! `NCCL_VERSION`, which documents an image's packages.

use crate::launch::Setting;
use model::{Fact, Version};

use super::super::{Facts, key};
use super::name::{Name, Readers};

/// `NCCL_VERSION` in CUDA's base images is the version of their packages, which may differ from the one that torch
/// loads.
pub(super) fn produce(judged: &[(&Setting, Name)], readers: &Readers<'_>, facts: &mut Facts) {
    let noted = judged.iter().map(|(setting, _)| *setting).find(|setting| setting.name == "NCCL_VERSION");
    let numbers = |text: &str| Version::parse(text.split(['-', '+']).next().unwrap_or_default());
    let differs = |value: &str| match (numbers(value), &readers.nccl_version) {
        (Some(noted), Some(loaded)) => noted != *loaded,
        _ => false,
    };
    let fact = noted
        .and_then(|setting| {
            setting.value.clone().filter(|value| differs(value)).map(|value| (value, setting.site.clone()))
        })
        .map_or(Fact::Absent, |(value, site)| Fact::seen(value, [site]));
    facts.insert(key::ENV_NCCL_VERSION_NOTE, fact);
}
