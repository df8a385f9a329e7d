//! Sites of a finding, down to the build step: the image's maintainer must know which line to change.

use std::io;

use super::page::{Page, cut, label};
use crate::Report;
use image::history::{layer, step};
use model::Site;

/// Maximum sites shown for one finding without `verbose`.
const SHOWN: usize = 6;

/// Writes the sites of a finding, grouped by layer.
pub(super) fn write(
    at: &[Site],
    report: &Report<'_>,
    column: usize,
    verbose: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let image = report.image;
    let shown = at.get(..SHOWN).filter(|_| !verbose).unwrap_or(at);
    for group in shown.chunk_by(|a, b| a.layer().is_some() && a.layer() == b.layer()) {
        for (index, site) in group.iter().enumerate() {
            page.row(2, label(if index == 0 { "at" } else { "" }), column, &site.to_string())?;
        }
        let Some(first) = group.first() else { continue };
        if let Some(index) = first.layer() {
            page.row(2, label(""), column, &layer(index, image))?;
        }
        if let Some(step) = step(first, image) {
            let step = if verbose { step } else { cut(&step, page.room(column)) };
            page.row(2, label(""), column, &step)?;
        }
        if let Some(line) = report.dockerfile.and_then(|dockerfile| dockerfile.place(first, image)) {
            page.row(2, label(""), column, &line)?;
        }
    }
    match at.len() - shown.len() {
        0 => Ok(()),
        more => page.row(2, label(""), column, &format!("and {more} more")),
    }
}
