//! Results of a probe: the main facts, and the tables.

use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use crate::measured::{self, MeasuredTable};
use facts::Facts;
use probe::recording::Recording;

/// Column of the values.
const COLUMN: usize = 14;

/// Writes the engine, the main facts and the steps, in a few lines.
pub(super) fn summary(probe: &Recording, facts: &Facts, page: &mut Page<'_>) -> io::Result<()> {
    measured::rows(probe, facts).iter().try_for_each(|(name, text)| page.row(2, label(name), COLUMN, text))
}

/// Writes the topology matrix and the other tables.
pub(super) fn tables(probe: &Recording, facts: &Facts, page: &mut Page<'_>) -> io::Result<()> {
    for measured in measured::tables(probe, facts) {
        page.blank()?;
        page.heading(&measured.title, page::bold(AnsiColor::Cyan), "")?;
        table(&measured, page)?;
        measured.notes.iter().try_for_each(|note| page.text(2, note))?;
    }
    Ok(())
}

/// Writes rows of cells, each column as wide as its widest cell; the first cell is the label. Rows without titles hold
/// sentences, which are wrapped.
fn table(MeasuredTable { rows, has_head, .. }: &MeasuredTable, page: &mut Page<'_>) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().skip(1);
        let text: Vec<_> =
            cells.map(|(_, (cell, width))| if *has_head { format!("{cell:>width$}") } else { cell.clone() }).collect();
        let first = row.first().map_or("", String::as_str);
        let column = 4 + widths.first().copied().unwrap_or_default();
        let name = label(if first.is_empty() { " " } else { first });
        if *has_head {
            page.verbatim(2, name, column, &text.join("  "))?;
        } else {
            page.row(2, name, column, &text.join("  "))?;
        }
    }
    Ok(())
}
