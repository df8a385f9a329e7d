//! Other users of libnccl.so.2: Python modules that need it.

use model::{Fact, Gap, Site, Version};
use rootfs::loader::elf;

use super::super::{Context, Facts, key};
use super::{SONAME, cupy, strings};

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    facts.insert(key::NCCL_OTHER_USERS, other_users(context, facts.get(key::NCCL_LOADED_VERSION)));
}

/// The NCCL that a module would load if it were imported first: torch then gets the same one.
pub(crate) fn other_users(context: &Context<'_>, loaded: &Fact<Version>) -> Fact<Vec<String>> {
    let loaded = match loaded {
        _ if context.subject.is_some() => return Fact::Absent,
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    let folders = context.python.as_ref().map_or(&[][..], |python| &python.site_packages);
    let own = context.torch.chosen.value();
    let mut found: Vec<(String, Site)> = Vec::new();
    let mut gap: Option<Gap> = None;
    for (path, file) in context.rootfs.read_files() {
        let is_module = folders.iter().any(|folder| path.starts_with(folder));
        let is_own = own.is_some_and(|package| path.starts_with(package));
        let Some(object) = elf(&file).filter(|elf| elf.needed.iter().any(|name| name == SONAME)) else { continue };
        if !is_module || is_own || strings(&file).is_some() {
            continue;
        }
        let bound = match cupy::opened(context.rootfs, path, folders) {
            Some(opened) => Some(opened),
            None => match context.loader.find(SONAME, path, object) {
                Err(unknown) => {
                    gap.get_or_insert(unknown);
                    continue;
                }
                Ok(bound) => bound.map(|bound| bound.path),
            },
        };
        let Some((other, copy)) = bound.and_then(|path| context.rootfs.open(&path).ok()) else { continue };
        if let Some(copy) = strings(&copy).filter(|copy| copy.version != loaded) {
            found.push((format!("{path} would load NCCL {} from {other}", copy.version), file.site(path, None)));
        }
    }
    let (texts, at): (Vec<_>, Vec<_>) = found.into_iter().unzip();
    match gap {
        _ if !texts.is_empty() => Fact::Seen { value: texts, at },
        Some(gap) => Fact::Unknown(gap),
        None => Fact::Absent,
    }
}
