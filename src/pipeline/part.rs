//! A layer of which only those parts are read that matter, where its form and its medium let us.

use std::io;

use crate::scan::{Partly, Ranged, is_offered, scan_partly};
use crate::source::Source;

use super::layers::Scanned;
use super::{Error, Means, PlannedLayer};

/// What became of it.
pub(super) enum Part {
    Scanned(Scanned),
    /// It must be read whole, and why.
    Whole(String),
    /// It says nothing of parts.
    NotOffered,
}

/// Scans a layer by its table of contents, if it has one.
pub(super) fn scan(layer: &PlannedLayer, source: &dyn Source, means: Means<'_>, what: &str) -> Result<Part, Error> {
    let Some(blob) = layer.place.blob() else { return Ok(Part::NotOffered) };
    let open = |range| source.open_range(&blob, range).map_err(io::Error::other);
    let ranged = Ranged {
        annotations: &layer.annotations,
        ztoc: None,
        size: blob.size,
        open: &open,
        cost: source.range_cost(),
        threads: means.jobs,
    };
    if !is_offered(&ranged) {
        return Ok(Part::NotOffered);
    }
    let meter = means.progress.begin(what, Some(blob.size));
    let partly = scan_partly(&ranged, means.limits, &*meter, means.cancel)
        .map_err(|error| Error::Layer { layer: what.to_owned(), error })?;
    Ok(match partly {
        Partly::Scanned { scan, read, format } => {
            Part::Scanned(Scanned { read, part: Some(format), ..Scanned::whole(scan, blob.digest, blob.size) })
        }
        Partly::Whole(why) => Part::Whole(format!("read whole: {why}")),
    })
}
