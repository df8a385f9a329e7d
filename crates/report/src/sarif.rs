//! SARIF 2.1.0 (OASIS), one run for each image, within the limits of GitHub's code scanning.
//!
//! Failures are results. Accepted failures are results with a suppression: without them, GitHub would take the findings
//! for fixed. Unknown outcomes are not results, since GitHub raises an alert for every result whatever its `kind`; they
//! are notifications of the invocation, where SARIF reports conditions of the tool. Passes are left out.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::collected::{Collected, Collection};
use super::entry::{EntryState, RuleEntry, RuleTexts};
use super::fix_text::one_line;
use super::json;
use super::plain_text::short;
use model::Severity;

const SCHEMA: &str = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json";

/// Maximum runs in one file (GitHub, "SARIF support for code scanning").
pub(super) const RUNS: usize = 20;
/// Maximum results in one run; GitHub shows 5,000 of them.
const RESULTS: usize = 25_000;
/// Maximum characters of a rule's descriptions.
const DESCRIPTION: usize = 1024;

pub(super) fn write(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let runs = collection.images.len() + collection.missing.len();
    if runs > RUNS {
        let why = format!("a SARIF file holds at most {RUNS} images, but there are {runs}: check fewer at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let judged = collection.images.iter().map(judged_run);
    let missing = collection.missing.iter().map(|(reference, why)| missing_run(reference, why));
    let runs: Vec<_> = judged.chain(missing).collect();
    json::write_value(&json!({"$schema": SCHEMA, "version": "2.1.0", "runs": runs}), out)
}

fn judged_run(image: &Collected) -> Value {
    let entries = image.of_state(|state| matches!(state, EntryState::Failed | EntryState::Waived { failed: true, .. }));
    let more = entries.len().saturating_sub(RESULTS);
    let more = (more > 0).then(|| notification("note", &format!("{more} more results are left out")));
    let mut rules: Vec<&RuleTexts> = Vec::new();
    let results = entries.into_iter().take(RESULTS).map(|entry| {
        let index = rules.iter().position(|rule| rule.id == entry.rule.id).unwrap_or_else(|| {
            rules.push(&entry.rule);
            rules.len() - 1
        });
        result(entry, index, image)
    });
    let results: Vec<_> = results.collect();
    let open = image.of_state(|state| matches!(state, EntryState::Unknown | EntryState::Waived { failed: false, .. }));
    let open = open.into_iter().map(|entry| {
        let level = if entry.counts && entry.state == EntryState::Unknown { "warning" } else { "note" };
        let message = format!("unknown, not ruled out: {}\n{}", entry.rule.title, entry.text(image));
        let mut unknown = notification(level, &message);
        add(&mut unknown, "associatedRule", json!({"id": entry.rule.id}));
        unknown
    });
    let notices = image.notices.iter().chain(&image.unread).map(|notice| notification("note", notice));
    let notifications = open.chain(notices).chain(more).collect();
    run(&image.name, &image.title, &rules, true, notifications, &results)
}

/// A failed run without results, so that GitHub does not take earlier findings for fixed.
fn missing_run(reference: &str, why: &str) -> Value {
    run(reference, reference, &[], false, vec![notification("error", &format!("{reference}: {why}"))], &[])
}

/// GitHub takes the text before the last slash of the id as the category. An upload replaces the earlier one of its
/// category.
fn run(
    name: &str,
    title: &str,
    rules: &[&RuleTexts],
    successful: bool,
    notifications: Vec<Value>,
    results: &[Value],
) -> Value {
    let mut invocation = json!({"executionSuccessful": successful});
    if !notifications.is_empty() {
        add(&mut invocation, "toolExecutionNotifications", notifications.into());
    }
    let rules: Vec<_> = rules.iter().map(|rule| described(rule)).collect();
    json!({
        "tool": {"driver": {"name": "ncclcheck", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules}},
        "automationDetails": {"id": format!("ncclcheck/{name}/"), "description": text(&format!("image {title}"))},
        "invocations": [invocation],
        "results": results,
    })
}

fn add(object: &mut Value, field: &str, value: Value) {
    if let Value::Object(fields) = object {
        fields.insert(field.to_owned(), value);
    }
}

fn notification(level: &str, message: &str) -> Value {
    json!({"level": level, "message": text(message)})
}

/// The description of a rule.
fn described(rule: &RuleTexts) -> Value {
    let (area, _) = rule.id.split_once('/').unwrap_or((&rule.id, ""));
    let why = one_line(&rule.why);
    let references: Vec<_> = rule.references.iter().map(|reference| format!("- {reference}")).collect();
    let references = references.join("\n");
    let severity = match rule.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "recommendation",
    };
    let mut described = json!({
        "id": rule.id,
        "shortDescription": text(&short(&rule.title, DESCRIPTION - 1)),
        "fullDescription": text(&short(&why, DESCRIPTION - 1)),
        "help": {
            "text": format!("{why}\n\nHow to fix it:\n{}\n\n{references}", rule.fix),
            "markdown": format!("{why}\n\n{}\n\n{references}\n", super::fix_text::markdown(&rule.fix)),
        },
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"tags": [area], "precision": "high", "problem.severity": severity},
    });
    if let Some(reference) = rule.references.iter().find(|reference| reference.starts_with("https://")) {
        add(&mut described, "helpUri", json!(reference));
    }
    described
}

fn result(entry: &RuleEntry, rule_index: usize, image: &Collected) -> Value {
    let mut result = json!({
        "ruleId": entry.rule.id,
        "ruleIndex": rule_index,
        "kind": "fail",
        "level": level(entry.rule.severity),
        "message": text(&entry.text(image)),
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": entry.place.uri()},
            "region": {"startLine": entry.place.line, "startColumn": 1},
        }}],
        "partialFingerprints": {"primaryLocationLineHash": entry.fingerprint(image)},
    });
    if let EntryState::Waived { reason, terms, .. } = &entry.state {
        let suppression = json!([{"kind": "external", "justification": format!("{reason} ({terms})")}]);
        add(&mut result, "suppressions", suppression);
    }
    result
}

/// A message. A space separates `]` from `(`, which would make a link (section 3.11.6).
fn text(text: &str) -> Value {
    json!({"text": text.replace("](", "] (")})
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}
