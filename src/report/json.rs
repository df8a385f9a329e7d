//! For programs: one JSON object on one line. The tree of structs below is this form and nothing else: it is published,
//! so that it changes only by additions while [`FORM`] stays.

mod probe;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::ser::Formatter;

use super::{Report, Style};
use crate::judge::Verdict;
use crate::judge::rules;
use crate::model::{self, Owner, Severity, printable};
use crate::model::{ImageSummary, LayerSummary};
use probe::ProbeJson;

/// Name and major version of this form.
const FORM: &str = "ncclcheck/1";

/// What ncclcheck says of one image. Later versions of the same form may add keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "ncclcheck report")]
struct ReportJson<'a> {
    /// Name and major version of this form.
    #[schemars(extend("const" = FORM))]
    schema: &'static str,
    /// What was looked at.
    image: ImageJson<'a>,
    /// The host that it was judged for: there is one report for each. Left out where none was described.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostJson<'_>")]
    host: Option<HostJson<'a>>,
    /// What all judgements come to. Left out by `inspect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VerdictName")]
    verdict: Option<VerdictName>,
    /// What the image told as it ran. Left out where it was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ProbeJson<'_>")]
    probe: Option<ProbeJson<'a>>,
    /// What was read, by the name of the question.
    facts: BTreeMap<&'a str, FactJson<'a>>,
    /// One judgement for each rule, by the rule's id. Left out by `inspect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<JudgementJson<'_>>")]
    judgements: Option<Vec<JudgementJson<'a>>>,
    /// What became of the policy's waivers that changed nothing.
    notices: &'a [String],
}

/// The image and its layers. What is not known is null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Image")]
struct ImageJson<'a> {
    /// What the user asked for.
    reference: &'a str,
    /// Where it was found: a transport and a place.
    source: &'a str,
    /// Digest of the manifest.
    manifest: Option<&'a str>,
    /// Digest of the configuration: the image ID.
    config: Option<&'a str>,
    /// The platform that was judged: os/arch[/variant].
    platform: Option<String>,
    /// Layers with content, the lowest first.
    layers: Vec<LayerJson<'a>>,
    /// Things worth a word that change nothing.
    notes: &'a [String],
}

/// One layer. What is not known is null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Layer")]
struct LayerJson<'a> {
    /// Digest of the blob as stored.
    digest: Option<&'a str>,
    /// Digest of the tar inside.
    diff_id: Option<&'a str>,
    /// Compression of the blob: none, gzip or zstd.
    compression: &'a str,
    /// Bytes as stored.
    size: u64,
    /// Bytes of it that were scanned: fewer where the layer has a table of contents, by which each part was verified.
    read: u64,
    /// Bytes of the tar inside; of its files alone, where the layer was read in part.
    unpacked: u64,
    /// Entries of the tar.
    entries: usize,
    /// Whether its scan came from the cache; all else is the same then.
    cached: bool,
    /// The build step that made it, as the builder wrote it.
    history: Option<&'a str>,
}

/// A host as the user described it. What was not said is null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Host")]
struct HostJson<'a> {
    /// What it is called.
    name: &'a str,
    /// Version of the NVIDIA driver.
    driver: Option<&'a str>,
    /// CUDA release of that driver.
    cuda: Option<&'a str>,
    /// Model of its GPUs.
    gpu: Option<&'a str>,
    /// Their architecture.
    gpu_arch: Option<String>,
    /// How many there are.
    gpu_count: Option<u16>,
    /// What connects them: nvswitch or pcie.
    fabric: Option<&'a str>,
    /// NICs for RDMA: mlx5, efa or none.
    rdma: Option<&'a str>,
    /// Version of the Linux kernel.
    kernel: Option<&'a str>,
}

/// The answer to the one question.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VerdictName {
    /// Every rule that counts passed or does not apply.
    Pass,
    /// A rule that counts failed.
    Fail,
    /// No rule that counts failed, and one of them could not be answered.
    Incomplete,
}

/// The answer to one question about the image.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
#[schemars(rename = "Fact")]
enum FactJson<'a> {
    /// It was read.
    Seen {
        /// The answer.
        value: ValueJson<'a>,
        /// Where it was read.
        at: Vec<SiteJson<'a>>,
    },
    /// It was looked for where it would have to be, and is not there.
    Absent,
    /// It could not be determined.
    Unknown {
        /// Why, and what would settle it.
        gap: String,
    },
}

