//! Baselines: known problems of an earlier report or of another image, so that only new ones fail.

use std::collections::BTreeSet;

use crate::rules::{Judgement, Outcome, Problem, Waived};

/// Known problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    known: BTreeSet<KnownProblem>,
    /// The file or the image.
    origin: String,
    /// Why a problem that it has is accepted.
    reason: &'static str,
}

/// A problem, identified by what a rebuild of the image does not change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct KnownProblem {
    rule: String,
    /// Places of the finding; `None` if the rule had no answer.
    places: Option<BTreeSet<String>>,
}

impl KnownProblem {
    fn of(judgement: &Judgement<'_>) -> Option<Self> {
        let places = match judgement.outcome.failure() {
            Some(finding) => Some(finding.places()),
            None if judgement.outcome.is_unknown() => None,
            None => return None,
        };
        Some(Self { rule: judgement.rule.id.clone(), places })
    }
}

impl Baseline {
    /// Returns an empty baseline for the problems in the reports of a file.
    pub fn of_reports(file: &str) -> Self {
        let reason = "the report that it is compared with has it too";
        Self { known: BTreeSet::new(), origin: file.to_owned(), reason }
    }

    /// Returns an empty baseline for the problems of an image that others are compared with.
    pub fn of_image(reference: &str) -> Self {
        let reason = "the image that it is compared with has it too";
        Self { known: BTreeSet::new(), origin: reference.to_owned(), reason }
    }

    /// Adds the problems of one more image.
    pub fn add(&mut self, judgements: &[Judgement<'_>]) {
        self.known.extend(judgements.iter().filter_map(KnownProblem::of));
    }

    /// Waives the known problems, and returns a notice for each rule that has known problems and now finds none. A rule
    /// that has no answer, or is not in force, does not show that anything is fixed.
    pub fn accept<'r>(&self, mut judgements: Vec<Judgement<'r>>) -> (Vec<Judgement<'r>>, Vec<String>) {
        let origin = &self.origin;
        let mut notices = Vec::new();
        for judgement in &mut judgements {
            let rule = &judgement.rule.id;
            let finds_nothing = matches!(judgement.outcome, Outcome::Pass | Outcome::NotApplicable);
            if finds_nothing && self.known.iter().any(|known| known.rule == *rule) {
                notices.push(format!("{rule} of {origin} is fixed in this image"));
            }
            if KnownProblem::of(judgement).is_some_and(|problem| self.has(&problem)) {
                self.waive(&mut judgement.outcome);
            }
        }
        (judgements, notices)
    }

    /// Returns true if a problem is known. A finding that has lost some of its places is still known, and a missing answer
    /// is known only as one.
    fn has(&self, problem: &KnownProblem) -> bool {
        let is_like =
            |known: &&KnownProblem| known.rule == problem.rule && known.places.is_some() == problem.places.is_some();
        let mut like = self.known.iter().filter(is_like).peekable();
        let is_there = like.peek().is_some();
        let places: BTreeSet<&String> = like.filter_map(|known| known.places.as_ref()).flatten().collect();
        is_there && problem.places.iter().flatten().all(|place| places.contains(place))
    }

    fn waive(&self, outcome: &mut Outcome) {
        let problem = match outcome {
            Outcome::Fail(finding) => Problem::Failure(finding.clone()),
            Outcome::Unknown(gaps) => Problem::Unknown(gaps.clone()),
            _ => return,
        };
        *outcome = Outcome::Waived(Waived {
            problem,
            reason: self.reason.to_owned(),
            expires: None,
            place: self.origin.clone(),
        });
    }
}
