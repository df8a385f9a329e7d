//! Comparison of two images: facts that differ, and rules whose outcomes differ.

use std::collections::BTreeMap;

use super::Verdict;
use super::rules::{Judgement, Outcome};
use facts::Facts;
use facts::key::KEYS;
use model::{Fact, FailOn, Value};

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
pub struct Difference<'a> {
    /// The earlier image.
    pub before: Side<'a>,
    /// The later image.
    pub after: Side<'a>,
    /// Lowest severity at which a finding makes the later image worse.
    pub fail_on: FailOn,
}

/// A rule whose outcome differs between the images.
#[derive(Debug)]
pub struct ChangedRule<'a> {
    /// The judgement of the earlier image.
    pub before: &'a Judgement<'a>,
    /// The judgement of the later image.
    pub after: &'a Judgement<'a>,
}

/// How a rule's outcome changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    /// The rule fails now and did not before, or fails at new places.
    New,
    /// The rule failed and passes now, or no longer applies.
    Fixed,
    /// Any other change, such as an answer that was lost.
    Changed,
}

impl ChangedRule<'_> {
    /// How the outcome changed.
    pub fn kind(&self) -> ChangeKind {
        if self.is_new() {
            ChangeKind::New
        } else if self.is_fixed() {
            ChangeKind::Fixed
        } else {
            ChangeKind::Changed
        }
    }

    /// Returns true if the rule fails now and did not before, or fails at new places.
    pub fn is_new(&self) -> bool {
        let Some(finding) = self.after.outcome.failure() else { return false };
        self.before.outcome.failure().is_none_or(|before| !finding.places().is_subset(&before.places()))
    }

    /// Returns true if the rule failed and now passes or no longer applies.
    pub fn is_fixed(&self) -> bool {
        self.before.outcome.failure().is_some() && matches!(self.after.outcome, Outcome::Pass | Outcome::NotApplicable)
    }

    /// Returns true if the rule had an answer and no longer has one, which may be better or worse.
    pub fn is_lost(&self) -> bool {
        self.after.outcome.is_unknown() && !self.before.outcome.is_unknown()
    }
}

/// A fact that differs between the images.
#[derive(Debug)]
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
pub enum Change {
    /// Only the earlier image has it.
    Gone(String),
    /// Only the later image has it.
    New(String),
}

impl Difference<'_> {
    /// Returns `Fail` if a rule newly fails or fails at new places, `Incomplete` if a rule lost its answer, else
    /// `Pass`. Only rules of a severity in [`fail_on`](Self::fail_on) count.
    pub fn verdict(&self) -> Verdict {
        let changed = self.rules();
        let counts = |wanted: &dyn Fn(&ChangedRule<'_>) -> bool| {
            changed.iter().any(|changed| self.fail_on.includes(changed.after.rule.severity) && wanted(changed))
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
            let before = self.before.facts.view(key);
            let after = self.after.facts.view(key);
            let changes = changes(before, after);
            (!changes.is_empty()).then_some(ChangedFact { name: key.name, before, after, changes })
        })
    }
}

fn changes(before: &Fact, after: &Fact) -> Vec<Change> {
    let mut changes = Vec::new();
    if let (Some(before), Some(after)) = (before.value(), after.value()) {
        compare("", before, after, &mut changes);
        return changes;
    }
    let before = parts(before);
    let after = parts(after);
    if before != after {
        changes.extend(before.into_iter().map(Change::Gone));
        changes.extend(after.into_iter().map(Change::New));
    }
    changes
}

fn parts(fact: &Fact) -> Vec<String> {
    match fact {
        Fact::Absent => Vec::new(),
        Fact::Unknown(gap) => vec![format!("unknown: {gap}")],
        Fact::Seen { value: Value::List(values), .. } => values.iter().map(summary).collect(),
        Fact::Seen { value: Value::Map(entries), .. } => {
            entries.iter().map(|(name, value)| format!("{name}={value}")).collect()
        }
        Fact::Seen { value, .. } => vec![value.to_string()],
    }
}

