//! Comparison of two images: facts that differ, and rules whose outcomes differ.

use std::collections::BTreeMap;

use super::Verdict;
use super::rules::{Judgement, Outcome};
use crate::facts::Facts;
use crate::facts::key::KEYS;
use crate::model::{Fact, Severity, Value};

/// One of two images.
#[derive(Debug)]
pub struct Side<'a> {
    /// The reference, as the user wrote it.
    pub reference: &'a str,
    /// The facts that were read.
    pub facts: &'a Facts,
    /// One judgement for each rule.
    pub judgements: &'a [Judgement<'a>],
}

/// Comparison of an image with an earlier one.
#[derive(Debug)]
#[non_exhaustive]
pub struct Difference<'a> {
    /// The earlier image.
    pub before: Side<'a>,
    /// The later image.
    pub after: Side<'a>,
    /// Lowest severity at which a finding makes the later image worse.
    pub fail_on: Severity,
}

/// A rule whose outcome differs between the images.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChangedRule<'a> {
    /// The judgement of the earlier image.
    pub before: &'a Judgement<'a>,
    /// The judgement of the later image.
    pub after: &'a Judgement<'a>,
}

impl ChangedRule<'_> {
    /// Returns true if the rule fails now and did not before, or fails at new places.
    pub fn is_new(&self) -> bool {
        let Outcome::Fail(finding) = &self.after.outcome else { return false };
        match &self.before.outcome {
            Outcome::Fail(before) => !finding.places().is_subset(&before.places()),
            _ => true,
        }
    }

    /// Returns true if the rule failed and no longer does.
    pub fn is_fixed(&self) -> bool {
        let fails = |judgement: &Judgement<'_>| matches!(judgement.outcome, Outcome::Fail(_));
        fails(self.before) && !fails(self.after)
    }

    /// Returns true if the rule had an answer and no longer has one, which may be better or worse.
    pub fn is_lost(&self) -> bool {
        matches!(self.after.outcome, Outcome::Unknown(_)) && !matches!(self.before.outcome, Outcome::Unknown(_))
    }
}

/// A fact that differs between the images.
#[derive(Debug)]
#[non_exhaustive]
pub struct ChangedFact<'a> {
    /// Name of the fact.
    pub name: &'static str,
    /// The fact in the earlier image.
    pub before: &'a Fact,
    /// The fact in the later image.
    pub after: &'a Fact,
    /// Parts that disappeared or appeared: elements of lists, entries of maps, or the whole value.
    pub changes: Vec<Change>,
}

/// One part of a changed fact, as text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// Only the earlier image has it.
    Gone(String),
    /// Only the later image has it.
    New(String),
}

impl Difference<'_> {
    /// Returns `Fail` if a rule newly fails or fails at new places, `Incomplete` if a rule lost its answer, else
    /// `Pass`. Only rules of severity [`fail_on`](Self::fail_on) and above count.
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

    /// Rules whose outcomes differ, in the order of the rules.
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

    /// Facts that differ, in the order of [`KEYS`].
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
