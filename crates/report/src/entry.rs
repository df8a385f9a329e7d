//! What a report says of one rule.

use std::sync::Arc;

use super::Report;
use super::location::FileLocation;
use super::plain_text::{clean, short};
use image::history;
use judge::rules::{Outcome, Problem, Rule};
use judge::{FindingIdentity, SharedJudgement};
use model::{Owner, Severity, Site};

/// Maximum characters of a text that contains values of an image: services refuse or cut longer ones.
pub(super) const LONGEST: usize = 1000;
/// Maximum characters of a build step.
const LONGEST_STEP: usize = 200;
/// Maximum sites shown for one finding.
const SHOWN: usize = 6;

/// One rule's outcome, on all hosts or on some of them.
#[derive(Clone, Debug)]
pub(super) struct RuleEntry {
    pub(super) rule: Arc<RuleTexts>,
    pub(super) state: EntryState,
    /// The party that has to settle a problem.
    pub(super) owner: Owner,
    /// True if the verdict depends on it.
    pub(super) counts: bool,
    /// The hosts with this outcome; empty if all hosts share it.
    pub(super) hosts: Vec<String>,
    /// The finding's message, or why the outcome is unknown; empty otherwise.
    pub(super) message: String,
    /// How to fix the finding in this image; empty without a finding.
    pub(super) fix: String,
    pub(super) note: Option<String>,
    /// Sites of the finding, each with its layer and build step.
    pub(super) sites: Vec<String>,
    pub(super) place: FileLocation,
    pub(super) identity: FindingIdentity,
}

/// An outcome without its texts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum EntryState {
    Passed,
    Failed,
    NotApplicable,
    Unknown,
    Waived {
        /// True for an accepted failure, false for an accepted unknown.
        failed: bool,
        reason: String,
        /// Place of the waiver, and its last day.
        terms: String,
    },
    /// A failure or a missing answer that another rule's finding explains.
    Consequence {
        /// Id of the rule that found the cause.
        cause: String,
    },
}

/// The texts of a rule.
#[derive(Clone, Debug)]
pub(super) struct RuleTexts {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) severity: Severity,
    pub(super) why: String,
    pub(super) fix: String,
    pub(super) references: Vec<String>,
}

impl RuleEntry {
    pub(super) fn of(
        report: &Report<'_>,
        shared: &SharedJudgement<'_>,
        hosts: &[String],
        texts: Arc<RuleTexts>,
    ) -> Self {
        let judgement = shared.judgement;
        let outcome = &judgement.outcome;
        let finding = outcome.finding();
        let at = finding.map(|finding| &*finding.at).unwrap_or_default();
        Self {
            rule: texts,
            state: outcome.into(),
            owner: judgement.owner,
            counts: judgement.counts(report.fail_on, report.fail_for),
            hosts: shared.hosts.iter().filter_map(|host| hosts.get(*host)).cloned().collect(),
            message: short(&outcome.message(), LONGEST),
            fix: finding.map(|finding| finding.fix.clone()).unwrap_or_default(),
            note: finding.and_then(|finding| finding.note.as_ref()).map(|note| short(note, LONGEST)),
            sites: sites(at, report),
            place: FileLocation::of(at, report.image, report.dockerfile),
            identity: FindingIdentity::of(judgement),
        }
    }
}

impl RuleTexts {
    /// Returns true if these are the texts of a rule.
    pub(super) fn is_of(&self, rule: &Rule) -> bool {
        (&self.title, self.severity, &self.why, &self.fix, &self.references)
            == (&rule.title, rule.severity, &rule.why, &rule.fix, &rule.references)
    }
}

/// Sites, each with the layer, the build step and the line of the Dockerfile that it comes from.
fn sites(at: &[Site], report: &Report<'_>) -> Vec<String> {
    let image = report.image;
    let text = |site: &Site| {
        let layer = site.layer().map(|layer| history::layer(layer, image));
        let step = history::step(site, image).map(|step| short(&step, LONGEST_STEP));
        let line = report.dockerfile.and_then(|dockerfile| dockerfile.place(site, image));
        let parts = [Some(short(&site.to_string(), LONGEST)), layer, step, line];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let more = at.len().checked_sub(SHOWN).filter(|more| *more > 0).map(|more| format!("and {more} more places"));
    at.iter().take(SHOWN).map(text).chain(more).collect()
}

impl From<&Rule> for RuleTexts {
    fn from(rule: &Rule) -> Self {
        Self {
            id: rule.id.clone(),
            title: rule.title.clone(),
            severity: rule.severity,
            why: rule.why.clone(),
            fix: rule.fix.clone(),
            references: rule.references.clone(),
        }
    }
}

impl From<&Outcome> for EntryState {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Pass => Self::Passed,
            Outcome::Fail(_) => Self::Failed,
            Outcome::NotApplicable => Self::NotApplicable,
            Outcome::Unknown(_) => Self::Unknown,
            Outcome::Waived(waived) => {
                let until = waived.expires.as_ref().map(|date| format!(", until {date}")).unwrap_or_default();
                Self::Waived {
                    failed: matches!(waived.problem, Problem::Failure(_)),
                    reason: short(&waived.reason, LONGEST),
                    terms: clean(&format!("{}{until}", waived.place)),
                }
            }
            Outcome::Consequence(consequence) => Self::Consequence { cause: consequence.cause.clone() },
        }
    }
}
