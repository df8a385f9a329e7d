//! Judgements in the JSON report.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fact::SiteJson;
use super::stored::{RuleKey, StoredError};
use image::dockerfile::Dockerfile;
use image::history;
use judge::rules::{Consequence, Finding, Judgement, Outcome, Problem, Rule, Waived};
use model::document::DocumentError;
use model::{Gap, ImageSummary, Owner, Severity, Site};

/// A rule's answer about an image.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Judgement")]
pub(super) struct JudgementJson {
    /// Id of the rule; ids are never reused.
    pub(super) rule: String,
    /// The problem that the rule detects, in a few words.
    title: String,
    /// The rule's answer.
    pub(super) outcome: OutcomeName,
    /// Severity of a failure.
    pub(super) severity: Severity,
    /// The party that has to fix a failure.
    pub(super) owner: Owner,
    /// The problem in this image, or why the outcome is unknown. Left out if the rule passes or does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<String>,
    /// Sites where the values behind a failure were read; empty for something missing.
    #[serde(default)]
    pub(super) at: Vec<SiteJson>,
    /// The instruction behind the first of these sites that has one, as `PATH:LINE`, with `--dockerfile`.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    dockerfile: Option<String>,
    /// What a job does not have because the rule fails, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    without: Option<String>,
    /// A note for the reader, such as that the finding's waiver expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
    /// Identifies the failure across rebuilds of the image.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub(super) fingerprint: Option<String>,
    /// Why the problem matters. Left out if the rule passes or does not apply, as are `fix` and `references`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) why: Option<String>,
    /// How to fix the problem in this image. A line is for copying if it is indented or begins with an instruction of a
    /// Dockerfile; of an unknown outcome, the fix of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<String>,
    /// The fix of the rule, with the names of facts in braces. Left out where `fix` is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    rule_fix: Option<String>,
    /// URLs of the sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    references: Option<Vec<String>>,
    /// The missing answers of an unknown outcome, one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    gaps: Option<Vec<GapJson>>,
    /// The waiver or baseline entry that accepts the problem, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) waiver: Option<WaiverJson>,
    /// Id of the rule whose finding explains this problem, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) consequence_of: Option<String>,
}

/// A missing answer.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Gap")]
struct GapJson {
    /// What could not be determined, and why.
    why: String,
    /// What would determine it. Null if unknown.
    help: Option<String>,
}

/// Outcome of a rule.
#[derive(Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(super) enum OutcomeName {
    /// The rule found no problem.
    Pass,
    /// The rule found a problem.
    Fail,
    /// The rule does not concern this image.
    NotApplicable,
    /// A fact that decides the outcome is unknown.
    Unknown,
    /// The rule failed or has no answer, and a waiver or a baseline accepts that.
    Waived,
}

/// A waiver, or an entry of a baseline.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Waiver")]
pub(super) struct WaiverJson {
    /// The accepted outcome: fail or unknown.
    of: OutcomeName,
    /// The author's reason.
    reason: String,
    /// Last day of the waiver, as 2027-01-31. Left out if it never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
    /// File and line of the waiver, or the baseline's file.
    place: String,
}

impl JudgementJson {
    pub(super) fn new(judgement: &Judgement<'_>, image: &ImageSummary, dockerfile: Option<&Dockerfile>) -> Self {
        let rule = judgement.rule;
        let outcome = &judgement.outcome;
        let finding = outcome.finding();
        let has_problem = !matches!(outcome, Outcome::Pass | Outcome::NotApplicable);
        let fix = finding.map_or(&rule.fix, |finding| &finding.fix);
        let gaps: Vec<_> = outcome.gaps().iter().map(Into::into).collect();
        let sites = || finding.iter().flat_map(|finding| &finding.at);
        Self {
            rule: rule.id.clone(),
            title: rule.title.clone(),
            outcome: outcome.into(),
            severity: rule.severity,
            owner: judgement.owner,
            message: (finding.is_some() || !gaps.is_empty()).then(|| outcome.message()),
            at: sites().map(|site| finding_site(site, image)).collect(),
            dockerfile: dockerfile.and_then(|dockerfile| sites().find_map(|site| dockerfile.place(site, image))),
            without: finding.and_then(|_| rule.without.clone()),
            note: finding.and_then(|finding| finding.note.clone()),
            fingerprint: judgement.fingerprint(),
            why: has_problem.then(|| rule.why.clone()),
            fix: has_problem.then(|| fix.clone()),
            rule_fix: (has_problem && *fix != rule.fix).then(|| rule.fix.clone()),
            references: has_problem.then(|| rule.references.clone()),
            gaps: (!gaps.is_empty()).then_some(gaps),
            waiver: match outcome {
                Outcome::Waived(waived) => Some(waived.into()),
                _ => None,
            },
            consequence_of: match outcome {
                Outcome::Consequence(consequence) => Some(consequence.cause.clone()),
                _ => None,
            },
        }
    }

