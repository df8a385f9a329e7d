//! The overall verdict on an image.

use super::rules::{Judgement, Outcome};
use model::{FailOn, Owner};

/// The overall result for an image, ordered from best to worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Every rule that counts passed or does not apply.
    Pass,
    /// No rule that counts failed, but at least one has no answer.
    Incomplete,
    /// A rule that counts failed.
    Fail,
}

impl Verdict {
    /// Combines the judgements of rules that [count](Judgement::counts) for `fail_on` and `fail_for`. A known
    /// failure outweighs an unknown.
    pub fn of(judgements: &[Judgement<'_>], fail_on: FailOn, fail_for: &[Owner]) -> Self {
        let counts = |wanted: fn(&Outcome) -> bool| {
            judgements.iter().any(|judgement| judgement.counts(fail_on, fail_for) && wanted(&judgement.outcome))
        };
        if counts(|outcome| outcome.failure().is_some()) {
            Self::Fail
        } else if counts(Outcome::is_unknown) {
            Self::Incomplete
        } else {
            Self::Pass
        }
    }

    /// The worst of several verdicts, such as those of one image on all its hosts; `None` if there are none.
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

#[cfg(test)]
mod tests {
    use crate::rules::{Finding, ImageNames, RuleSet, judge};
    use facts::Facts;
    use model::Gap;

    use super::*;

    /// A rule with this severity and owner.
    fn rule(id: &str, severity: &str, owner: &str) -> (String, String) {
        let text = format!(
            "id: {id}\ntitle: t\nseverity: {severity}\nowner: {owner}\nsince: '0.1'\ncheck: 'true'\nmessage: m\nwhy: w\n\
             fix: f\nreferences: [https://example.org]\nexamples: {{pass: [], fail: []}}\n"
        );
        (id.to_owned(), text)
    }

    #[test]
    fn rules_count_by_severity_and_owner() {
        let documents =
            [rule("a/error", "error", "image"), rule("a/warning", "warning", "image"), rule("a/host", "error", "host")];
        let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
        let rules = RuleSet::from_yaml(&documents).unwrap();
        let facts = Facts::default();
        let fail = || Outcome::Fail(Finding { message: "m".to_owned(), at: vec![], fix: String::new(), note: None });
        let unknown = || Outcome::Unknown(vec![Gap::new("why")]);
        let verdict = |outcomes: &[(&str, Outcome)], fail_on: FailOn, fail_for: &[Owner]| {
            let mut judgements = judge(&rules, &facts, &ImageNames::default());
            for judgement in &mut judgements {
                let outcome = outcomes.iter().find(|(id, _)| judgement.rule.id == *id);
                judgement.outcome = outcome.map_or(Outcome::Pass, |(_, outcome)| outcome.clone());
            }
            Verdict::of(&judgements, fail_on, fail_for)
        };
        let all = [Owner::Image, Owner::Host];
        let image = [Owner::Image];
        for (outcomes, fail_on, fail_for, expected) in [
            (&[][..], FailOn::Warning, &all[..], Verdict::Pass),
            (&[("a/error", fail())], FailOn::Error, &all, Verdict::Fail),
            (&[("a/error", unknown())], FailOn::Error, &all, Verdict::Incomplete),
            (&[("a/error", unknown()), ("a/host", fail())], FailOn::Error, &all, Verdict::Fail),
            (&[("a/error", unknown()), ("a/host", fail())], FailOn::Error, &image, Verdict::Incomplete),
            (&[("a/host", fail())], FailOn::Error, &image, Verdict::Pass),
            (&[("a/warning", fail())], FailOn::Error, &all, Verdict::Pass),
            (&[("a/warning", fail())], FailOn::Warning, &all, Verdict::Fail),
            (&[("a/error", fail())], FailOn::Warning, &all, Verdict::Fail),
            (&[("a/warning", unknown())], FailOn::Info, &image, Verdict::Incomplete),
            (&[("a/error", fail()), ("a/host", unknown())], FailOn::Never, &all, Verdict::Pass),
            (&[("a/warning", Outcome::NotApplicable)], FailOn::Info, &all, Verdict::Pass),
        ] {
            assert_eq!(
                verdict(outcomes, fail_on, fail_for),
                expected,
                "{outcomes:?} from {fail_on:?} on for {fail_for:?}"
            );
        }
    }

    #[test]
    fn verdicts_have_names() {
        let names = [Verdict::Pass, Verdict::Fail, Verdict::Incomplete].map(Verdict::name);
        assert_eq!(names, ["pass", "fail", "incomplete"]);
    }
}
