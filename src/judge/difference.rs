//! What distinguishes two images: facts, and rules with another outcome.

use std::collections::BTreeMap;

use super::Verdict;
use super::rules::{Judgement, Outcome};
use crate::facts::Facts;
use crate::facts::key::KEYS;
use crate::model::{Fact, Severity, Value};

/// One of two images.
#[derive(Debug)]
pub struct Side<'a> {
    /// As the user wrote it.
    pub reference: &'a str,
    /// What was read.
    pub facts: &'a Facts,
    /// What the rules say of it.
    pub judgements: &'a [Judgement<'a>],
}

/// Two images, the second compared with the first.
#[derive(Debug)]
#[non_exhaustive]
pub struct Difference<'a> {
    /// The image before.
    pub before: Side<'a>,
    /// The image after.
    pub after: Side<'a>,
    /// Findings from this severity on make it worse.
    pub fail_on: Severity,
}

/// A rule whose outcome is not the same for both images.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChangedRule<'a> {
    /// For the image before.
    pub before: &'a Judgement<'a>,
    /// For the image after.
    pub after: &'a Judgement<'a>,
}

impl ChangedRule<'_> {
    /// Whether the rule fails and did not, or fails at places where it did not.
    pub fn is_new(&self) -> bool {
        let Outcome::Fail(finding) = &self.after.outcome else { return false };
        match &self.before.outcome {
            Outcome::Fail(before) => !finding.places().is_subset(&before.places()),
            _ => true,
        }
    }

    /// Whether the rule failed and does not any more.
    pub fn is_fixed(&self) -> bool {
        let fails = |judgement: &Judgement<'_>| matches!(judgement.outcome, Outcome::Fail(_));
        fails(self.before) && !fails(self.after)
    }

    /// Whether the rule could be answered and cannot any more, be that better or worse.
    pub fn is_lost(&self) -> bool {
        matches!(self.after.outcome, Outcome::Unknown(_)) && !matches!(self.before.outcome, Outcome::Unknown(_))
    }
}

/// A fact that is not the same in both images.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChangedFact<'a> {
    /// Its name.
    pub name: &'static str,
    /// In the image before.
    pub before: &'a Fact,
    /// In the image after.
    pub after: &'a Fact,
    /// What of it is gone and what is new: elements of lists, entries of maps, or the whole.
    pub changes: Vec<Change>,
}

/// One part of a changed fact, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Only the image before has it.
    Gone(String),
    /// Only the image after has it.
    New(String),
}

impl Difference<'_> {
    /// Whether the second image is worse: a rule fails that did not, or at other places, or cannot be answered any more.
    pub fn verdict(&self) -> Verdict {
        let changed = self.rules();
        let counts = |wanted: &dyn Fn(&ChangedRule<'_>) -> bool| {
            changed.iter().any(|changed| changed.after.rule.severity >= self.fail_on && wanted(changed))
        };
        if counts(&|changed| changed.is_new()) {
            Verdict::Fail
        } else if counts(&|changed| changed.is_lost()) {
            Verdict::Incomplete
        } else {
            Verdict::Pass
        }
    }

    /// The rules whose outcomes differ, in the order of the rules.
    pub fn rules(&self) -> Vec<ChangedRule<'_>> {
        let after: BTreeMap<&str, &Judgement<'_>> =
            self.after.judgements.iter().map(|judgement| (&*judgement.rule.id, judgement)).collect();
        let pair = |before| Some(ChangedRule { before, after: after.get(&*before.rule.id).copied()? });
        let is_changed = |changed: &ChangedRule<'_>| {
            changed.before.outcome.name() != changed.after.outcome.name()
                || changed.before.fingerprint() != changed.after.fingerprint()
        };
        self.before.judgements.iter().filter_map(pair).filter(is_changed).collect()
    }

    /// The facts that differ, in the order of [`KEYS`].
    pub fn facts(&self) -> impl Iterator<Item = ChangedFact<'_>> {
        KEYS.iter().filter_map(|key| {
            let (before, after) = (self.before.facts.view(key), self.after.facts.view(key));
            let changes = changes(before, after);
            (!changes.is_empty()).then_some(ChangedFact { name: key.name, before, after, changes })
        })
    }
}

fn changes(before: &Fact, after: &Fact) -> Vec<Change> {
    let (before, after) = (parts(before), parts(after));
    let gone = before.iter().filter(|part| !after.contains(part)).cloned().map(Change::Gone);
    let new = after.iter().filter(|part| !before.contains(part)).cloned().map(Change::New);
    gone.chain(new).collect()
}

fn parts(fact: &Fact) -> Vec<String> {
    match fact {
        Fact::Absent => Vec::new(),
        Fact::Unknown(gap) => vec![format!("unknown: {gap}")],
        Fact::Seen { value: Value::List(values), .. } => values.iter().map(ToString::to_string).collect(),
        Fact::Seen { value: Value::Map(entries), .. } => {
            entries.iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
        Fact::Seen { value, .. } => vec![value.to_string()],
    }
}
