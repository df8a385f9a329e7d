//! What rules answer.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use crate::model::{Gap, Hasher, Site};

use super::Rule;

/// The one answer that a rule gives about an image.
#[derive(Debug)]
#[non_exhaustive]
pub struct Judgement<'r> {
    /// The rule.
    pub rule: &'r Rule,
    /// Its answer.
    pub outcome: Outcome,
}

/// What a rule can answer. Nothing that could not be determined is ever a pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All is well.
    Pass,
    /// It is as bad as the rule says.
    Fail(Finding),
    /// The rule's question does not arise.
    NotApplicable,
    /// Something that the answer depends on is unknown.
    Unknown(Vec<Gap>),
    /// One of the two above, and somebody accepted that.
    Waived(Waived),
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The rule's message with this image's values.
    pub message: String,
    /// Where the values were read; for something missing, nothing.
    pub at: Vec<Site>,
    /// What a reader must know besides: that a waiver of it expired, and where that stands.
    pub note: Option<String>,
}

/// A problem that somebody accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waived {
    /// What it is.
    pub problem: Problem,
    /// Why it was accepted, in their words.
    pub reason: String,
    /// Until when, as `2027-01-31`.
    pub expires: Option<String>,
    /// Where that was written: file and line.
    pub place: String,
}

/// What can be accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// A failure.
    Failure(Finding),
    /// An answer that could not be had.
    Unknown(Vec<Gap>),
}

impl Finding {
    /// Where it was read, without what a new build changes: layers, lines and the versions in paths.
    pub fn places(&self) -> BTreeSet<String> {
        self.at.iter().map(place).collect()
    }
}

impl Outcome {
    /// Lower-case name, as reports write it.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::NotApplicable => "not-applicable",
            Self::Unknown(_) => "unknown",
            Self::Waived(_) => "waived",
        }
    }

    /// What is wrong, whether or not somebody accepted it.
    pub fn finding(&self) -> Option<&Finding> {
        match self {
            Self::Fail(finding) | Self::Waived(Waived { problem: Problem::Failure(finding), .. }) => Some(finding),
            _ => None,
        }
    }

    /// Why there is no answer, whether or not somebody accepted that.
    pub fn gaps(&self) -> &[Gap] {
        match self {
            Self::Unknown(gaps) | Self::Waived(Waived { problem: Problem::Unknown(gaps), .. }) => gaps,
            _ => &[],
        }
    }
}

impl Judgement<'_> {
    /// Names what is wrong, and stays the same when the image is built again: 64 hexadecimal digits of the rule's id and of
    /// the finding's [places](Finding::places). `None` where nothing is wrong.
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

/// A place without what a new build changes.
fn place(site: &Site) -> String {
    // `python3.12`, `libnccl.so.2.27.5`, `torch-2.9.0.dist-info`: numbers with dots.
    static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"[0-9]+(\.[0-9]+)+|\.so(\.[0-9]+)+").ok());
    match site {
        Site::File { path, .. } => {
            let path = path.to_string();
            VERSION.as_ref().map_or_else(|| path.clone(), |version| version.replace_all(&path, "*").into_owned())
        }
        Site::Config(key) => format!("config {key}"),
        Site::Probe(step) => format!("probe {step}"),
        Site::Launch { variable, .. } => format!("launch {variable}"),
    }
}
