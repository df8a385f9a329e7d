//! The JSON of a stored report. Keys that a later version added are ignored.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::fact::{StoredFact, StoredSite, add};
use super::probe::StoredProbe;
use super::{RuleKey, Stored, StoredError, StoredReport};
use crate::{ReportRun, RulesInForce};
use facts::Facts;
use facts::machine::{Fabric, Gpu, Host, Nic};
use judge::rules::{Consequence, Finding, Outcome, Problem, RecordedRule, Waived};
use model::{Digest, FailOn, Gap, ImageSummary, LayerSummary, Owner, SandboxState, Severity, Site, Version};

/// Names of compressions, which reports keep as constants.
const NAMES: &[&str] = &["none", "gzip", "zstd", "bzip2", "xz", "lz4", "lzma", "squashfs"];

/// A report.
#[derive(Deserialize)]
pub(super) struct ReportDocument {
    image: ReportedImage,
    host: Option<StoredHost>,
    error: Option<String>,
    probe: Option<StoredProbe>,
    asked: Option<StoredAsked>,
    time: Option<String>,
    rules: Option<RulesInForce>,
    #[serde(default)]
    facts: BTreeMap<String, StoredFact>,
    judgements: Option<Vec<StoredJudgement>>,
    #[serde(default)]
    notices: Vec<String>,
}

#[derive(Deserialize)]
struct StoredAsked {
    command: Option<String>,
    platform: Option<String>,
    #[serde(default)]
    variables: Vec<String>,
    #[serde(default)]
    fail_on: FailOn,
    fail_for: Option<Vec<Owner>>,
    sandbox: Option<SandboxState>,
}

#[derive(Deserialize)]
struct ReportedImage {
    reference: String,
    #[serde(default)]
    source: String,
    served_by: Option<String>,
    manifest: Option<String>,
    config: Option<String>,
    platform: Option<String>,
    #[serde(default)]
    layers: Vec<StoredLayer>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Deserialize)]
struct StoredLayer {
    digest: Option<String>,
    diff_id: Option<String>,
    diff_id_verified: bool,
    compression: String,
    size: u64,
    read: u64,
    unpacked: u64,
    entries: usize,
    cached: bool,
    #[serde(default)]
    shared: bool,
    history: Option<String>,
}

#[derive(Deserialize)]
struct StoredHost {
    name: String,
    driver: Option<String>,
    cuda: Option<String>,
    gpu: Option<String>,
    gpu_arch: Option<String>,
    gpu_count: Option<u16>,
    fabric: Option<String>,
    rdma: Option<String>,
    kernel: Option<String>,
}

