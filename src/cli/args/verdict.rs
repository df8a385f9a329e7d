//! `--fail-on`, `--incomplete` and `--exit-zero`: what fails, and the exit status.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};

use crate::cli::ExitStatus;
use crate::judge::Verdict;
use crate::model::FailOn;

#[derive(Clone, Debug, Args)]
pub(in crate::cli) struct VerdictArgs {
    /// Lowest severity that fails, or never
    ///
    /// SEVERITY is info, warning, error or never. The default is error, or that of the policy.
    #[arg(long, value_name = "SEVERITY", hide_possible_values = true, help_heading = "Policy",
          value_parser = PossibleValuesParser::new(FailOn::ALL.map(FailOn::name)).map(|name| fail_on(&name)))]
    pub(in crate::cli) fail_on: Option<FailOn>,
    /// Exit status of an incomplete verdict: that of a pass or of a failure, in place of 3
    ///
    /// The verdict is incomplete if no rule failed, but some could not be evaluated. Reports still say so.
    #[arg(long, value_name = "STATUS", hide_possible_values = true, help_heading = "Policy")]
    incomplete: Option<IncompleteAs>,
    /// Exit with status 0 whatever the verdict; errors still exit with 2
    #[arg(long, conflicts_with = "incomplete", help_heading = "Policy")]
    exit_zero: bool,
}

/// The value of `--incomplete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IncompleteAs {
    Pass,
    Fail,
}

/// How verdicts set the exit status.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cli) struct ExitChoice {
    incomplete: Option<IncompleteAs>,
    exit_zero: bool,
}

impl VerdictArgs {
    /// How verdicts set the exit status.
    pub(in crate::cli) fn exit(&self) -> ExitChoice {
        ExitChoice { incomplete: self.incomplete, exit_zero: self.exit_zero }
    }
}

impl ExitChoice {
    /// The exit status of a verdict.
    pub(in crate::cli) fn status(self, verdict: Verdict) -> ExitStatus {
        match (verdict, self.incomplete) {
            _ if self.exit_zero => ExitStatus::Pass,
            (Verdict::Incomplete, Some(IncompleteAs::Pass)) => ExitStatus::Pass,
            (Verdict::Incomplete, Some(IncompleteAs::Fail)) => ExitStatus::Fail,
            (verdict, _) => verdict.into(),
        }
    }
}

/// The value of a name, which the parser took from [`FailOn::ALL`].
fn fail_on(name: &str) -> FailOn {
    FailOn::ALL.into_iter().find(|value| value.name() == name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_verdicts() {
        let verdicts = [Verdict::Pass, Verdict::Incomplete, Verdict::Fail];
        let statuses = |incomplete, exit_zero| {
            let choice = ExitChoice { incomplete, exit_zero };
            verdicts.map(|verdict| choice.status(verdict).code())
        };
        assert_eq!(statuses(None, false), [0, 3, 1]);
        assert_eq!(statuses(Some(IncompleteAs::Pass), false), [0, 0, 1]);
        assert_eq!(statuses(Some(IncompleteAs::Fail), false), [0, 1, 1]);
        assert_eq!(statuses(None, true), [0, 0, 0]);
    }
}
