//! Reports read back from JSON, to present them in another form.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fact::SiteJson;
use super::probe::ProbeJson;
use super::{FORM, ReportJson};
use crate::{Report, ReportRun, RulesInForce, Unopened};
use ::probe::recording::Recording;
use facts::machine::Host;
use facts::{Facts, key};
use judge::rules::{Judgement, Rule};
use model::document::DocumentError;
use model::{FailOn, ImageSummary, Owner, Severity, without_content};

/// How to get a report, for those who gave another file.
pub const REPORT_FORM: &str = "ncclcheck check --format json=FILE IMAGE writes a report";

/// Reason why a line is not a report that can be presented.
#[derive(Debug, thiserror::Error)]
pub enum StoredError {
    /// The line is not JSON of this form.
    #[error(
        "not a report of `ncclcheck check --format json`: {}\n  help: {REPORT_FORM}",
        without_content(&.0.to_string())
    )]
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
    rules: BTreeMap<RuleKey, Rule>,
    /// Number of images, and the reference of the last one if it was judged for a host.
    images: (usize, Option<String>),
}

/// Id, title, severity and owner of a rule: reports of different releases may have different rules with one id.
pub(super) type RuleKey = (String, String, Severity, Owner);

/// A stored report, or a stored error.
#[derive(Debug)]
pub enum Stored<'r> {
    /// A report on one image and at most one host.
    Report(Box<StoredReport<'r>>),
    /// An image that could not be opened.
    Unopened(Unopened),
}

/// A report on one image and at most one host.
#[derive(Debug)]
pub struct StoredReport<'r> {
    /// The image.
    pub image: ImageSummary,
    /// One judgement for each rule.
    pub judgements: Vec<Judgement<'r>>,
    host: Option<Host>,
    facts: Facts,
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
        let report = read(line)?;
        let image = report.host.map(|_| report.image.reference);
        if image.is_none() || image != self.images.1 {
            self.images = (self.images.0 + 1, image);
        }
        for judgement in report.judgements.into_iter().flatten() {
            let key = judgement.key();
            let known = self.rules.get(&key);
            if known.is_none_or(|rule| rule.why.is_empty() && judgement.why.is_some()) {
                self.rules.insert(key, judgement.into_rule()?);
            }
        }
        Ok(())
    }

    /// Returns true if the lines are on several images. The reports on one image for several hosts follow one another.
    pub const fn are_of_several_images(&self) -> bool {
        self.images.0 > 1
    }
}

impl<'r> Stored<'r> {
    /// Reads a line, whose rules must have been added.
    pub fn read(line: &[u8], rules: &'r StoredRules) -> Result<Self, StoredError> {
        let report = read(line)?;
        let (mut image, asked) = (report.image, report.asked);
        let run = asked.as_ref().zip(report.time).map(|(asked, time)| ReportRun {
            command: asked.command.clone().unwrap_or_default(),
            time,
            platform: asked.platform.clone().unwrap_or_default(),
            variables: asked.variables.clone(),
            sandbox: asked.sandbox.clone(),
        });
        if let Some(why) = report.error {
            return Ok(Self::Unopened(Unopened { reference: image.reference, why, run }));
        }
        let judged = report.judgements.ok_or(StoredError::NoJudgements)?;
        let mut facts = Facts::default();
        for (name, fact) in report.facts {
            // A name that this version does not know is left out: a later version may have added it.
            let Some(key) = key::find(&name) else { continue };
            let wrong = || StoredError::Value(format!("facts.{name} is not {}", key.expected()));
            facts.insert_value(key, fact.into_fact(key).ok_or_else(wrong)?);
        }
        // Only those that set what a finding is about are stored: others may have secrets.
        let steps = judged.iter().flat_map(|judgement| &judgement.at).filter_map(|site| match site {
            SiteJson::Config { step, .. } => step.clone(),
            _ => None,
        });
        image.empty_steps = steps.collect();
        let mut judgements = Vec::new();
        for judgement in judged {
            let key = judgement.key();
            let missing = || StoredError::Value(format!("the rule {} was not read", key.0));
            let rule = rules.rules.get(&key).ok_or_else(missing)?;
            judgements.push(Judgement::new(rule, judgement.into_outcome()?));
        }
        Ok(Self::Report(Box::new(StoredReport {
            image,
            judgements,
            host: report.host.map(Host::from),
            facts,
            fail_on: asked.as_ref().map(|asked| asked.fail_on).unwrap_or_default(),
            fail_for: asked.and_then(|asked| asked.fail_for).unwrap_or_else(|| Owner::ALL.to_vec()),
            notices: report.notices,
            run,
            rules: report.rules,
            probe: report.probe.map(ProbeJson::into_recording).transpose()?,
        })))
    }
}

/// Reads a line of the present form; another form is refused before its keys are read.
fn read(line: &[u8]) -> Result<ReportJson, StoredError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    let Head { schema } = serde_json::from_slice(line)?;
    if schema == FORM { Ok(serde_json::from_slice(line)?) } else { Err(StoredError::Schema(schema)) }
}

impl StoredReport<'_> {
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
    pub fn report(&self) -> Report<'_> {
        Report {
            image: &self.image,
            host: self.host.as_ref(),
            facts: &self.facts,
            judgements: Some(&self.judgements),
            fail_on: self.fail_on,
            fail_for: &self.fail_for,
            notices: &self.notices,
            probe: self.probe.as_ref(),
            rules: self.rules.as_ref(),
            run: self.run.as_ref(),
            dockerfile: None,
        }
    }
}
