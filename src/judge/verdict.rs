//! What all judgements of an image come to.

use super::rules::{Judgement, Outcome};
use crate::model::{Owner, Severity};

/// The answer to the one question.
///
/// Ordered from the best to the worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every rule that counts passed or does not apply.
    Pass,
    /// No rule that counts failed, and one of them could not be answered.
    Incomplete,
    /// A rule that counts failed.
    Fail,
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

    /// The worst of several, as of one image on all its hosts; `None` of none.
    pub fn worst(verdicts: impl IntoIterator<Item = Self>) -> Option<Self> {
        verdicts.into_iter().max()
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