/// Adds the parts in which two values differ, each after the `place` of the part.
fn compare(place: &str, before: &Value, after: &Value, changes: &mut Vec<Change>) {
    match (before, after) {
        (before, after) if before == after => {}
        (Value::Map(before), Value::Map(after)) => maps(place, before, after, changes),
        (Value::List(before), Value::List(after)) => lists(place, before, after, changes),
        _ => {
            changes.push(Change::Gone(format!("{place}{before}")));
            changes.push(Change::New(format!("{place}{after}")));
        }
    }
}

fn maps(place: &str, before: &BTreeMap<String, Value>, after: &BTreeMap<String, Value>, changes: &mut Vec<Change>) {
    for (name, old) in before {
        match after.get(name) {
            Some(new) => compare(&format!("{place}{name}="), old, new, changes),
            None => changes.push(Change::Gone(format!("{place}{name}={old}"))),
        }
    }
    let new = after.iter().filter(|(name, _)| !before.contains_key(*name));
    changes.extend(new.map(|(name, value)| Change::New(format!("{place}{name}={value}"))));
}

/// Compares lists without their order. Records of the same thing are compared field by field.
fn lists(place: &str, before: &[Value], after: &[Value], changes: &mut Vec<Change>) {
    let gone: Vec<_> = before.iter().filter(|value| !after.contains(value)).collect();
    let mut new: Vec<_> = after.iter().filter(|value| !before.contains(value)).collect();
    for old in gone {
        let same = identity(old).and_then(|id| Some((id, new.iter().position(|value| identity(value) == Some(id))?)));
        match same {
            Some((id, at)) => compare(&format!("{place}{id}: "), old, new.remove(at), changes),
            None => changes.push(Change::Gone(format!("{place}{}", summary(old)))),
        }
    }
    changes.extend(new.into_iter().map(|value| Change::New(format!("{place}{}", summary(value)))));
}

/// The path or the setting that a record describes; any other value in full.
fn summary(value: &Value) -> String {
    let Value::Map(fields) = value else { return value.to_string() };
    match (fields.get("path"), fields.get("name"), fields.get("value")) {
        (Some(path), ..) => path.to_string(),
        (None, Some(name), Some(value)) => format!("{name}={value}"),
        _ => value.to_string(),
    }
}

/// The path or the name of what a record describes.
fn identity(value: &Value) -> Option<&Value> {
    let Value::Map(fields) = value else { return None };
    fields.get("path").or_else(|| fields.get("name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Value {
        Value::Text(text.to_owned())
    }

    fn record(fields: &[(&str, &str)]) -> Value {
        Value::Map(fields.iter().map(|(name, value)| ((*name).to_owned(), text(value))).collect())
    }

    fn compared(before: Value, after: Value) -> Vec<Change> {
        changes(&Fact::known(before), &Fact::known(after))
    }

    #[test]
    fn only_the_fields_that_differ_are_changes() {
        let copy =
            |path: &str, version: &str| record(&[("path", path), ("soname", "libnccl.so.2"), ("version", version)]);
        let before = Value::List(vec![copy("/a", "2.18.1"), copy("/b", "2.18.1"), copy("/c", "1")]);
        let after = Value::List(vec![copy("/c", "1"), copy("/a", "2.27.5"), copy("/d", "1")]);
        let expected = [
            Change::Gone("/a: version=2.18.1".to_owned()),
            Change::New("/a: version=2.27.5".to_owned()),
            Change::Gone("/b".to_owned()),
            Change::New("/d".to_owned()),
        ];
        assert_eq!(compared(before, after), expected);
    }

    #[test]
    fn maps_are_compared_by_name() {
        let before = record(&[("A", "1"), ("B", "2")]);
        let after = record(&[("B", "3"), ("C", "4")]);
        let expected = [
            Change::Gone("A=1".to_owned()),
            Change::Gone("B=2".to_owned()),
            Change::New("B=3".to_owned()),
            Change::New("C=4".to_owned()),
        ];
        assert_eq!(compared(before, after), expected);
    }

    #[test]
    fn the_order_of_a_list_is_no_difference() {
        let list = |values: [&str; 2]| Value::List(values.map(text).to_vec());
        assert_eq!(compared(list(["a", "b"]), list(["b", "a"])), []);
    }

    #[test]
    fn an_absent_fact_has_no_parts() {
        assert_eq!(changes(&Fact::Absent, &Fact::known(text("a"))), [Change::New("a".to_owned())]);
    }
}
