//! Reports read back from JSON, to present them in another form.

mod document;
mod fact;
mod probe;

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::json::FORM;
use super::{Report, ReportRun, RulesInForce};
use ::probe::recording::Recording;
use facts::Facts;
use facts::machine::Host;
use judge::rules::{Judgement, Outcome, RecordedRule, Rule};
use model::document::DocumentError;
use model::{FailOn, ImageSummary, Owner, without_content};

use document::{ReportDocument, StoredJudgement};

/// Reason why a line is not a report that can be presented.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The line is not JSON of this form.
    #[error("not a report of `ncclcheck check --format json`: {}", without_content(&.0.to_string()))]
    Form(#[from] serde_json::Error),
    /// The report has another form.
    #[error(
        "its schema is '{0}', not '{form}'\n  help: write it with this version of ncclcheck and --format json",
        form = FORM
    )]
    Schema(String),
    /// The report is of an inspection.
    #[error("it has no judgements\n  help: `ncclcheck inspect` judges nothing; store a report of `ncclcheck check`")]
    NoJudgements,
    /// A value is not what it should be.
    #[error("{0}")]
    Value(String),
    /// A rule is not one.
    #[error(transparent)]
    Rule(#[from] DocumentError),
}

/// The rules of stored reports, with the texts that the reports have.
#[derive(Debug, Default)]
pub struct StoredRules {
    recorded: BTreeMap<RuleKey, RecordedRule>,
    rules: BTreeMap<RuleKey, Rule>,
    /// Number of images, and the reference of the last one if it was judged for a host.
    images: (usize, Option<String>),
}

/// Id, title, severity and owner of a rule: reports of different releases may have different rules with one id.
type RuleKey = (String, String, &'static str, &'static str);

/// A stored report, or a stored error.
#[derive(Debug)]
pub enum Stored {
    /// A report on one image and at most one host.
    Report(Box<StoredReport>),
    /// An image that could not be opened.
    Unopened {
        /// The reference as the user wrote it.
        reference: String,
        /// The reason.
        why: String,
        /// What was asked for.
        run: Option<ReportRun>,
    },
}

/// A report on one image and at most one host.
#[derive(Debug)]
pub struct StoredReport {
    /// The image.
    pub image: ImageSummary,
    host: Option<Host>,
    facts: Facts,
    outcomes: Vec<(RuleKey, Outcome)>,
    fail_on: FailOn,
    fail_for: Vec<Owner>,
    notices: Vec<String>,
    run: Option<ReportRun>,
    rules: Option<RulesInForce>,
    probe: Option<Recording>,
}

impl StoredRules {
    /// Adds the rules of a line. A rule that passes has fewer texts than one that fails.
    pub fn add(&mut self, line: &[u8]) -> Result<(), StoredError> {
        #[derive(Deserialize)]
        struct Judged {
            image: Named,
            #[serde(default)]
            host: Option<IgnoredAny>,
            #[serde(default)]
            judgements: Vec<StoredJudgement>,
        }
        #[derive(Deserialize)]
        struct Named {
            reference: String,
        }
        require_form(line)?;
        let judged: Judged = serde_json::from_slice(line)?;
        let image = judged.host.map(|_| judged.image.reference);
        if image.is_none() || image != self.images.1 {
            self.images = (self.images.0 + 1, image);
        }
        for judgement in judged.judgements {
            let known = self.recorded.entry(judgement.key()).or_insert_with(|| judgement.recorded());
            if known.why.is_empty() && judgement.has_texts() {
                *known = judgement.recorded();
            }
        }
        Ok(())
    }

    /// Returns true if the lines are on several images. The reports on one image for several hosts follow one another.
    pub const fn are_of_several_images(&self) -> bool {
        self.images.0 > 1
    }

    /// Makes the rules.
    pub fn finish(&mut self) -> Result<(), StoredError> {
        for (key, recorded) in std::mem::take(&mut self.recorded) {
            self.rules.insert(key, recorded.rule()?);
        }
        Ok(())
    }
}

impl Stored {
    /// Reads a line.
    pub fn read(line: &[u8]) -> Result<Self, StoredError> {
        require_form(line)?;
        let document: ReportDocument = serde_json::from_slice(line)?;
        document.open()
    }
}

fn require_form(line: &[u8]) -> Result<(), StoredError> {
    let schema = document::schema(line)?;
    if schema == FORM { Ok(()) } else { Err(StoredError::Schema(schema)) }
}

impl StoredReport {
    /// The judgements. Their rules must have been added.
    pub fn judgements<'r>(&self, rules: &'r StoredRules) -> Result<Vec<Judgement<'r>>, StoredError> {
        let judgement = |(key, outcome): &(RuleKey, Outcome)| match rules.rules.get(key) {
            Some(rule) => Ok(Judgement::new(rule, outcome.clone())),
            None => Err(StoredError::Value(format!("the rule {} was not read", key.0))),
        };
        self.outcomes.iter().map(judgement).collect()
    }

    /// Returns true if another report is on the same image, for another host.
    pub fn is_same_image(&self, other: &Self) -> bool {
        let parts = |image: &ImageSummary| (image.reference.clone(), image.manifest.clone(), image.config.clone());
        self.host.is_some()
            && other.host.is_some()
            && self.host != other.host
            && (parts(&self.image), &self.image.platform, &self.image.layers)
                == (parts(&other.image), &other.image.platform, &other.image.layers)
    }

    /// Adds the build steps of another report on the same image: a report stores only those that its findings are about.
    pub fn add_steps(&mut self, other: &Self) {
        self.image.empty_steps.extend(other.image.empty_steps.iter().cloned());
    }

    /// The report.
    pub fn report<'a>(&'a self, judgements: &'a [Judgement<'a>]) -> Report<'a> {
        Report {
            image: &self.image,
            host: self.host.as_ref(),
            facts: &self.facts,
            judgements: Some(judgements),
            fail_on: self.fail_on,
            fail_for: &self.fail_for,
            notices: &self.notices,
            probe: self.probe.as_ref(),
            rules: self.rules.as_ref(),
            run: self.run.as_ref(),
        }
    }
}
