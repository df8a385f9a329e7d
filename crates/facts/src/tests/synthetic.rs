//! Images made of single files, for tests.

use std::sync::Arc;

use layer::scan::LayerScan;
use model::{Entry, EntryKind, Found, Gap, ImageConfig, Limits};
use rootfs::RootFs;

use super::super::{FactInputs, Facts};

/// An entry of a layer, and what its scan found.
pub(crate) type ScannedEntry = (Entry, Vec<Result<Found, Gap>>);

/// An executable file without an owner. No library of this size is too short for its header.
pub(crate) fn file(path: &str) -> Entry {
    Entry { path: path.into(), kind: EntryKind::File, mode: 0o755, owner: None, size: 4096 }
}

/// A text file, or a symbolic link for a text `-> TARGET`.
pub(crate) fn text_or_link(path: &str, content: &str) -> ScannedEntry {
    let kind = content.strip_prefix("-> ").map(|target| EntryKind::Symlink(target.as_bytes().into()));
    let entry = Entry { kind: kind.unwrap_or(EntryKind::File), size: content.len() as u64, ..file(path) };
    (entry, vec![Ok(Found::Text(content.as_bytes().into()))])
}

/// A complete scan of one layer.
pub(crate) fn layer(files: impl IntoIterator<Item = ScannedEntry>) -> LayerScan {
    let (entries, found): (_, Vec<_>) = files.into_iter().unzip();
    let found = found.into_iter().enumerate().collect();
    LayerScan { entries, found, ..LayerScan::empty() }
}

/// The file system of an image with one layer.
pub(crate) fn rootfs(files: impl IntoIterator<Item = ScannedEntry>) -> RootFs {
    RootFs::fold(vec![Arc::new(layer(files))], &Limits::default())
}

/// The facts about an image that no launch file is given for.
pub(crate) fn collect(rootfs: &RootFs, config: &ImageConfig) -> Facts {
    Facts::collect(&FactInputs { rootfs, config: Some(config), launch: &[] })
}
