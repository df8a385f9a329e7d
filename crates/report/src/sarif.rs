//! SARIF 2.1.0 (OASIS), one run for each image, within the limits of GitHub's code scanning.
//!
//! Failures are results. Accepted failures are results with a suppression: without them, GitHub would take the findings
//! for fixed. Unknown outcomes are not results, since GitHub raises an alert for every result whatever its `kind`; they
//! are notifications of the invocation, where SARIF reports conditions of the tool. Passes are left out.

use std::collections::BTreeMap;
use std::io::{self, Write};

use serde::Serialize;

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

#[derive(Serialize)]
struct SarifLog {
    #[serde(rename = "$schema")]
    schema: &'static str,
    version: &'static str,
    runs: Vec<Run>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    tool: Tool,
    automation_details: AutomationDetails,
    invocations: [Invocation; 1],
    results: Vec<SarifResult>,
}

#[derive(Serialize)]
struct Tool {
    driver: SarifDriver,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifDriver {
    name: &'static str,
    semantic_version: &'static str,
    rules: Vec<SarifRule>,
}

/// GitHub takes the text before the last slash of the id as the category. An upload replaces the earlier one of its
/// category.
#[derive(Serialize)]
struct AutomationDetails {
    id: String,
    description: SarifText,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Invocation {
    execution_successful: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_execution_notifications: Vec<Notification>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Notification {
    level: &'static str,
    message: SarifText,
    #[serde(skip_serializing_if = "Option::is_none")]
    associated_rule: Option<RuleReference>,
}

#[derive(Serialize)]
struct RuleReference {
    id: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifRule {
    id: String,
    short_description: SarifText,
    full_description: SarifText,
    help: Help,
    #[serde(skip_serializing_if = "Option::is_none")]
    help_uri: Option<String>,
    default_configuration: Configuration,
    properties: SarifProperties,
}

#[derive(Serialize)]
struct Configuration {
    level: &'static str,
}

#[derive(Serialize)]
struct SarifProperties {
    tags: Vec<String>,
    precision: &'static str,
    #[serde(rename = "problem.severity")]
    severity: &'static str,
}

#[derive(Serialize)]
struct Help {
    text: String,
    markdown: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifResult {
    rule_id: String,
    rule_index: usize,
    kind: &'static str,
    level: &'static str,
    message: SarifText,
    locations: [SarifLocation; 1],
    partial_fingerprints: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suppressions: Vec<Suppression>,
}

#[derive(Serialize)]
struct Suppression {
    kind: &'static str,
    justification: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SarifLocation {
    physical_location: PhysicalLocation,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PhysicalLocation {
    artifact_location: ArtifactLocation,
    region: Region,
}

#[derive(Serialize)]
struct ArtifactLocation {
    uri: String,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Region {
    start_line: usize,
    start_column: usize,
}

#[derive(Serialize)]
struct SarifText {
    text: String,
}

pub(super) fn write(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let runs = collection.images.len() + collection.missing.len();
    if runs > RUNS {
        let why = format!("a SARIF file holds at most {RUNS} images, but there are {runs}: check fewer at once");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let judged = collection.images.iter().map(Run::of);
    let missing = collection.missing.iter().map(|(reference, why)| Run::missing(reference, why));
    json::write_value(&SarifLog { schema: SCHEMA, version: "2.1.0", runs: judged.chain(missing).collect() }, out)
}

impl Run {
    fn of(image: &Collected) -> Self {
        let entries =
            image.of_state(|state| matches!(state, EntryState::Failed | EntryState::Waived { failed: true, .. }));
        let more = entries.len().saturating_sub(RESULTS);
        let more = (more > 0).then(|| Notification::new("note", &format!("{more} more results are left out"), None));
        let mut rules: Vec<&RuleTexts> = Vec::new();
        let results = entries.into_iter().take(RESULTS).map(|entry| {
            let index = rules.iter().position(|rule| rule.id == entry.rule.id).unwrap_or_else(|| {
                rules.push(&entry.rule);
                rules.len() - 1
            });
            SarifResult::of(entry, index, image)
        });
        let results = results.collect();
        let open =
            image.of_state(|state| matches!(state, EntryState::Unknown | EntryState::Waived { failed: false, .. }));
        let notices = image.notices.iter().map(|notice| Notification::new("note", notice, None));
        let notifications = open.into_iter().map(|entry| Notification::of(entry, image)).chain(notices).chain(more);
        Self::new(&image.name, &image.title, rules, true, notifications.collect(), results)
    }

    /// A failed run without results, so that GitHub does not take earlier findings for fixed.
    fn missing(reference: &str, why: &str) -> Self {
        let notification = Notification::new("error", &format!("{reference}: {why}"), None);
        Self::new(reference, reference, Vec::new(), false, vec![notification], Vec::new())
    }

    fn new(
        name: &str,
        title: &str,
        rules: Vec<&RuleTexts>,
        successful: bool,
        notifications: Vec<Notification>,
        results: Vec<SarifResult>,
    ) -> Self {
        let driver = SarifDriver {
            name: "ncclcheck",
            semantic_version: env!("CARGO_PKG_VERSION"),
            rules: rules.into_iter().map(SarifRule::of).collect(),
        };
        Self {
            tool: Tool { driver },
            automation_details: AutomationDetails {
                id: format!("ncclcheck/{name}/"),
                description: text(&format!("image {title}")),
            },
            invocations: [Invocation { execution_successful: successful, tool_execution_notifications: notifications }],
            results,
        }
    }
}

impl Notification {
    fn of(entry: &RuleEntry, image: &Collected) -> Self {
        let level = if entry.counts && entry.state == EntryState::Unknown { "warning" } else { "note" };
        let message = format!("unknown, not ruled out: {}\n{}", entry.rule.title, entry.text(image));
        Self::new(level, &message, Some(entry.rule.id.clone()))
    }

    fn new(level: &'static str, message: &str, rule: Option<String>) -> Self {
        Self { level, message: text(message), associated_rule: rule.map(|id| RuleReference { id }) }
    }
}

impl SarifRule {
    fn of(rule: &RuleTexts) -> Self {
        let (area, _) = rule.id.split_once('/').unwrap_or((&rule.id, ""));
        let why = one_line(&rule.why);
        let references: Vec<_> = rule.references.iter().map(|reference| format!("- {reference}")).collect();
        let references = references.join("\n");
        Self {
            id: rule.id.clone(),
            short_description: text(&short(&rule.title, DESCRIPTION - 1)),
            full_description: text(&short(&why, DESCRIPTION - 1)),
            help: Help {
                text: format!("{why}\n\nHow to fix it:\n{}\n\n{references}", rule.fix),
                markdown: format!("{why}\n\n{}\n\n{references}\n", super::fix_text::markdown(&rule.fix)),
            },
            help_uri: rule.references.iter().find(|reference| reference.starts_with("https://")).cloned(),
            default_configuration: Configuration { level: level(rule.severity) },
            properties: SarifProperties {
                tags: vec![area.to_owned()],
                precision: "high",
                severity: match rule.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                    Severity::Info => "recommendation",
                },
            },
        }
    }
}

impl SarifResult {
    fn of(entry: &RuleEntry, rule_index: usize, image: &Collected) -> Self {
        let suppression = match &entry.state {
            EntryState::Waived { reason, terms, .. } => {
                Some(Suppression { kind: "external", justification: format!("{reason} ({terms})") })
            }
            _ => None,
        };
        Self {
            rule_id: entry.rule.id.clone(),
            rule_index,
            kind: "fail",
            level: level(entry.rule.severity),
            message: text(&entry.text(image)),
            locations: [SarifLocation {
                physical_location: PhysicalLocation {
                    artifact_location: ArtifactLocation { uri: entry.place.uri() },
                    region: Region { start_line: entry.place.line, start_column: 1 },
                },
            }],
            partial_fingerprints: BTreeMap::from([("primaryLocationLineHash", entry.fingerprint(image))]),
            suppressions: suppression.into_iter().collect(),
        }
    }
}

/// A message. A space separates `]` from `(`, which would make a link (section 3.11.6).
fn text(text: &str) -> SarifText {
    SarifText { text: text.replace("](", "] (") }
}

const fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}
