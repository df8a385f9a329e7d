//! A layer of which only those parts are read that matter, where its form and its medium let us.

use std::io;

use crate::layer::scan::{Partly, Ranged, ScanError, is_offered, scan_partly};

use super::layers::Scanned;
use super::soci::{Binding, Tables, Trouble};
use super::{Error, Means, PlannedLayer};

/// What became of it.
pub(super) enum Part {
    Scanned(Scanned),
    /// It must be read whole, and why.
    Whole(String),
    /// It says nothing of parts.
    NotOffered,
}

/// The table of contents by which a layer was read in part.
#[derive(Clone, Copy, Debug)]
pub(super) struct ByTable {
    /// For reports.
    pub(super) form: &'static str,
    /// Whether the image's digest covers it.
    pub(super) is_verified: bool,
}

/// Scans a layer by its table of contents, if it has one. Its own comes before one that lies beside it.
pub(super) fn scan(layer: &PlannedLayer, tables: &Tables<'_>, means: Means<'_>, what: &str) -> Result<Part, Error> {
    let Some(blob) = layer.place.blob() else { return Ok(Part::NotOffered) };
    let source = tables.source;
    let open = |range| source.open_range(&blob, range).map_err(io::Error::other);
    let mut ranged = Ranged {
        annotations: &layer.annotations,
        ztoc: None,
        size: blob.size,
        open: &open,
        cost: source.range_cost(),
        threads: means.jobs,
    };
    let failed = |error| Error::Layer { layer: what.to_owned(), error };
    let beside = if is_offered(&ranged) { Ok(None) } else { tables.of(&blob.digest) };
    let beside = match beside {
        Ok(beside) => beside,
        Err(Trouble::Unusable(why)) => return Ok(Part::Whole(format!("read whole: {why}"))),
        Err(Trouble::Fatal(why)) => return Err(failed(ScanError::Piece(why))),
    };
    ranged.ztoc = beside.as_ref().map(|table| &*table.bytes);
    if !is_offered(&ranged) {
        return Ok(Part::NotOffered);
    }
    let is_verified = beside.as_ref().is_none_or(|table| table.binding == Binding::ByImage);
    let meter = means.progress.begin(what, Some(blob.size));
    Ok(match scan_partly(&ranged, means.limits, &*meter, means.cancel).map_err(failed)? {
        Partly::Scanned { scan, read, format } => {
            let part = Some(ByTable { form: format, is_verified });
            Part::Scanned(Scanned { read, part, ..Scanned::whole(scan, blob.digest, blob.size) })
        }
        Partly::Whole(why) => Part::Whole(format!("read whole: {why}")),
    })
}
