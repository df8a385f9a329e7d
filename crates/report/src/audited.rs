//! The images of an audit, as rows of the forms that list images.

use std::io::{self, Write};
use std::sync::Arc;

use super::collected::Collection;
use super::counts::OutcomeCounts;
use super::entry::{LONGEST, RuleTexts};
use super::html;
use super::plain_text::short;
use super::prometheus;
use super::survey::{JudgedRow, RowState, SurveyFinding, SurveyRow};
use judge::Verdict;
use judge::rules::Rule;
use model::{Owner, Severity};

/// An image of an audit that has a result.
#[derive(Debug)]
pub struct AuditedImage {
    /// The first of its names.
    pub name: String,
    /// Platform, as `os/arch[/variant]`.
    pub platform: Option<String>,
    /// The team that owns it, if a map of teams names one.
    pub team: Option<String>,
    /// Its result.
    pub result: AuditedResult,
}

/// The result of an image.
#[derive(Debug)]
pub enum AuditedResult {
    /// It could not be judged, for this reason.
    Unavailable(String),
    /// It was judged.
    Judged {
        /// The worst verdict of all hosts.
        verdict: Verdict,
        /// Versions of torch, of its CUDA and of NCCL; empty if unknown.
        versions: [String; 3],
        /// The failures.
        findings: Vec<AuditedFinding>,
        /// Ids of the rules that prevent a pass because they have no answer.
        unanswered: Vec<String>,
    },
}

/// A failure of a rule.
#[derive(Debug)]
pub struct AuditedFinding {
    /// Id of the rule.
    pub rule: String,
    /// Severity under the policy of the run.
    pub severity: Severity,
    /// The party that has to settle it.
    pub owner: Owner,
    /// The message.
    pub message: String,
    /// The hosts on which it is found; empty if all share it.
    pub hosts: Vec<String>,
    /// The layer that brings it, if one does.
    pub layer: Option<AuditedLayer>,
}

/// A layer that brings a finding.
#[derive(Debug)]
pub struct AuditedLayer {
    /// Its digest.
    pub digest: String,
    /// Stored size in bytes.
    pub size: Option<u64>,
    /// The team or the image that it belongs to, if that is known.
    pub owner: Option<String>,
    /// Its build step, as the builder recorded it.
    pub step: Option<String>,
}

impl Collection {
    /// Sets the lines at the head of the page on an audit.
    pub fn set_audit(&mut self, lines: impl IntoIterator<Item = String>) {
        self.survey.provenance.audit = lines.into_iter().map(|line| short(&line, LONGEST)).collect();
    }

    /// Adds an image of an audit. `rule` returns the rule with an id, if the program has it.
    pub fn add_audited<'r>(&mut self, image: AuditedImage, rule: impl Fn(&str) -> Option<&'r Rule>) {
        let state = match image.result {
            AuditedResult::Unavailable(why) => RowState::Unopened(short(&why, LONGEST)),
            AuditedResult::Judged { verdict, versions: [torch, cuda, nccl], findings: found, unanswered } => {
                let mut counts = OutcomeCounts { unknown: unanswered.len(), ..OutcomeCounts::default() };
                let mut findings = Vec::new();
                for finding in found {
                    *match finding.severity {
                        Severity::Error => &mut counts.errors,
                        Severity::Warning => &mut counts.warnings,
                        Severity::Info => &mut counts.infos,
                    } += 1;
                    self.blame(&finding);
                    let rule = texts(&finding.rule, finding.severity, rule(&finding.rule));
                    findings.push(self.survey.finding(failure(finding, rule)));
                }
                findings.extend(unanswered.iter().map(|id| self.survey.finding(missing_answer(id, rule(id)))));
                self.survey.sort(&mut findings);
                RowState::Judged(Box::new(JudgedRow {
                    verdict,
                    torch,
                    cuda,
                    nccl,
                    counts,
                    policy: String::new(),
                    rules_off: 0,
                    layers: 0,
                    cached: 0,
                    findings,
                }))
            }
        };
        self.survey.rows.push(SurveyRow {
            reference: short(&image.name, LONGEST),
            platform: image.platform.map(|platform| short(&platform, LONGEST)),
            digest: None,
            team: image.team,
            state,
        });
    }

    /// Writes the page on the images of an audit.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_page(&self, out: &mut dyn Write) -> io::Result<()> {
        html::write_many(&self.survey, out)
    }

    /// Writes metrics of the images of an audit that was planned at this time, in seconds since 1970.
    ///
    /// # Errors
    /// The output fails.
    pub fn write_metrics(&self, planned: u64, out: &mut dyn Write) -> io::Result<()> {
        prometheus::write_audit(&self.survey, planned, out)
    }

    /// Notes the layer that a finding of the next image comes from.
    fn blame(&mut self, finding: &AuditedFinding) {
        let row = self.survey.rows.len();
        let Some(from) = &finding.layer else { return };
        let layer = self.survey.layers.entry(from.digest.clone()).or_default();
        layer.step = layer.step.take().or_else(|| from.step.clone());
        layer.size = from.size;
        layer.owner.clone_from(&from.owner);
        layer.rules.entry(finding.rule.clone()).or_default().insert(row);
    }
}

fn failure(finding: AuditedFinding, rule: Arc<RuleTexts>) -> SurveyFinding {
    SurveyFinding {
        rule,
        owner: finding.owner,
        is_failure: true,
        message: short(&finding.message, LONGEST),
        fix: String::new(),
        hosts: finding.hosts,
        images: Vec::new(),
    }
}

/// An audit keeps no reason of a missing answer.
fn missing_answer(id: &str, rule: Option<&Rule>) -> SurveyFinding {
    SurveyFinding {
        rule: texts(id, rule.map_or(Severity::Error, |rule| rule.severity), rule),
        owner: rule.map(|rule| rule.owner).unwrap_or_default(),
        is_failure: false,
        message: "This rule has no answer. `ncclcheck check` of an image reports the reason.".to_owned(),
        fix: String::new(),
        hosts: Vec::new(),
        images: Vec::new(),
    }
}

/// The texts of a rule under a severity. Of a rule that the program does not have, only the id is known.
fn texts(id: &str, severity: Severity, rule: Option<&Rule>) -> Arc<RuleTexts> {
    let unknown = || RuleTexts {
        id: id.to_owned(),
        title: String::new(),
        severity,
        why: String::new(),
        fix: String::new(),
        references: Vec::new(),
    };
    Arc::new(RuleTexts { severity, ..rule.map_or_else(unknown, RuleTexts::from) })
}