/// A judgement.
#[derive(Deserialize)]
pub(super) struct StoredJudgement {
    rule: String,
    title: String,
    outcome: StoredOutcome,
    severity: Severity,
    owner: Owner,
    #[serde(default)]
    message: String,
    #[serde(default)]
    at: Vec<StoredSite>,
    note: Option<String>,
    #[serde(default)]
    why: String,
    #[serde(default)]
    fix: String,
    rule_fix: Option<String>,
    #[serde(default)]
    references: Vec<String>,
    #[serde(default)]
    gaps: Vec<StoredGap>,
    waiver: Option<StoredWaiver>,
    consequence_of: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum StoredOutcome {
    Pass,
    Fail,
    NotApplicable,
    Unknown,
    Waived,
}

#[derive(Deserialize)]
struct StoredWaiver {
    of: StoredOutcome,
    reason: String,
    expires: Option<String>,
    place: String,
}

#[derive(Deserialize)]
struct StoredGap {
    why: String,
    help: Option<String>,
}

impl From<StoredGap> for Gap {
    fn from(stored: StoredGap) -> Self {
        Self { settle: stored.help, ..Self::new(stored.why) }
    }
}

/// The form of a line.
pub(super) fn schema(line: &[u8]) -> Result<String, StoredError> {
    #[derive(Deserialize)]
    struct Head {
        schema: String,
    }
    Ok(serde_json::from_slice::<Head>(line)?.schema)
}

impl ReportDocument {
    pub(super) fn open(self) -> Result<Stored, StoredError> {
        let asked = self.asked;
        let run = asked.as_ref().zip(self.time).map(|(asked, time)| ReportRun {
            command: asked.command.clone().unwrap_or_default(),
            time,
            platform: asked.platform.clone().unwrap_or_default(),
            variables: asked.variables.clone(),
            sandbox: asked.sandbox.clone(),
        });
        if let Some(why) = self.error {
            return Ok(Stored::Unopened { reference: self.image.reference, why, run });
        }
        let judgements = self.judgements.ok_or(StoredError::NoJudgements)?;
        let mut facts = Facts::default();
        for (name, fact) in self.facts {
            add(&name, fact, &mut facts)?;
        }
        let mut image = self.image.summary()?;
        // Only those that set what a finding is about are stored: others may have secrets.
        let steps = judgements.iter().flat_map(|judgement| &judgement.at).filter_map(|site| match site {
            StoredSite::Config { step, .. } => step.clone(),
            _ => None,
        });
        image.empty_steps = steps.collect();
        let outcome = |judgement: StoredJudgement| Ok((judgement.key(), judgement.outcome()?));
        Ok(Stored::Report(Box::new(StoredReport {
            image,
            host: self.host.map(StoredHost::host),
            facts,
            outcomes: judgements.into_iter().map(outcome).collect::<Result<_, StoredError>>()?,
            fail_on: asked.as_ref().map(|asked| asked.fail_on).unwrap_or_default(),
            fail_for: asked.and_then(|asked| asked.fail_for).unwrap_or_else(|| Owner::ALL.to_vec()),
            notices: self.notices,
            run,
            rules: self.rules,
            probe: self.probe.map(StoredProbe::recording).transpose()?,
        })))
    }
}

impl ReportedImage {
    fn summary(self) -> Result<ImageSummary, StoredError> {
        Ok(ImageSummary {
            manifest: digest(self.manifest.as_deref())?,
            config: digest(self.config.as_deref())?,
            platform: self.platform.as_deref().map(parsed).transpose()?,
            reference: self.reference,
            source: self.source,
            served_by: self.served_by,
            layers: self.layers.into_iter().map(StoredLayer::summary).collect::<Result<_, _>>()?,
            empty_steps: Vec::new(),
            notes: self.notes,
        })
    }
}

impl StoredLayer {
    fn summary(self) -> Result<LayerSummary, StoredError> {
        Ok(LayerSummary {
            digest: digest(self.digest.as_deref())?,
            diff_id: digest(self.diff_id.as_deref())?,
            diff_id_verified: self.diff_id_verified,
            compression: constant(&self.compression)?,
            size: self.size,
            read: self.read,
            unpacked: self.unpacked,
            entries: self.entries,
            cached: self.cached,
            shared: self.shared,
            history: self.history,
        })
    }
}

impl StoredHost {
    /// The host, as far as reports have it.
    fn host(self) -> Host {
        let version = |text: Option<String>| text.as_deref().and_then(Version::parse);
        let arch = self.gpu_arch.and_then(|arch| arch.parse().ok());
        let gpu = self.gpu.zip(arch).map(|(name, arch)| Gpu { name, arch, class: None, count: self.gpu_count });
        Host {
            name: self.name,
            driver: version(self.driver),
            cuda: version(self.cuda),
            gpu,
            fabric: self.fabric.as_deref().and_then(Fabric::parse),
            rdma: self.rdma.as_deref().and_then(Nic::parse),
            kernel: version(self.kernel),
        }
    }
}

impl StoredJudgement {
    pub(super) fn key(&self) -> RuleKey {
        (self.rule.clone(), self.title.clone(), self.severity.name(), self.owner.name())
    }

    pub(super) fn has_texts(&self) -> bool {
        !self.why.is_empty()
    }

    pub(super) fn recorded(&self) -> RecordedRule {
        RecordedRule {
            id: self.rule.clone(),
            title: self.title.clone(),
            severity: self.severity,
            owner: self.owner,
            why: self.why.clone(),
            fix: self.rule_fix.as_ref().unwrap_or(&self.fix).clone(),
            references: self.references.clone(),
        }
    }

    fn outcome(self) -> Result<Outcome, StoredError> {
        let Self { rule, outcome, message, at, note, fix, gaps, waiver, consequence_of, .. } = self;
        let problem = |outcome: StoredOutcome| match outcome {
            StoredOutcome::Fail => {
                let at = at.into_iter().map(Site::from).collect();
                Ok(Problem::Failure(Finding { message: message.clone(), at, fix, note }))
            }
            StoredOutcome::Unknown => Ok(Problem::Unknown(gaps.into_iter().map(Gap::from).collect())),
            StoredOutcome::Pass | StoredOutcome::NotApplicable | StoredOutcome::Waived => {
                Err(StoredError::Value(format!("the judgement of {rule} is not a problem")))
            }
        };
        Ok(match (outcome, waiver, consequence_of) {
            (StoredOutcome::Pass, ..) => Outcome::Pass,
            (StoredOutcome::NotApplicable, ..) => Outcome::NotApplicable,
            (StoredOutcome::Waived, Some(waiver), _) => Outcome::Waived(Waived {
                problem: problem(waiver.of)?,
                reason: waiver.reason,
                expires: waiver.expires,
                place: waiver.place,
            }),
            (StoredOutcome::Waived, None, _) => {
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

fn digest(text: Option<&str>) -> Result<Option<Digest>, StoredError> {
    text.map(parsed).transpose()
}

fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(text: &str) -> Result<T, StoredError> {
    text.parse().map_err(|error: T::Err| StoredError::Value(error.to_string()))
}

fn constant(name: &str) -> Result<&'static str, StoredError> {
    let known = NAMES.iter().copied().find(|known| *known == name);
    known.ok_or_else(|| StoredError::Value(format!("'{name}' is not a compression")))
}