/// The answer to a question, in the type of the question. Versions are text.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Value")]
pub(super) enum ValueJson<'a> {
    /// Yes or no.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text, or a version.
    Text(&'a str),
    /// Several values.
    List(Vec<ValueJson<'a>>),
    /// Named values.
    Map(BTreeMap<&'a str, ValueJson<'a>>),
}

/// Where something was read.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Site")]
enum SiteJson<'a> {
    /// A file of the merged image.
    File {
        /// Index into the layers of the image, from 0: the layer that brought the file.
        layer: usize,
        /// Digest of that layer as stored, else of the tar inside; null where neither is known.
        digest: Option<&'a str>,
        /// Path in the image; bytes that are not plain text stand as `\xNN`, and a backslash as `\\`.
        path: String,
        /// What was read there, if not the whole file.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        within: Option<&'a str>,
    },
    /// A key of the image configuration.
    Config {
        /// The key, such as `Env NCCL_DEBUG`.
        config: &'a str,
    },
    /// A step of a probe.
    Probe {
        /// Its name.
        probe: &'a str,
    },
    /// Outside the image: where the job that starts it sets a variable.
    Launch {
        /// A launch file as the user named it, or the option of the command line.
        launch: &'a str,
        /// Line in that file, from 1, where it is known.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "usize")]
        line: Option<usize>,
        /// Name of the variable.
        variable: &'a str,
    },
}

/// The one answer that a rule gives about an image.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Judgement")]
struct JudgementJson<'a> {
    /// Id of the rule, never reused.
    rule: &'a str,
    /// What is wrong when the rule fails, in a few words.
    title: &'a str,
    /// The rule's answer.
    outcome: OutcomeName,
    /// How bad it is when the rule fails.
    severity: Severity,
    /// Who has to mend it.
    owner: Owner,
    /// What is wrong in this image, or why that is unknown. Left out where the rule passed or does not apply.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    message: Option<String>,
    /// Where the values behind a failure were read; for something missing, nothing.
    at: Vec<SiteJson<'a>>,
    /// What a reader must know besides, such as that a waiver of it expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    note: Option<&'a str>,
    /// The same for the same failure of an image that was built again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    fingerprint: Option<String>,
    /// Who accepted the problem, and why, where somebody did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WaiverJson<'_>")]
    waiver: Option<WaiverJson<'a>>,
}

/// What a rule can answer.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum OutcomeName {
    /// All is well.
    Pass,
    /// It is as bad as the severity says.
    Fail,
    /// The rule's question does not arise.
    NotApplicable,
    /// Something that the answer depends on is unknown.
    Unknown,
    /// It fails, or cannot be answered, and somebody accepted that.
    Waived,
}

/// Who accepted a problem, and why.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Waiver")]
struct WaiverJson<'a> {
    /// What was accepted: fail or unknown.
    of: OutcomeName,
    /// Why, in the words of who accepted it.
    reason: &'a str,
    /// The last day, as 2027-01-31; left out where it was accepted for good.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    expires: Option<&'a str>,
    /// Where that was written: file and line.
    place: &'a str,
}

pub(super) fn write(reports: &[Report<'_>], _: &Style, out: &mut dyn Write) -> io::Result<()> {
    reports.iter().try_for_each(|report| write_value(&ReportJson::from(report), out))
}

/// Any value, on one line.
pub(super) fn write_value(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Plain);
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// The JSON schema of the report.
pub(crate) fn schema() -> String {
    let schema =
        SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<ReportJson<'_>>();
    format!("{:#}\n", schema.as_value())
}

/// Compact JSON whose strings steer neither a terminal nor a build log. Nothing is lost: JSON has escapes.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        // CI services take `##[command]` for theirs wherever in a line it stands.
        if matches!(printable(fragment), Cow::Borrowed(_)) && !fragment.contains("##") {
            return out.write_all(fragment.as_bytes());
        }
        let mut buffer = [0; 4];
        for character in fragment.chars() {
            let text = &*character.encode_utf8(&mut buffer);
            if character != '#' && matches!(printable(text), Cow::Borrowed(_)) {
                out.write_all(text.as_bytes())?;
            } else {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04x}")?;
                }
            }
        }
        Ok(())
    }
}

impl<'a> From<&'a Report<'a>> for ReportJson<'a> {
    fn from(report: &'a Report<'a>) -> Self {
        let layers = &report.image.layers;
        Self {
            schema: FORM,
            image: report.image.into(),
            host: report.host.map(Into::into),
            verdict: report.verdict().map(Into::into),
            probe: report.probe.map(Into::into),
            facts: report.facts.iter().map(|(name, fact)| (name, FactJson::of(fact, layers))).collect(),
            judgements: report
                .judgements
                .map(|judgements| judgements.iter().map(|judgement| JudgementJson::of(judgement, layers)).collect()),
            notices: report.notices,
        }
    }
}

impl<'a> From<&'a ImageSummary> for ImageJson<'a> {
    fn from(image: &'a ImageSummary) -> Self {
        Self {
            reference: &image.reference,
            source: &image.source,
            manifest: image.manifest.as_ref().map(model::Digest::as_str),
            config: image.config.as_ref().map(model::Digest::as_str),
            platform: image.platform.as_ref().map(ToString::to_string),
            layers: image.layers.iter().map(Into::into).collect(),
            notes: &image.notes,
        }
    }
}

