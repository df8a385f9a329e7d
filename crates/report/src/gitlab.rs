//! GitLab's code quality report: a list of findings (GitLab, "Code Quality report format").
//!
//! The format has only findings. A rule that counts and has no answer is therefore a finding of lower severity: an
//! empty list would look like a pass.

use std::io::{self, Write};

use serde_json::{Value, json};

use super::collected::{Collected, Collection};
use super::entry::{EntryState, RuleEntry};
use super::json;
use model::{Hasher, Severity};

/// GitLab's severities, worst first.
const SEVERITIES: [&str; 5] = ["blocker", "critical", "major", "minor", "info"];

pub(super) fn write(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let told = |image: &'_ Collected| {
        let failed = image.of_state(|state| *state == EntryState::Failed);
        let open = image.of_state(|state| *state == EntryState::Unknown).into_iter().filter(|entry| entry.counts);
        failed.into_iter().chain(open).map(|entry| issue(entry, image)).collect::<Vec<_>>()
    };
    let missing = collection.missing.iter().map(|(reference, why)| missing(reference, why));
    let mut issues: Vec<_> = missing.chain(collection.images.iter().flat_map(told)).collect();
    issues.sort_by_key(|issue| SEVERITIES.iter().position(|severity| issue["severity"] == **severity));
    json::write_value(&issues, out)
}

fn issue(entry: &RuleEntry, image: &Collected) -> Value {
    let (severity, what) = match (&entry.state, entry.rule.severity) {
        (EntryState::Unknown, _) => ("minor", format!("unknown, not ruled out: {}: ", entry.rule.title)),
        (_, Severity::Error) => ("critical", String::new()),
        (_, Severity::Warning) => ("major", String::new()),
        (_, Severity::Info) => ("info", String::new()),
    };
    json!({
        "description": format!("{what}{}", entry.text(image).replace('\n', "; ")),
        "check_name": entry.rule.id,
        // GitLab shows only the first of several issues with one fingerprint, so it depends on the image and the hosts.
        "fingerprint": entry.fingerprint(image),
        "severity": severity,
        "location": {"path": entry.place.path, "lines": {"begin": entry.place.line}},
    })
}

/// The issue for an image that could not be checked: without it, the image would seem to have no findings.
fn missing(reference: &str, why: &str) -> Value {
    let mut hasher = Hasher::sha256();
    hasher.update(reference.as_bytes());
    json!({
        "description": format!("{reference} could not be checked: {why}"),
        "check_name": "ncclcheck",
        "fingerprint": hasher.finish().hex(),
        "severity": "blocker",
        "location": {"path": "image", "lines": {"begin": 1}},
    })
}
