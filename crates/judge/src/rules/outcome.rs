//! Judgements, outcomes and findings of rules.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use model::{FailOn, Gap, Hasher, Owner, Site};

use super::Rule;

/// A rule's answer about an image.
#[derive(Debug)]
pub struct Judgement<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// The rule's answer.
    pub outcome: Outcome,
    /// The party that has to settle a problem: the rule's owner, or [`Owner::Arrangement`] if the image has the problem only
    /// with the variables of a launch.
    pub owner: Owner,
}

/// Outcome of a rule. An outcome that could not be determined is never a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The rule found no problem.
    Pass,
    /// The rule found a problem.
    Fail(Finding),
    /// The rule does not concern this image.
    NotApplicable,
    /// A fact that decides the outcome is unknown.
    Unknown(Vec<Gap>),
    /// The rule failed or has no answer, and a waiver or a baseline accepts that.
    Waived(Waived),
    /// The rule failed or has no answer because of what another rule found.
    Consequence(Consequence),
}

/// Details of a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule's message with this image's values.
    pub message: String,
    /// Sites where the values were read; empty for something missing.
    pub at: Vec<Site>,
    /// Instructions and lines to copy, for this image.
    pub fix: String,
    /// A note for the reader: that its waiver expired, and where the waiver is written.
    pub note: Option<String>,
}

/// A problem that a waiver or a baseline accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waived {
    /// The accepted problem.
    pub problem: Problem,
    /// The author's reason.
    pub reason: String,
    /// Last day of the waiver, as `2027-01-31`; `None` for never.
    pub expires: Option<String>,
    /// File and line of the waiver, or the baseline's file.
    pub place: String,
}

/// A problem that follows from another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consequence {
    /// The problem.
    pub problem: Problem,
    /// Id of the rule that found the cause.
    pub cause: String,
}

/// A problem that can be accepted, or that another explains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A failure.
    Failure(Finding),
    /// A missing answer.
    Unknown(Vec<Gap>),
}

impl Finding {
    /// The sites without what a rebuild changes: layers, lines, and versions in paths.
    pub fn places(&self) -> BTreeSet<String> {
        self.at.iter().map(place).collect()
    }
}

impl Outcome {
    /// Lower-case name, as reports write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) | Self::Consequence(Consequence { problem: Problem::Failure(_), .. }) => "fail",
            Self::NotApplicable => "not-applicable",
            Self::Unknown(_) | Self::Consequence(Consequence { problem: Problem::Unknown(_), .. }) => "unknown",
            Self::Waived(_) => "waived",
        }
    }

    /// The finding of a failure that is not accepted.
    pub const fn failure(&self) -> Option<&Finding> {
        match self {
            Self::Fail(finding) | Self::Consequence(Consequence { problem: Problem::Failure(finding), .. }) => {
                Some(finding)
            }
            _ => None,
        }
    }

    /// Returns true if an answer is missing, and that is not accepted.
    pub const fn is_unknown(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Consequence(Consequence { problem: Problem::Unknown(_), .. }))
    }

    /// The finding of a failure, accepted or not.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Self::Fail(finding)
            | Self::Waived(Waived { problem: Problem::Failure(finding), .. })
            | Self::Consequence(Consequence { problem: Problem::Failure(finding), .. }) => Some(finding),
            _ => None,
        }
    }

    /// The message of a finding, or why the answer is missing; empty without a problem.
    pub fn message(&self) -> String {
        let gaps = || self.gaps().iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        self.finding().map_or_else(gaps, |finding| finding.message.clone())
    }

    /// The gaps of a missing answer, accepted or not.
    pub fn gaps(&self) -> &[Gap] {
        match self {
            Self::Unknown(gaps)
            | Self::Waived(Waived { problem: Problem::Unknown(gaps), .. })
            | Self::Consequence(Consequence { problem: Problem::Unknown(gaps), .. }) => gaps,
            _ => &[],
        }
    }
}

impl<'r> Judgement<'r> {
    /// The answer of a rule, whose owner it concerns.
    pub const fn new(rule: &'r Rule, outcome: Outcome) -> Self {
        Self { rule, outcome, owner: rule.owner }
    }

    /// Returns true if the verdict depends on the judgement: the rule's severity is in `fail_on`, and the owner is one of
    /// `fail_for`.
    pub fn counts(&self, fail_on: FailOn, fail_for: &[Owner]) -> bool {
        fail_on.includes(self.rule.severity) && fail_for.contains(&self.owner)
    }

    /// Identifies the finding across rebuilds of the image: 64 hexadecimal digits, the SHA-256 of the rule's id and of
    /// the finding's [places](Finding::places). `None` if there is no finding.
    pub fn fingerprint(&self) -> Option<String> {
        let places = self.outcome.finding()?.places();
        let mut hasher = Hasher::sha256();
        for part in std::iter::once(&self.rule.id).chain(&places) {
            hasher.update(part.as_bytes());
            hasher.update(b"\0");
        }
        Some(hasher.finish().hex().to_owned())
    }
}

/// A site without what a rebuild changes.
fn place(site: &Site) -> String {
    // Numbers with dots: `python3.12`, `libnccl.so.2.27.5`, `torch-2.9.0.dist-info`.
    static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[0-9]+(\.[0-9]+)+|\.so(\.[0-9]+)+").ok());
    match site {
        Site::File { path, .. } => {
            let path = path.to_string();
            VERSION.as_ref().map_or_else(|| path.clone(), |version| version.replace_all(&path, "*").into_owned())
        }
        Site::Config(key) => format!("config {key}"),
        Site::Probe(step) => format!("probe {step}"),
        Site::Launch { variable, .. } => format!("launch {variable}"),
        Site::Log { entry, .. } => format!("log {entry}"),
    }
}
