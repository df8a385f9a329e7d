//! `--fail-on` and `--incomplete`: what fails, and the exit status.

use clap::Args;

use super::choice::choice;
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
          value_parser = choice(FailOn::ALL.map(|value| (value.name(), value))))]
    pub(in crate::cli) fail_on: Option<FailOn>,
}

#[derive(Clone, Copy, Debug, Default, Args)]
pub(in crate::cli) struct IncompleteArg {
    /// Exit status of an incomplete verdict: that of a pass or of a failure, in place of 3
    ///
    /// The verdict is incomplete if no rule failed, but some could not be evaluated. Reports still say so.
    #[arg(long, value_name = "STATUS", hide_possible_values = true, help_heading = "Policy",
          value_parser = choice([("pass", ExitStatus::Pass), ("fail", ExitStatus::Fail)]))]
    incomplete: Option<ExitStatus>,
}

impl IncompleteArg {
    /// The exit status of a verdict.
    pub(in crate::cli) fn status(self, verdict: Verdict) -> ExitStatus {
        match (verdict, self.incomplete) {
            (Verdict::Incomplete, Some(status)) => status,
            (verdict, _) => verdict.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_of_verdicts() {
        let verdicts = [Verdict::Pass, Verdict::Incomplete, Verdict::Fail];
        let statuses = |incomplete| verdicts.map(|verdict| IncompleteArg { incomplete }.status(verdict).code());
        assert_eq!(statuses(None), [0, 3, 1]);
        assert_eq!(statuses(Some(ExitStatus::Pass)), [0, 0, 1]);
        assert_eq!(statuses(Some(ExitStatus::Fail)), [0, 1, 1]);
    }
}
