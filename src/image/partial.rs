//! Partial reads of layers: only the relevant parts are read, where the layer's format and its medium allow it.

use std::io;

use crate::layer::scan::{Partly, Ranged, ScanError, is_offered, scan_partly};

use super::plan::PlannedLayer;
use super::scanned::{ScannedLayer, TableOfContents};
use super::soci::{Binding, SociError, SociTables};
use super::{ImageError, ScanContext};

/// Outcome of a partial read.
pub(super) enum PartialRead {
    Scanned(ScannedLayer),
    /// The layer must be read whole, for this reason.
    Whole(String),
    /// The layer does not support partial reads.
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
    let beside = if is_offered(&ranged) { Ok(None) } else { tables.of(&blob.digest) };
    let beside = match beside {
        Ok(beside) => beside,
        Err(SociError::Unusable(why)) => return Ok(PartialRead::Whole(format!("read whole: {why}"))),
        Err(SociError::Fatal(why)) => return Err(failed(ScanError::Piece(why))),
    };
    ranged.ztoc = beside.as_ref().map(|table| &*table.bytes);
    if !is_offered(&ranged) {
        return Ok(PartialRead::NotOffered);
    }
    let is_verified = beside.as_ref().is_none_or(|table| table.binding == Binding::ByImage);
    let meter = context.progress.begin(what, Some(blob.size));
    Ok(match scan_partly(&ranged, context.limits, &*meter, context.cancel).map_err(failed)? {
        Partly::Scanned { scan, read, format } => {
            let part = Some(TableOfContents { form: format, is_verified });
            PartialRead::Scanned(ScannedLayer { read, part, ..ScannedLayer::whole(scan, blob.digest, blob.size) })
        }
        Partly::Whole(why) => PartialRead::Whole(format!("read whole: {why}")),
    })
}
