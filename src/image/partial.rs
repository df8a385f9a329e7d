//! Layers with a table of contents: they can be judged by it, reading only the relevant parts, or their tar can be
//! compared with it.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::layer::cache::ScanKey;
use crate::layer::scan::{LayerScan, Partly, Ranged, ScanError, is_part_of_table, scan_partly, table_format};
use crate::model::{BlobRef, Digest, Entry, Found, Gap, Hasher, ImagePath};

use super::plan::PlannedLayer;
use super::scanned::{ScannedLayer, TableOfContents};
use super::soci::{Binding, SociError, SociTables};
use super::{ImageError, ScanContext};

/// Outcome of a partial read.
pub(super) enum PartialRead {
    Scanned(ScannedLayer),
    /// The table cannot be used, for this reason.
    Unusable(String),
    /// The layer has no table.
    NotOffered,
}

/// Scans a layer by its table of contents, if it has one. Its own table takes precedence over a separate zTOC.
pub(super) fn scan(
    layer: &PlannedLayer,
    tables: &SociTables<'_>,
    context: ScanContext<'_>,
    what: &str,
) -> Result<PartialRead, ImageError> {
    let Some(blob) = layer.location.blob() else { return Ok(PartialRead::NotOffered) };
    let source = tables.source;
    let open = |range| source.open_range(&blob, range).map_err(io::Error::other);
    let mut ranged = Ranged {
        annotations: &layer.annotations,
        ztoc: None,
        size: blob.size,
        open: &open,
        cost: source.range_cost(),
        threads: context.jobs,
    };
    let failed = |error| ImageError::Layer { layer: what.to_owned(), error };
    let beside = if table_format(&ranged).is_some() { Ok(None) } else { tables.of(&blob.digest) };
    let beside = match beside {
        Ok(beside) => beside,
        Err(SociError::Unusable(why)) => return Ok(PartialRead::Unusable(why)),
        Err(SociError::Fatal(why)) => return Err(failed(ScanError::Piece(why))),
    };
    ranged.ztoc = beside.as_ref().map(|table| &*table.bytes);
    let Some(form) = table_format(&ranged) else { return Ok(PartialRead::NotOffered) };
    let is_verified = beside.as_ref().is_none_or(|table| table.binding == Binding::ByImage);
    let scanned = |scan, read, cached, is_shared| {
        let part = Some(TableOfContents { form, is_verified });
        PartialRead::Scanned(ScannedLayer {
            read,
            cached,
            is_shared,
            part,
            ..ScannedLayer::whole(scan, blob.digest.clone(), blob.size)
        })
    };
    let blob_and_table = BlobRef { digest: digest_of_both(&ranged, &blob.digest), size: blob.size };
    let key = ScanKey { blob: &blob_and_table, limits: context.limits };
    if let Some(cached) = context.cache.get(&key) {
        return Ok(scanned(cached.scan, 0, true, cached.is_shared));
    }
    let meter = context.progress.begin(what, Some(blob.size));
    Ok(match scan_partly(&ranged, context.limits, &*meter, context.cancel).map_err(failed)? {
        Partly::Scanned { scan, read } => {
            context.cache.put(&key, &scan);
            scanned(scan, read, false, false)
        }
        Partly::Unusable(why) => PartialRead::Unusable(why),
    })
}

/// A digest for the scan of a blob by a table, which depends on both: on all annotations, because one of them has the
/// digest of the layer's own table.
fn digest_of_both(ranged: &Ranged<'_>, blob: &Digest) -> Digest {
    let mut hasher = Hasher::sha256();
    let annotations = ranged.annotations.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
    for bytes in annotations.chain([ranged.ztoc.unwrap_or_default(), blob.as_str().as_bytes()]) {
        hasher.update(&bytes.len().to_le_bytes());
        hasher.update(bytes);
    }
    hasher.finish()
}

/// The paths at which a layer's tar and its table of contents differ, or the reason why they could not be compared.
/// `None` if the layer has no table.
pub(super) fn compare(
    layer: &PlannedLayer,
    tables: &SociTables<'_>,
    tar: &LayerScan,
    context: ScanContext<'_>,
    what: &str,
) -> Option<Result<Vec<ImagePath>, String>> {
    match scan(layer, tables, context, &format!("{what}, table of contents")) {
        Ok(PartialRead::Scanned(by_table)) => Some(Ok(differences(tar, &by_table.scan))),
        Ok(PartialRead::Unusable(why)) => Some(Err(why)),
        Ok(PartialRead::NotOffered) => None,
        Err(error) => Some(Err(error.to_string())),
    }
}

/// The paths that two scans of a layer describe differently. Of a path with several entries, the last counts.
fn differences(tar: &LayerScan, table: &LayerScan) -> Vec<ImagePath> {
    let (tar, table) = (by_path(tar), by_path(table));
    let paths: BTreeSet<_> = tar.keys().chain(table.keys()).copied().collect();
    paths.into_iter().filter(|path| tar.get(path) != table.get(path)).cloned().collect()
}

type Description<'s> = (&'s Entry, Option<&'s Vec<Result<Found, Gap>>>);

fn by_path(scan: &LayerScan) -> BTreeMap<&ImagePath, Description<'_>> {
    let described =
        scan.entries.iter().enumerate().map(|(index, entry)| (&entry.path, (entry, scan.found.get(&index))));
    described.filter(|(path, _)| !is_part_of_table(path)).collect()
}
