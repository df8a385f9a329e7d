//! A layer of which only those parts are read that matter, where its form and its medium let us.

use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;

use crate::model::{Limits, Progress};
use crate::scan::{Cancel, Partly, Ranged, is_offered, scan_partly};
use crate::source::Source;

use super::layers::Scanned;
use super::{Error, PlannedLayer};

/// Where parts of layers can be had.
#[derive(Clone, Copy)]
pub(super) struct Parts<'a> {
    pub(super) source: &'a dyn Source,
    /// Threads that read one layer.
    pub(super) threads: NonZeroUsize,
}

/// What became of it.
pub(super) enum Part {
    Scanned(Scanned),
    /// It must be read whole, and why.
    Whole(String),
    /// It says nothing of parts.
    NotOffered,
}

/// Scans a layer by its table of contents, if it has one.
pub(super) fn scan(
    layer: &PlannedLayer,
    Parts { source, threads }: Parts<'_>,
    limits: &Limits,
    what: &str,
    progress: &dyn Progress,
    cancel: &Cancel,
) -> Result<Part, Error> {
    let Some(blob) = layer.place.blob().filter(|_| is_offered(&layer.annotations)) else { return Ok(Part::NotOffered) };
    let open = |range| source.open_range(&blob, range).map_err(io::Error::other);
    let ranged =
        Ranged { annotations: &layer.annotations, size: blob.size, open: &open, cost: source.range_cost(), threads };
    let meter = progress.begin(what, Some(blob.size));
    let partly = scan_partly(&ranged, limits, &*meter, cancel)
        .map_err(|error| Error::Layer { layer: what.to_owned(), error })?;
    Ok(match partly {
        Partly::Scanned { scan, read, format } => Part::Scanned(Scanned {
            scan: Arc::new(scan),
            stored: blob.digest,
            size: blob.size,
            read,
            part: Some(format),
            note: None,
        }),
        Partly::Whole(why) => Part::Whole(format!("read whole: {why}")),
    })
}
