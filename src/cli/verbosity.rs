//! Amount of progress output on standard error.

use std::io::{self, IsTerminal as _};

use model::Environment;

use super::args::OutputArgs;

/// Output on standard error in addition to errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verbosity {
    Quiet,
    /// Periodic lines.
    Lines,
    Bars,
}

impl Verbosity {
    pub(super) fn of(output: &OutputArgs, environment: &Environment) -> Self {
        let is_dumb = environment.get("TERM") == Some("dumb") || environment.get("CI").is_some();
        if output.quiet {
            Self::Quiet
        } else if io::stderr().is_terminal() && !is_dumb {
            Self::Bars
        } else {
            Self::Lines
        }
    }
}
