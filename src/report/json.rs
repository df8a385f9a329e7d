//! For programs.

use std::io::{self, Write};

use super::Report;

pub(super) fn write(report: &Report<'_>, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", report.image.reference)
}
