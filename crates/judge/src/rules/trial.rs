//! Tests rules with their own examples, and the examples with mutations of the rule that they must detect.

use super::condition::Condition;
use super::eval::{ConditionTruth, Scope};
use super::mutation::mutants;
use super::{Example, ImageNames, Outcome, Rule};
use model::document::Spanned;

use cel::common::ast::IdedExpr;

/// Result of testing a rule.
#[derive(Debug, Default)]
pub struct Trial {
    /// Number of examples.
    pub examples: usize,
    /// Messages, with their place, about wrong outcomes and missing examples.
    pub failures: Vec<String>,
    /// Number of mutations tried.
    pub mutants: usize,
    /// Mutations that no example detects.
    pub survivors: Vec<String>,
}

impl Rule {
    /// Judges every example; with `mutate`, also under every mutation of the rule.
    pub fn try_out(&self, mutate: bool) -> Trial {
        let mut trial = Trial::default();
        for (wanted, examples) in self.groups() {
            trial.examples += examples.len();
            if examples.is_empty() && (wanted != "not-applicable" || self.applies.is_some()) {
                trial.failures.push(format!("{}: {} has no example under '{wanted}'", self.file, self.id));
            }
            for example in examples {
                let place = format!("{}:{}", self.file, example.referenced.line());
                trial.failures.extend(self.differs(wanted, &example.value).map(|what| format!("{place}: {what}")));
            }
        }
        if mutate && trial.failures.is_empty() {
            self.mutate(&mut trial);
        }
        trial
    }

    fn groups(&self) -> [(&'static str, &[Spanned<Example>]); 4] {
        let examples = self.examples();
        [
            ("pass", &examples.pass),
            ("fail", &examples.fail),
            ("not-applicable", &examples.not_applicable),
            ("unknown", &examples.unknown),
        ]
    }

    /// Describes how an example's outcome or message differs from the expected one; `None` if it does not.
    fn differs(&self, wanted: &str, example: &Example) -> Option<String> {
        let facts = example.facts();
        let outcome = self.judge(&Scope::new(&facts), &ImageNames::default());
        if outcome.name() != wanted {
            let finding = outcome.finding().map(|finding| finding.message.clone());
            let detail = finding.or_else(|| outcome.gaps().first().map(ToString::to_string));
            let detail = detail.map(|detail| format!(": {detail}")).unwrap_or_default();
            return Some(format!("the outcome of this '{wanted}' example is '{}'{detail}", outcome.name()));
        }
        match (&outcome, &example.message) {
            (Outcome::Fail(finding), Some(message)) if finding.message != *message => {
                Some(format!("the message is\n    {}\n  but the example expects\n    {message}", finding.message))
            }
            _ => None,
        }
    }

    fn mutate(&self, trial: &mut Trial) {
        let facts: Vec<_> = self
            .groups()
            .into_iter()
            .flat_map(|(wanted, examples)| examples.iter().map(move |example| (wanted, example.value.facts())))
            .collect();
        let scopes: Vec<_> = facts.iter().map(|(wanted, facts)| (*wanted, Scope::new(facts))).collect();
        let notices = |applies: Option<&IdedExpr>, check: &IdedExpr| {
            scopes.iter().any(|(wanted, scope)| outcome(scope, applies, check) != *wanted)
        };
        let applies = self.applies.as_ref().map(Condition::root);
        let mut record = |name: &str, what: String, is_noticed: bool| {
            trial.mutants += 1;
            if !is_noticed {
                trial.survivors.push(format!("{}: {name}: no example detects {what}", self.file));
            }
        };
        for mutant in self.applies.iter().flat_map(mutants) {
            record("applies", mutant.what, notices(Some(&mutant.root), self.check.root()));
        }
        for mutant in mutants(&self.check) {
            record("check", mutant.what, notices(applies, &mutant.root));
        }
    }
}

/// Name of the outcome under the given conditions.
fn outcome(scope: &Scope<'_>, applies: Option<&IdedExpr>, check: &IdedExpr) -> &'static str {
    match applies.map_or(ConditionTruth::True, |applies| scope.truth_of(applies)) {
        ConditionTruth::True => {}
        ConditionTruth::False => return "not-applicable",
        ConditionTruth::Unknown(_) => return "unknown",
    }
    match scope.truth_of(check) {
        ConditionTruth::True => "pass",
        ConditionTruth::False => "fail",
        ConditionTruth::Unknown(_) => "unknown",
    }
}
