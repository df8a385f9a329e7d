//! What all judgements of an image come to.

use super::Report;
use crate::model::{Owner, Severity};
use crate::rules::{Judgement, Outcome};

/// The answer to the one question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every rule that counts passed or does not apply.
    Pass,
    /// A rule that counts failed.
    Fail,
    /// No rule that counts failed, and one of them could not be answered.
    Incomplete,
}

impl Verdict {
    /// Counts rules of severity `fail_on` and worse whose findings are somebody's of `fail_for`. A known failure weighs more
    /// than an unknown.
    pub fn of(judgements: &[Judgement<'_>], fail_on: Severity, fail_for: &[Owner]) -> Self {
        let counts = |wanted: fn(&Outcome) -> bool| {
            judgements.iter().any(|judgement| {
                let rule = judgement.rule;
                rule.severity >= fail_on && fail_for.contains(&rule.owner) && wanted(&judgement.outcome)
            })
        };
        if counts(|outcome| matches!(outcome, Outcome::Fail(_))) {
            Self::Fail
        } else if counts(|outcome| matches!(outcome, Outcome::Unknown(_))) {
            Self::Incomplete
        } else {
            Self::Pass
        }
    }

    /// What one image comes to on all its hosts: the worst of them.
    pub(super) fn worst(reports: &[Report<'_>]) -> Option<Self> {
        let verdicts: Vec<_> = reports.iter().filter_map(Report::verdict).collect();
        [Self::Fail, Self::Incomplete, Self::Pass].into_iter().find(|verdict| verdicts.contains(verdict))
    }

    /// Lower-case name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Incomplete => "incomplete",
        }
    }
}