    pub(super) fn key(&self) -> RuleKey {
        (self.rule.clone(), self.title.clone(), self.severity, self.owner)
    }

    /// Reads the rule back, as far as the judgement has its texts.
    pub(super) fn into_rule(self) -> Result<Rule, DocumentError> {
        let mut rule = Rule::without_conditions()?;
        rule.id = self.rule;
        rule.title = self.title;
        rule.without = self.without;
        rule.severity = self.severity;
        rule.owner = self.owner;
        rule.why = self.why.unwrap_or_default();
        rule.fix = self.rule_fix.or(self.fix).unwrap_or_default();
        rule.references = self.references.unwrap_or_default();
        Ok(rule)
    }

    /// Reads the outcome back.
    pub(super) fn into_outcome(self) -> Result<Outcome, StoredError> {
        let Self { rule, outcome, message, at, note, fix, gaps, waiver, consequence_of, .. } = self;
        let problem = |outcome: OutcomeName| match outcome {
            OutcomeName::Fail => Ok(Problem::Failure(Finding {
                message: message.unwrap_or_default(),
                at: at.into_iter().map(Site::from).collect(),
                fix: fix.unwrap_or_default(),
                note,
            })),
            OutcomeName::Unknown => Ok(Problem::Unknown(gaps.into_iter().flatten().map(Gap::from).collect())),
            OutcomeName::Pass | OutcomeName::NotApplicable | OutcomeName::Waived => {
                Err(StoredError::Value(format!("the judgement of {rule} is not a problem")))
            }
        };
        Ok(match (outcome, waiver, consequence_of) {
            (OutcomeName::Pass, ..) => Outcome::Pass,
            (OutcomeName::NotApplicable, ..) => Outcome::NotApplicable,
            (OutcomeName::Waived, Some(waiver), _) => Outcome::Waived(Waived {
                problem: problem(waiver.of)?,
                reason: waiver.reason,
                expires: waiver.expires,
                place: waiver.place,
            }),
            (OutcomeName::Waived, None, _) => {
                return Err(StoredError::Value(format!("the judgement of {rule} is waived, but has no waiver")));
            }
            (of, _, Some(cause)) => Outcome::Consequence(Consequence { problem: problem(of)?, cause }),
            (of, _, None) => match problem(of)? {
                Problem::Failure(finding) => Outcome::Fail(finding),
                Problem::Unknown(gaps) => Outcome::Unknown(gaps),
            },
        })
    }
}

/// The site of a finding, with its build step.
fn finding_site(site: &Site, image: &ImageSummary) -> SiteJson {
    match SiteJson::new(site, &image.layers) {
        SiteJson::Config { config, .. } => SiteJson::Config { config, step: history::step(site, image) },
        shown => shown,
    }
}

impl From<&Gap> for GapJson {
    fn from(gap: &Gap) -> Self {
        Self { why: gap.why.clone(), help: gap.settle.clone() }
    }
}

impl From<GapJson> for Gap {
    fn from(gap: GapJson) -> Self {
        Self { settle: gap.help, ..Self::new(gap.why) }
    }
}

impl From<&Outcome> for OutcomeName {
    fn from(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Pass => Self::Pass,
            Outcome::Fail(_) => Self::Fail,
            Outcome::NotApplicable => Self::NotApplicable,
            Outcome::Unknown(_) => Self::Unknown,
            Outcome::Waived(_) => Self::Waived,
            Outcome::Consequence(consequence) => (&consequence.problem).into(),
        }
    }
}

impl From<&Problem> for OutcomeName {
    fn from(problem: &Problem) -> Self {
        match problem {
            Problem::Failure(_) => Self::Fail,
            Problem::Unknown(_) => Self::Unknown,
        }
    }
}

impl From<&Waived> for WaiverJson {
    fn from(waived: &Waived) -> Self {
        Self {
            of: (&waived.problem).into(),
            reason: waived.reason.clone(),
            expires: waived.expires.clone(),
            place: waived.place.clone(),
        }
    }
}
