//! Number of rules with each outcome, and the words of a verdict.

use schemars::JsonSchema;
use serde::Serialize;

use super::entry::EntryState;
use judge::Verdict;
use judge::rules::Judgement;
use model::{Severity, counted};

/// Number of rules with each outcome.
// A rule that differs between hosts counts once for each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "Counts")]
pub(super) struct OutcomeCounts {
    /// Failures of severity error.
    #[serde(rename = "error")]
    pub(super) errors: usize,
    /// Failures of severity warning.
    #[serde(rename = "warning")]
    pub(super) warnings: usize,
    /// Failures of severity info.
    #[serde(rename = "info")]
    pub(super) infos: usize,
    /// Rules without an answer.
    pub(super) unknown: usize,
    /// Accepted failures and missing answers.
    pub(super) waived: usize,
    /// Failures and missing answers that another finding explains.
    #[serde(rename = "consequence")]
    pub(super) consequences: usize,
    /// Rules that found no problem.
    #[serde(rename = "pass")]
    pub(super) passed: usize,
    /// Rules that do not concern the image.
    pub(super) not_applicable: usize,
}

impl OutcomeCounts {
    pub(super) fn of<'j>(judgements: impl IntoIterator<Item = &'j Judgement<'j>>) -> Self {
        let mut counts = Self::default();
        for judgement in judgements {
            *match (EntryState::from(&judgement.outcome), judgement.rule.severity) {
                (EntryState::Failed, Severity::Error) => &mut counts.errors,
                (EntryState::Failed, Severity::Warning) => &mut counts.warnings,
                (EntryState::Failed, Severity::Info) => &mut counts.infos,
                (EntryState::Unknown, _) => &mut counts.unknown,
                (EntryState::Waived { .. }, _) => &mut counts.waived,
                (EntryState::Consequence { .. }, _) => &mut counts.consequences,
                (EntryState::Passed, _) => &mut counts.passed,
                (EntryState::NotApplicable, _) => &mut counts.not_applicable,
            } += 1;
        }
        counts
    }

    /// The problems by number, such as `1 warning, 2 unknown`; empty if nothing was found and every rule has an answer.
    pub(super) fn problems(&self) -> String {
        let parts = [
            (self.errors, "error", "errors"),
            (self.warnings, "warning", "warnings"),
            (self.infos, "info", "info"),
            (self.waived, "waived", "waived"),
            (self.consequences, "consequence", "consequences"),
            (self.unknown, "unknown", "unknown"),
        ];
        listed(&parts)
    }

    /// The rules without a problem by number.
    pub(super) fn rest(&self) -> String {
        listed(&[(self.passed, "passed", "passed"), (self.not_applicable, "not applicable", "not applicable")])
    }

    /// The word for a verdict. A pass is never without the problems that do not prevent it: `PASS with 1 warning`.
    pub(super) fn verdict(&self, verdict: Verdict, word: &str) -> String {
        let problems = self.problems();
        if verdict == Verdict::Pass && !problems.is_empty() {
            format!("{word} with {problems}")
        } else {
            word.to_owned()
        }
    }
}

fn listed(parts: &[(usize, &str, &str)]) -> String {
    let parts = parts.iter().filter(|(count, ..)| *count > 0).map(|(count, one, many)| counted(*count, one, many));
    parts.collect::<Vec<_>>().join(", ")
}