impl<'a> From<&'a model::Host> for HostJson<'a> {
    fn from(host: &'a model::Host) -> Self {
        let gpu = host.gpu.as_ref();
        Self {
            name: &host.name,
            driver: host.driver.as_ref().map(model::Version::as_str),
            cuda: host.cuda.as_ref().map(model::Version::as_str),
            gpu: gpu.map(|gpu| &*gpu.name),
            gpu_arch: gpu.map(|gpu| format!("sm_{}", gpu.arch)),
            gpu_count: gpu.and_then(|gpu| gpu.count),
            fabric: host.fabric.map(model::Fabric::name),
            rdma: host.rdma.map(model::Nic::name),
            kernel: host.kernel.as_ref().map(model::Version::as_str),
        }
    }
}

impl<'a> From<&'a LayerSummary> for LayerJson<'a> {
    fn from(layer: &'a LayerSummary) -> Self {
        Self {
            digest: layer.digest.as_ref().map(model::Digest::as_str),
            diff_id: layer.diff_id.as_ref().map(model::Digest::as_str),
            compression: layer.compression,
            size: layer.size,
            read: layer.read,
            unpacked: layer.unpacked,
            entries: layer.entries,
            cached: layer.cached,
            history: layer.history.as_deref(),
        }
    }
}

impl From<Verdict> for VerdictName {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
            Verdict::Incomplete => Self::Incomplete,
        }
    }
}

impl<'a> FactJson<'a> {
    fn of(fact: &'a model::Fact, layers: &'a [LayerSummary]) -> Self {
        match fact {
            model::Fact::Seen { value, at } => Self::Seen { value: value.into(), at: sites(at, layers) },
            model::Fact::Absent => Self::Absent,
            model::Fact::Unknown(gap) => Self::Unknown { gap: gap.to_string() },
        }
    }
}

impl<'a> From<&'a model::Value> for ValueJson<'a> {
    fn from(value: &'a model::Value) -> Self {
        match value {
            model::Value::Bool(value) => Self::Bool(*value),
            model::Value::Int(value) => Self::Int(*value),
            model::Value::Text(value) => Self::Text(value),
            model::Value::Version(value) => Self::Text(value.as_str()),
            model::Value::List(values) => Self::List(values.iter().map(Into::into).collect()),
            model::Value::Map(values) => {
                Self::Map(values.iter().map(|(name, value)| (&**name, value.into())).collect())
            }
        }
    }
}

fn sites<'a>(at: &'a [model::Site], layers: &'a [LayerSummary]) -> Vec<SiteJson<'a>> {
    at.iter()
        .map(|site| match site {
            model::Site::File { layer, path, within } => SiteJson::File {
                layer: *layer,
                digest: layers.get(*layer).and_then(LayerSummary::name).map(model::Digest::as_str),
                path: path.to_string(),
                within: within.as_deref(),
            },
            model::Site::Config(key) => SiteJson::Config { config: key },
            model::Site::Probe(step) => SiteJson::Probe { probe: step },
            model::Site::Launch { file, line, variable } => SiteJson::Launch { launch: file, line: *line, variable },
        })
        .collect()
}

impl<'a> JudgementJson<'a> {
    fn of(judgement: &'a rules::Judgement<'a>, layers: &'a [LayerSummary]) -> Self {
        let finding = judgement.outcome.finding();
        let gaps: Vec<_> = judgement.outcome.gaps().iter().map(ToString::to_string).collect();
        let message = finding.map(|finding| finding.message.clone());
        Self {
            rule: &judgement.rule.id,
            title: &judgement.rule.title,
            outcome: (&judgement.outcome).into(),
            severity: judgement.rule.severity,
            owner: judgement.rule.owner,
            message: message.or_else(|| (!gaps.is_empty()).then(|| gaps.join("; "))),
            at: finding.map(|finding| sites(&finding.at, layers)).unwrap_or_default(),
            note: finding.and_then(|finding| finding.note.as_deref()),
            fingerprint: judgement.fingerprint(),
            waiver: match &judgement.outcome {
                rules::Outcome::Waived(waived) => Some(waived.into()),
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
        }
    }
}

impl<'a> From<&'a rules::Waived> for WaiverJson<'a> {
    fn from(waived: &'a rules::Waived) -> Self {
        Self {
            of: match waived.problem {
                rules::Problem::Failure(_) => OutcomeName::Fail,
                rules::Problem::Unknown(_) => OutcomeName::Unknown,
            },
            reason: &waived.reason,
            expires: waived.expires.as_deref(),
            place: &waived.place,
        }
    }
}
