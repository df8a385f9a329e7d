//! Baselines: known problems of an earlier report or of another image, so that only new ones fail.

use std::collections::BTreeSet;

use crate::judge::rules::{Judgement, Outcome, Problem, Waived};

/// Known problems.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    known: BTreeSet<KnownProblem>,
    origin: BaselineOrigin,
}

/// Where known problems come from.
#[derive(Clone, Debug, PartialEq, Eq)]
enum BaselineOrigin {
    /// The reports in the file of this name.
    Reports(String),
    /// The image with this reference.
    Image(String),
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

    /// Returns true if both come from one rule and both are findings, or both are missing answers.
    fn is_like(&self, other: &Self) -> bool {
        self.rule == other.rule && self.places.is_some() == other.places.is_some()
    }
}

impl Baseline {
    /// Returns an empty baseline for the problems in the reports of a file.
    pub fn of_reports(file: &str) -> Self {
        Self { known: BTreeSet::new(), origin: BaselineOrigin::Reports(file.to_owned()) }
    }

    /// Returns an empty baseline for the problems of an image that others are compared with.
    pub fn of_image(reference: &str) -> Self {
        Self { known: BTreeSet::new(), origin: BaselineOrigin::Image(reference.to_owned()) }
    }

    /// Adds the problems of one more image.
    pub fn add(&mut self, judgements: &[Judgement<'_>]) {
        self.known.extend(judgements.iter().filter_map(KnownProblem::of));
    }

    /// Waives the known problems, and returns a notice for each known problem that no longer occurs.
    pub fn accept<'r>(&self, judgements: Vec<Judgement<'r>>) -> (Vec<Judgement<'r>>, Vec<String>) {
        let mut met = Vec::new();
        let judgements = judgements.into_iter().map(|judgement| match KnownProblem::of(&judgement) {
            Some(problem) => {
                let is_known = self.has(&problem);
                met.push(problem);
                let outcome = if is_known { self.waive(judgement.outcome) } else { judgement.outcome };
                Judgement { outcome, ..judgement }
            }
            None => judgement,
        });
        let judgements = judgements.collect();
        let gone = self.known.iter().filter(|known| !met.iter().any(|problem| problem.is_like(known)));
        let (BaselineOrigin::Reports(origin) | BaselineOrigin::Image(origin)) = &self.origin;
        let notices = gone.map(|known| format!("{} of {origin} is fixed in this image", known.rule));
        (judgements, notices.collect())
    }

    /// Returns true if a problem is known. A finding that has lost some of its places is still known.
    fn has(&self, problem: &KnownProblem) -> bool {
        let mut like = self.known.iter().filter(|known| known.is_like(problem)).peekable();
        let is_there = like.peek().is_some();
        let places: BTreeSet<&String> = like.filter_map(|known| known.places.as_ref()).flatten().collect();
        is_there && problem.places.iter().flatten().all(|place| places.contains(place))
    }

    fn waive(&self, outcome: Outcome) -> Outcome {
        let problem = match outcome {
            Outcome::Fail(finding) => Problem::Failure(finding),
            Outcome::Unknown(gaps) => Problem::Unknown(gaps),
            other => return other,
        };
        let (reason, place) = match &self.origin {
            BaselineOrigin::Reports(name) => ("the report that it is compared with has it too", name),
            BaselineOrigin::Image(reference) => ("the image that it is compared with has it too", reference),
        };
        Outcome::Waived(Waived { problem, reason: reason.to_owned(), expires: None, place: place.clone() })
    }
}
