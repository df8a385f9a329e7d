//! The merged document of a run. The structs define the published format, which changes only by additions while
//! [`FORM`](super::FORM) stays.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};

use model::Severity;

use super::{AuditRules, ItemFinding, ItemUnavailable};

/// The result of an audit. It depends on the plan and the images alone, not on the workers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "ncclcheck audit")]
#[non_exhaustive]
pub struct AuditDocument {
    /// Name and major version of the format.
    pub schema: String,
    /// Name of the run.
    pub run: String,
    /// Time of the plan (RFC 3339, UTC).
    pub created: String,
    /// The program, the rules and the policy.
    pub judged_by: AuditRules,
    /// The images, in the order of the plan.
    pub images: Vec<AuditRow>,
    /// Numbers of images.
    pub counts: AuditCounts,
    /// Findings by the layer that brings them, the most images first.
    pub layers: Vec<AuditLayer>,
    /// Findings by rule, the most severe first, then the most images.
    pub rules: Vec<AuditRule>,
    /// Images by team, the most failing first, with those of no team. Empty without a map of owners.
    pub teams: Vec<AuditTeam>,
    /// Names that could not be resolved when the run was planned, with the reason.
    pub unresolved: BTreeMap<String, String>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "AuditedImage")]
#[non_exhaustive]
pub struct AuditRow {
    /// Hexadecimal digits of the digest of the manifest or of the configuration.
    pub id: String,
    /// All names, sorted.
    pub names: Vec<String>,
    /// Digest of the manifest.
    pub manifest: Option<String>,
    /// Platform, as `os/arch[/variant]`.
    pub platform: Option<String>,
    /// The team that owns it. Left out without a map of owners, or if no pattern matches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    /// `pass`, `fail`, `incomplete`, `unavailable` or `pending`.
    pub verdict: String,
    /// Failures, sorted by rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ItemFinding>,
    /// Rules that count and have no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Why it could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<ItemUnavailable>,
    /// Versions of torch, CUDA and NCCL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Where it runs, as `NAMESPACE/POD`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pods: Vec<String>,
}

/// Numbers of images by verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AuditCounts {
    /// All images.
    pub images: usize,
    /// No rule that counts fails.
    pub pass: usize,
    /// A rule that counts fails.
    pub fail: usize,
    /// No rule that counts fails, but some have no answer.
    pub incomplete: usize,
    /// The image cannot be judged.
    pub unavailable: usize,
    /// There is no result yet.
    pub pending: usize,
}

/// A layer that brings a finding into images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AuditLayer {
    /// Digest of the layer.
    pub layer: String,
    /// Stored size in bytes.
    pub size: u64,
    /// Id of the rule.
    pub rule: String,
    /// Severity of the finding.
    pub severity: Severity,
    /// Number of images with this layer and this finding.
    pub images: usize,
    /// The team or the image that the layer belongs to, if that is known.
    pub owner: Option<String>,
    /// How the owner is known: `image` (the layer is the last one of an image of this run) or the name of a label that
    /// all of these images have with the same value.
    pub owner_from: Option<String>,
    /// Build step of the layer, as the builder recorded it.
    pub step: Option<String>,
    /// The first of the images.
    pub example: String,
}

/// A rule that images fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AuditRule {
    /// Id of the rule.
    pub rule: String,
    /// Severity under the policy of the run.
    pub severity: Severity,
    /// Number of images that fail it.
    pub images: usize,
    /// Number of layers that bring it.
    pub layers: usize,
    /// The first of the images.
    pub example: String,
}

/// The images of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[non_exhaustive]
pub struct AuditTeam {
    /// The team. Null for the images that no pattern matches.
    pub team: Option<String>,
    /// Numbers of its images.
    pub counts: AuditCounts,
    /// Numbers of its images by rule that they fail.
    pub rules: BTreeMap<String, usize>,
}

impl AuditCounts {
    /// Counts a verdict.
    pub(super) fn add(&mut self, verdict: &str) {
        self.images += 1;
        let count = match verdict {
            "pass" => &mut self.pass,
            "fail" => &mut self.fail,
            "incomplete" => &mut self.incomplete,
            "pending" => &mut self.pending,
            _ => &mut self.unavailable,
        };
        *count += 1;
    }
}

/// The JSON schema of the document, which a test verifies.
pub const SCHEMA: &str = include_str!("audit.schema.json");

/// Generates the JSON schema of the document.
pub fn schema() -> String {
    let schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<AuditDocument>();
    format!("{:#}\n", schema.as_value())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_audit_schema_in_the_repository_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/audit/audit.schema.json");
        if std::env::var_os("NCCLCHECK_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(path, schema()).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        let help = "NCCLCHECK_BLESS=1 cargo test --workspace --lib schema";
        assert!(kept == schema(), "this is not the schema of the document: {help}");
    }
}
