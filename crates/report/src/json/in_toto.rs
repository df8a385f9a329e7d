//! in-toto statements (in-toto Attestation Framework, Statement v1): the verdict on an image, bound to the digest of its
//! manifest, for others to sign. One statement on one line for each image. Its hosts share it: where a verifier accepts an
//! image for any one statement, that for the best host would hide the others.

use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::fact::FactJson;
use super::host::HostJson;
use super::judgement::{JudgementJson, OutcomeName, WaiverJson};
use super::{AskedJson, TOOL, ToolJson, write_value};
use crate::counts::OutcomeCounts;
use crate::{Report, RulesInForce, Style};
use facts::key::{self, Definition};
use image::reference::untagged;
use judge::rules::Outcome;
use judge::{SharedJudgement, Verdict, across_hosts};
use model::{Digest, ImageSummary, Owner, Platform, Severity};

/// Type of the statement.
const STATEMENT: &str = "https://in-toto.io/Statement/v1";

/// Type of the predicate, with its major version: programs should refuse another one. A URN, because the project has no
/// address of its own: it resolves nowhere, and claims no domain of others.
pub(crate) const VERDICT_TYPE: &str = "urn:ncclcheck:verdict:1";

/// The facts that a statement has, where they were read.
const FACTS: &[&Definition] = key::definitions![
    TORCH_VERSION,
    TORCH_CUDA_VERSION,
    TORCH_NCCL_LINKAGE,
    SUBJECT_NAME,
    NCCL_LOADED_VERSION,
    NCCL_LOADED_PATH,
    RDMA_VERBS,
    RDMA_PROVIDERS,
    START_PYTHON,
    RUN_TORCH_VERSION,
    RUN_NCCL_VERSION,
    RUN_DRIVER,
];

/// A statement about an image.
#[derive(Serialize)]
struct Statement {
    #[serde(rename = "_type")]
    kind: &'static str,
    subject: [SubjectJson; 1],
    #[serde(rename = "predicateType")]
    predicate_type: &'static str,
    predicate: VerdictJson,
}

/// What a statement is about (in-toto, `ResourceDescriptor`).
#[derive(Serialize)]
struct SubjectJson {
    /// The reference without its tag and digest, which is for readers: the digest is what counts.
    name: String,
    /// The digits by the name of their algorithm.
    digest: BTreeMap<&'static str, String>,
}

/// The predicate of an in-toto statement: ncclcheck's verdict on an image. Later versions of this form may add keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "ncclcheck verdict", extend("$comment" = format!("predicateType: {VERDICT_TYPE}")))]
pub(super) struct VerdictJson {
    /// The program that judged.
    tool: ToolJson,
    /// Time when the run began, in UTC: 2026-01-31T12:00:00Z. Left out if a library made the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// What was asked for, and what makes the verdict a failure.
    asked: AskedJson,
    /// The rules and the policies that judged. Left out if a library made the statement.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<RulesInForce>,
    /// The image that was judged.
    image: JudgedImageJson,
    /// The verdict: the worst of all hosts.
    #[schemars(extend("enum" = ["pass", "fail", "incomplete"]))]
    verdict: &'static str,
    /// The hosts that the image was judged for. Empty if none was described.
    hosts: Vec<JudgedHostJson>,
    /// Number of rules with each outcome. A rule that differs between hosts counts once for each outcome.
    counts: OutcomeCounts,
    /// The rules that failed, have no answer, or whose problem was accepted.
    findings: Vec<FindingJson>,
    /// The facts that matter most, by name.
    facts: BTreeMap<String, FactJson>,
    /// Notices about the policy and the baseline, such as unused waivers.
    notices: Vec<String>,
}

/// The image that was judged. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JudgedImage")]
struct JudgedImageJson {
    /// Digest of the manifest of one platform, which is the subject of the statement.
    manifest: Digest,
    /// Digest of the configuration: the image ID.
    config: Option<Digest>,
    /// The platform that was judged: os/arch[/variant].
    platform: Option<Platform>,
    /// Notes for the reader that do not affect the verdict, such as that layers came from a shared cache.
    notes: Vec<String>,
}

/// A host that the image was judged for, and the verdict for it.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "JudgedHost")]
struct JudgedHostJson {
    #[serde(flatten)]
    host: HostJson,
    /// The verdict for this host.
    #[schemars(extend("enum" = ["pass", "fail", "incomplete"]))]
    verdict: &'static str,
}

