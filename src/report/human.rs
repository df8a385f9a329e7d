//! For people.

use std::io::{self, Write};

use super::Report;

/// How the terminal wants it.
#[derive(Clone, Debug)]
pub struct Style {
    /// Whether colours are wanted.
    pub color: bool,
    /// Columns.
    pub width: usize,
    /// Whether to show what passed, and why rules do not apply.
    pub verbose: bool,
}

pub(super) fn write(report: &Report<'_>, _style: &Style, out: &mut dyn Write) -> io::Result<()> {
    for n in &report.image.notes {
        writeln!(out, "NOTE {n}")?;
    }
    for (n, f) in report.facts.iter() {
        writeln!(out, "{n}: {f:?}")?;
    }
    writeln!(out, "{}", report.image.reference)
}
