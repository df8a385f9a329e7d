//! `--fail-on` and `--incomplete`: what fails, and the exit status.

use clap::builder::{PossibleValuesParser, TypedValueParser as _};
use clap::{Args, ValueEnum};

use crate::cli::ExitStatus;
use judge::Verdict;
use model::FailOn;

#[derive(Clone, Copy, Debug, Args)]
pub(in crate::cli) struct FailOnArg {
    /// Lowest severity that fails, or never
    ///
    /// SEVERITY is info, warning, error or never. The default is error, or that of the policy. With never, every verdict is a
    /// pass; errors still exit with 2.
    #[arg(long, value_name = "SEVERITY", hide_possible_values = true, help_heading = "Policy",
          value_parser = PossibleValuesParser::new(FailOn::ALL.map(FailOn::name)).map(|name| fail_on(&name)))]
    pub(in crate::cli) fail_on: Option<FailOn>,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(in crate::cli) struct IncompleteArg {
    /// Exit status of an incomplete verdict: that of a pass or of a failure, in place of 3
    ///
    /// The verdict is incomplete if no rule failed, but some could not be evaluated. Reports still say so.
    #[arg(long, value_name = "STATUS", hide_possible_values = true, help_heading = "Policy")]
    incomplete: Option<IncompleteAs>,
}

/// The value of `--incomplete`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum IncompleteAs {
    Pass,
    Fail,
}

impl IncompleteArg {
    /// The exit status of a verdict.
    pub(in crate::cli) fn status(self, verdict: Verdict) -> ExitStatus {
        match (verdict, self.incomplete) {
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
        let statuses = |incomplete| verdicts.map(|verdict| IncompleteArg { incomplete }.status(verdict).code());
        assert_eq!(statuses(None), [0, 3, 1]);
        assert_eq!(statuses(Some(IncompleteAs::Pass)), [0, 0, 1]);
        assert_eq!(statuses(Some(IncompleteAs::Fail)), [0, 1, 1]);
    }
}