/// A rule with a problem.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
struct FindingJson {
    /// Id of the rule; ids are never reused.
    rule: String,
    /// The rule's answer: fail, unknown or waived.
    outcome: OutcomeName,
    /// Severity of a failure.
    severity: Severity,
    /// The party that has to fix a failure.
    owner: Owner,
    /// The problem in this image, or why the outcome is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Identifies the failure across rebuilds of the image.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<String>,
    /// Names of the hosts with this answer. Empty if all share it.
    hosts: Vec<String>,
    /// The waiver or baseline entry that accepts the problem, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiver: Option<WaiverJson>,
    /// Id of the rule whose finding explains this problem, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    consequence_of: Option<String>,
}

/// Writes the statement about an image, from its reports; nothing about an image without a manifest's digest, which
/// [`Format::refusal`](crate::Format::refusal) explains.
pub(crate) fn write(reports: &[Report<'_>], _: &Style, out: &mut dyn Write) -> io::Result<()> {
    Statement::of(reports).map_or(Ok(()), |statement| write_value(&statement, out))
}

/// Why there is no statement about an image; `None` if there can be one.
pub(crate) fn refusal(image: &ImageSummary) -> Option<String> {
    let name = &image.reference;
    image.manifest.is_none().then(|| {
        format!(
            "{name} has no manifest digest, by which a statement names its subject\n  help: push the image to a registry, and \
             check it there: docker://HOST/NAME@DIGEST"
        )
    })
}

impl Statement {
    fn of(reports: &[Report<'_>]) -> Option<Self> {
        let first = reports.first()?;
        let predicate = VerdictJson::of(first, reports)?;
        let manifest = &predicate.image.manifest;
        let subject = SubjectJson {
            name: untagged(&first.image.reference).to_owned(),
            digest: [(manifest.algorithm(), manifest.hex().to_owned())].into(),
        };
        Some(Self { kind: STATEMENT, subject: [subject], predicate_type: VERDICT_TYPE, predicate })
    }
}

impl VerdictJson {
    /// The verdict of reports on one image; `None` if the image has no digest or was not judged.
    fn of(first: &Report<'_>, reports: &[Report<'_>]) -> Option<Self> {
        let image = first.image;
        let judged: Vec<_> = reports.iter().map(|report| report.judgements).collect::<Option<_>>()?;
        let shared = across_hosts(&judged);
        let names: Vec<_> = reports.iter().filter_map(|report| report.host).map(|host| &*host.name).collect();
        let findings = shared.iter().filter(|shared| has_problem(&shared.judgement.outcome));
        let facts = first.facts.iter().filter(|(name, _)| FACTS.iter().any(|key| key.name == *name));
        let hosts = reports
            .iter()
            .filter_map(|report| Some(JudgedHostJson { host: report.host?.into(), verdict: report.verdict()?.name() }));
        Some(Self {
            tool: TOOL,
            time: first.run.map(|run| run.time.clone()),
            asked: AskedJson::new(&image.reference, first.run, first.fail_on, first.fail_for),
            rules: first.rules.cloned(),
            image: JudgedImageJson {
                manifest: image.manifest.clone()?,
                config: image.config.clone(),
                platform: image.platform.clone(),
                notes: image.notes.clone(),
            },
            verdict: Verdict::worst(reports.iter().filter_map(Report::verdict))?.name(),
            hosts: hosts.collect(),
            counts: OutcomeCounts::of(shared.iter().map(|shared| shared.judgement)),
            findings: findings.map(|shared| FindingJson::of(shared, image, &names)).collect(),
            facts: facts.map(|(name, fact)| (name.to_owned(), FactJson::new(fact, &image.layers))).collect(),
            notices: first.notices.to_vec(),
        })
    }
}

fn has_problem(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Pass | Outcome::NotApplicable)
}

impl FindingJson {
    fn of(shared: &SharedJudgement<'_>, image: &ImageSummary, hosts: &[&str]) -> Self {
        let of = JudgementJson::new(shared.judgement, image, None);
        Self {
            rule: of.rule,
            outcome: of.outcome,
            severity: of.severity,
            owner: of.owner,
            message: of.message,
            fingerprint: of.fingerprint,
            hosts: shared.hosts.iter().filter_map(|host| hosts.get(*host)).map(|name| (*name).to_owned()).collect(),
            waiver: of.waiver,
            consequence_of: of.consequence_of,
        }
    }
}
