//! aws-ofi-nccl: NCCL's network plugin for libfabric, which Elastic Fabric Adapters need.

use crate::model::Fact;
use crate::rootfs::loader::elf;

use super::{Context, Facts, key};

/// A plugin by its name (NCCL, `src/plugin/net.cc`), that needs libfabric.
pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let plugins = context.rootfs.files().filter(|(path, file)| {
        let is_plugin = path.file_name().starts_with(b"libnccl-net") || path.file_name().starts_with(b"libnccl-ofi");
        let needs_fabric =
            || elf(file).is_some_and(|elf| elf.needed.iter().any(|name| name.starts_with("libfabric.so")));
        is_plugin && needs_fabric()
    });
    let (paths, at): (Vec<_>, Vec<_>) = plugins.map(|(path, file)| (path.to_string(), file.site(&path, None))).unzip();
    facts.insert(key::NCCL_OFI_PLUGINS, if paths.is_empty() { Fact::Absent } else { Fact::Seen { value: paths, at } });
}
