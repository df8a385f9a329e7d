//! What an audit keeps of an image: the verdict, the findings with the layers that bring them, and a few facts.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::Assessment;
use image::{FailureClass, Image};
use judge::Verdict;
use judge::rules::{Judgement, Outcome};
use model::{Owner, Severity, Site};

/// Facts that a list of images shows.
pub(super) const FACTS: [&str; 3] = ["torch.version", "torch.cuda.version", "nccl.loaded.version"];

/// Labels by which the owner of an image or of its base is found (OCI image-spec, "Pre-Defined Annotation Keys";
/// Docker's old `maintainer`), in the order in which they are believed.
pub(super) const LABELS: [&str; 4] = [
    "org.opencontainers.image.base.name",
    "org.opencontainers.image.vendor",
    "org.opencontainers.image.authors",
    "maintainer",
];

/// The result of one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ItemResult {
    /// The image.
    pub id: String,
    /// `pass`, `fail` or `incomplete`; `None` if the image could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Why the image could not be judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<ItemUnavailable>,
    /// Failures, sorted by rule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub findings: Vec<ItemFinding>,
    /// Rules that count and have no answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown: Vec<String>,
    /// Versions of torch, CUDA and NCCL.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub facts: BTreeMap<String, String>,
    /// Labels that name an owner or a base.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// The layers of findings, by digest.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub layers: BTreeMap<String, BlamedLayer>,
}

/// A failure of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub struct ItemFinding {
    /// Id of the rule.
    pub rule: String,
    /// The host that it was judged for, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Severity under the policy of the run.
    pub severity: Severity,
    /// The party that has to fix it.
    #[schemars(with = "String")]
    pub owner: Owner,
    /// The message.
    pub message: String,
    /// Digest of the layer that completes the problem: the highest one that a file of the finding is in. Left out for a
    /// finding about the configuration or about something missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
}

/// A layer that brings a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlamedLayer {
    /// Stored size in bytes.
    pub size: u64,
    /// True if it is the highest layer of the image.
    pub is_top: bool,
    /// Its build step, as the builder recorded it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// Why an image could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Unavailable")]
pub struct ItemUnavailable {
    /// `not-found`, `denied`, `invalid`, `changed` or `crashed`.
    pub kind: String,
    /// The error.
    pub why: String,
}

impl ItemResult {
    /// The result of an image that was judged.
    pub(super) fn of(id: &str, image: &Image, assessments: &[Assessment<'_>]) -> Self {
        let verdict = Verdict::worst(assessments.iter().filter_map(Assessment::verdict));
        let mut findings = BTreeSet::new();
        let mut unknown = BTreeSet::new();
        for assessment in assessments {
            let host = assessment.host.as_ref().map(ToString::to_string);
            for judgement in assessment.judgements.iter().flatten() {
                findings.extend(finding(judgement, host.as_deref(), image));
                if judgement.outcome.is_unknown() && judgement.counts(assessment.fail_on, &assessment.fail_for) {
                    unknown.insert(judgement.rule.id.clone());
                }
            }
        }
        let facts = assessments.first().map(|assessment| facts(assessment)).unwrap_or_default();
        let count = image.summary.layers.len();
        let blamed = |finding: &ItemFinding| finding.layer.clone();
        let wanted: BTreeSet<_> = findings.iter().filter_map(blamed).collect();
        let layers = image.summary.layers.iter().enumerate().filter_map(|(index, layer)| {
            let name = layer.name()?.to_string();
            let blamed = BlamedLayer { size: layer.size, is_top: index + 1 == count, step: layer.history.clone() };
            wanted.contains(&name).then_some((name, blamed))
        });
        let labels = image.config.as_ref().map(|config| &config.labels);
        let labels = LABELS.iter().filter_map(|name| Some(((*name).to_owned(), labels?.get(*name)?.clone())));
        Self {
            id: id.to_owned(),
            verdict: verdict.map(|verdict| verdict.name().to_owned()),
            unavailable: None,
            findings: findings.into_iter().collect(),
            unknown: unknown.into_iter().collect(),
            facts,
            labels: labels.collect(),
            layers: layers.collect(),
        }
    }

    /// The result of an image that cannot be judged.
    pub(super) fn unavailable(id: &str, kind: &str, why: String) -> Self {
        Self {
            id: id.to_owned(),
            verdict: None,
            unavailable: Some(ItemUnavailable { kind: kind.to_owned(), why }),
            findings: Vec::new(),
            unknown: Vec::new(),
            facts: BTreeMap::new(),
            labels: BTreeMap::new(),
            layers: BTreeMap::new(),
        }
    }
}

/// The name of a class of failures in results; `None` for one that may pass.
pub(super) const fn kind(class: FailureClass) -> Option<&'static str> {
    match class {
        FailureClass::Transient | FailureClass::Cancelled => None,
        FailureClass::NotFound => Some("not-found"),
        FailureClass::Denied => Some("denied"),
        FailureClass::Invalid | FailureClass::NotAnImage => Some("invalid"),
    }
}

fn finding(judgement: &Judgement<'_>, host: Option<&str>, image: &Image) -> Option<ItemFinding> {
    let Outcome::Fail(found) = &judgement.outcome else { return None };
    let layer = found.at.iter().filter_map(Site::layer).max().and_then(|index| image.summary.layers.get(index));
    Some(ItemFinding {
        rule: judgement.rule.id.clone(),
        host: host.map(ToOwned::to_owned),
        severity: judgement.rule.severity,
        owner: judgement.owner,
        message: found.message.clone(),
        layer: layer.and_then(|layer| layer.name()).map(ToString::to_string),
    })
}

fn facts(assessment: &Assessment<'_>) -> BTreeMap<String, String> {
    let known = assessment.facts.iter().filter(|(name, _)| FACTS.contains(name));
    known.filter_map(|(name, fact)| Some((name.to_owned(), fact.value()?.to_string()))).collect()
}
