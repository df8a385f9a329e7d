//! Judgements in the JSON report.

use schemars::JsonSchema;
use serde::Serialize;

use super::{SiteJson, sites};
use image::history;
use judge::rules;
use model::{ImageSummary, Owner, Severity};

/// A rule's answer about an image.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Judgement")]
pub(super) struct JudgementJson<'a> {
    /// Id of the rule; ids are never reused.
    rule: &'a str,
    /// The problem that the rule detects, in a few words.
    title: &'a str,
    /// The rule's answer.
    outcome: OutcomeName,
    /// Severity of a failure.
    severity: Severity,
    /// The party that has to fix a failure.
    owner: Owner,
    /// The problem in this image, or why the outcome is unknown. Left out if the rule passes or does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    message: Option<String>,
    /// Sites where the values behind a failure were read; empty for something missing.
    at: Vec<SiteJson<'a>>,
    /// A note for the reader, such as that the finding's waiver expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    note: Option<&'a str>,
    /// Identifies the failure across rebuilds of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    fingerprint: Option<String>,
    /// Why the problem matters. Left out if the rule passes or does not apply, as are `fix` and `references`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    why: Option<&'a str>,
    /// How to fix the problem in this image. A line is for copying if it is indented or begins with an instruction of a
    /// Dockerfile; of an unknown outcome, the fix of the rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    fix: Option<&'a str>,
    /// The fix of the rule, with the names of facts in braces. Left out where `fix` is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    rule_fix: Option<&'a str>,
    /// URLs of the sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    references: Option<&'a [String]>,
    /// The missing answers of an unknown outcome, one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<GapJson<'_>>")]
    gaps: Option<Vec<GapJson<'a>>>,
    /// The waiver or baseline entry that accepts the problem, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WaiverJson<'_>")]
    waiver: Option<WaiverJson<'a>>,
    /// Id of the rule whose finding explains this problem, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    consequence_of: Option<&'a str>,
}

/// A missing answer.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Gap")]
struct GapJson<'a> {
    /// What could not be determined, and why.
    why: &'a str,
    /// What would determine it. Null if unknown.
    help: Option<&'a str>,
}

/// Outcome of a rule.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum OutcomeName {
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
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Waiver")]
struct WaiverJson<'a> {
    /// The accepted outcome: fail or unknown.
    of: OutcomeName,
    /// The author's reason.
    reason: &'a str,
    /// Last day of the waiver, as 2027-01-31. Left out if it never expires.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    expires: Option<&'a str>,
    /// File and line of the waiver, or the baseline's file.
    place: &'a str,
}

/// The sites of a finding, with build steps.
fn finding_sites<'a>(at: &'a [model::Site], image: &'a ImageSummary) -> Vec<SiteJson<'a>> {
    let mut sites = sites(at, &image.layers);
    for (shown, site) in sites.iter_mut().zip(at) {
        if let SiteJson::Config { step, .. } = shown {
            *step = history::step(site, image);
        }
    }
    sites
}

impl<'a> JudgementJson<'a> {
    pub(super) fn of(judgement: &'a rules::Judgement<'a>, image: &'a ImageSummary) -> Self {
        let rule = judgement.rule;
        let finding = judgement.outcome.finding();
        let message = finding.map(|finding| finding.message.clone());
        let unanswered: Vec<_> = judgement.outcome.gaps().iter().map(ToString::to_string).collect();
        let gaps = judgement.outcome.gaps().iter();
        let gaps: Vec<_> = gaps.map(|gap| GapJson { why: &gap.why, help: gap.settle.as_deref() }).collect();
        let has_problem = !matches!(judgement.outcome, rules::Outcome::Pass | rules::Outcome::NotApplicable);
        let fix = finding.map_or(&rule.fix, |finding| &finding.fix);
        Self {
            rule: &judgement.rule.id,
            title: &judgement.rule.title,
            outcome: (&judgement.outcome).into(),
            severity: judgement.rule.severity,
            owner: judgement.owner,
            message: message.or_else(|| (!unanswered.is_empty()).then(|| unanswered.join("; "))),
            at: finding.map(|finding| finding_sites(&finding.at, image)).unwrap_or_default(),
            note: finding.and_then(|finding| finding.note.as_deref()),
            fingerprint: judgement.fingerprint(),
            why: has_problem.then_some(&*rule.why),
            fix: has_problem.then_some(&**fix),
            rule_fix: (has_problem && *fix != rule.fix).then_some(&*rule.fix),
            references: has_problem.then_some(&*rule.references),
            gaps: (!gaps.is_empty()).then_some(gaps),
            waiver: match &judgement.outcome {
                rules::Outcome::Waived(waived) => Some(waived.into()),
                _ => None,
            },
            consequence_of: match &judgement.outcome {
                rules::Outcome::Consequence(consequence) => Some(&consequence.cause),
                _ => None,
            },
        }
    }
}

impl From<&rules::Outcome> for OutcomeName {
    fn from(outcome: &rules::Outcome) -> Self {
        match outcome {
            rules::Outcome::Pass => Self::Pass,
            rules::Outcome::Fail(_) => Self::Fail,
            rules::Outcome::NotApplicable => Self::NotApplicable,
            rules::Outcome::Unknown(_) => Self::Unknown,
            rules::Outcome::Waived(_) => Self::Waived,
            rules::Outcome::Consequence(consequence) => (&consequence.problem).into(),
        }
    }
}

impl From<&rules::Problem> for OutcomeName {
    fn from(problem: &rules::Problem) -> Self {
        match problem {
            rules::Problem::Failure(_) => Self::Fail,
            rules::Problem::Unknown(_) => Self::Unknown,
        }
    }
}

impl<'a> From<&'a rules::Waived> for WaiverJson<'a> {
    fn from(waived: &'a rules::Waived) -> Self {
        Self {
            of: (&waived.problem).into(),
            reason: &waived.reason,
            expires: waived.expires.as_deref(),
            place: &waived.place,
        }
    }
}
