//! The JSON report for programs: one object on one line. The structs below define the published format, which changes
//! only by additions while [`FORM`] stays.

mod judgement;
mod probe;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::ser::Formatter;

use super::counts::OutcomeCounts;
use super::{Report, ReportRun, RulesInForce, Style, Unopened};
use judge::Verdict;
use judge::rules;
use judgement::JudgementJson;
use model::{FailOn, Owner, SandboxState, printable};
use model::{ImageSummary, LayerSummary};
use probe::ProbeJson;

/// Name and major version of the format.
pub(super) const FORM: &str = "ncclcheck/2";

/// An ncclcheck report on one image, or on one that could not be opened. Later versions of this format may add keys.
#[derive(Serialize, JsonSchema)]
#[schemars(title = "ncclcheck report")]
struct ReportJson<'a> {
    /// Name and major version of the format.
    #[schemars(extend("const" = FORM))]
    schema: &'static str,
    /// The program that wrote the report.
    tool: ToolJson,
    /// Time when the run began, in UTC: 2026-01-31T12:00:00Z. Left out if a library made the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    time: Option<&'a str>,
    /// What was asked for.
    asked: AskedJson<'a>,
    /// The rules and the policies that judged. Left out if nothing was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "RulesInForce")]
    rules: Option<&'a RulesInForce>,
    /// The image. All but the reference is null or empty if it could not be opened.
    image: ImageJson<'a>,
    /// The host that the image was judged for: there is one report for each host. Left out if no host was described.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "HostJson<'_>")]
    host: Option<HostJson<'a>>,
    /// The overall verdict. Left out by `inspect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "VerdictName")]
    verdict: Option<VerdictName>,
    /// Why the image could not be opened. Left out if it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String")]
    error: Option<&'a str>,
    /// Number of rules with each outcome. Left out by `inspect`, and if the image could not be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "CountsJson")]
    counts: Option<CountsJson>,
    /// The results of running the image. Left out if the image was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "ProbeJson<'_>")]
    probe: Option<ProbeJson<'a>>,
    /// Facts by name.
    facts: BTreeMap<&'a str, FactJson<'a>>,
    /// One judgement for each rule, sorted by the rule's id. Left out by `inspect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<JudgementJson<'_>>")]
    judgements: Option<Vec<JudgementJson<'a>>>,
    /// Notices about the policy and the baseline, such as unused waivers.
    notices: &'a [String],
}

/// The program that wrote a report.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
struct ToolJson {
    /// ncclcheck.
    name: &'static str,
    /// Its version.
    version: &'static str,
}

/// What was asked for.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Asked")]
struct AskedJson<'a> {
    /// The command: check, inspect, probe or preflight. Null if a library made the report.
    command: Option<&'a str>,
    /// The reference as the user wrote it.
    image: &'a str,
    /// The platform: host, all, or os/arch[/variant]. Null if a library made the report.
    platform: Option<&'a str>,
    /// Names of the variables that the job sets.
    variables: &'a [String],
    /// The lowest severity that makes the verdict a failure.
    fail_on: FailOn,
    /// The owners whose findings count for the verdict.
    fail_for: &'a [Owner],
    /// Whether the process that read the image had given up what it did not need. Null if a library made the report.
    sandbox: Option<&'a SandboxState>,
}

/// Number of rules with each outcome.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Counts")]
struct CountsJson {
    /// Failures of severity error.
    error: usize,
    /// Failures of severity warning.
    warning: usize,
    /// Failures of severity info.
    info: usize,
    /// Rules without an answer.
    unknown: usize,
    /// Accepted failures and missing answers.
    waived: usize,
    /// Failures and missing answers that another finding explains.
    consequence: usize,
    /// Rules that found no problem.
    pass: usize,
    /// Rules that do not concern the image.
    not_applicable: usize,
}

/// The image and its layers. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Image")]
struct ImageJson<'a> {
    /// The reference as the user wrote it.
    reference: &'a str,
    /// The source where the image was found: a transport and a location.
    source: &'a str,
    /// The place that served the image if it is not the one in `source`: a mirror or a rewritten location, with the file
    /// and line that configure it.
    served_by: Option<&'a str>,
    /// Digest of the manifest.
    manifest: Option<&'a str>,
    /// Digest of the configuration: the image ID.
    config: Option<&'a str>,
    /// The platform that was judged: os/arch[/variant].
    platform: Option<String>,
    /// Layers with content, lowest first.
    layers: Vec<LayerJson<'a>>,
    /// Notes for the reader that do not affect the verdict.
    notes: &'a [String],
}

/// One layer. Unknown values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Layer")]
struct LayerJson<'a> {
    /// Digest of the stored blob.
    digest: Option<&'a str>,
    /// Diff ID: digest of the uncompressed tar.
    diff_id: Option<&'a str>,
    /// True if all bytes of the tar were compared with the diff ID. False if its bytes are missing, or if it is a
    /// folder.
    diff_id_verified: bool,
    /// Compression of the blob: none, gzip or zstd.
    compression: &'a str,
    /// Size of the stored blob in bytes.
    size: u64,
    /// Bytes of the blob that were read: none if the scan came from the cache.
    read: u64,
    /// Size of the uncompressed tar in bytes.
    unpacked: u64,
    /// Number of entries in the tar.
    entries: usize,
    /// True if the scan came from the cache, which changes only `read`.
    cached: bool,
    /// True if that cache was a shared one, into which other users write.
    shared: bool,
    /// The build step that made the layer, as the builder wrote it.
    history: Option<&'a str>,
}

/// A host as the user described it. Omitted values are null.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Host")]
struct HostJson<'a> {
    /// Name of the host.
    name: &'a str,
    /// Version of the NVIDIA driver.
    driver: Option<&'a str>,
    /// CUDA release of the driver.
    cuda: Option<&'a str>,
    /// Model of the GPUs.
    gpu: Option<&'a str>,
    /// Architecture of the GPUs, as sm_90.
    gpu_arch: Option<String>,
    /// Number of GPUs.
    gpu_count: Option<u16>,
    /// GPU interconnect: nvswitch or pcie.
    fabric: Option<&'a str>,
    /// RDMA NICs: mlx5, efa or none.
    rdma: Option<&'a str>,
    /// Version of the Linux kernel.
    kernel: Option<&'a str>,
}

/// The overall verdict on an image.
#[derive(Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum VerdictName {
    /// Every rule that counts passed or does not apply.
    Pass,
    /// A rule that counts failed.
    Fail,
    /// No rule that counts failed, but at least one has no answer.
    Incomplete,
    /// The image could not be opened.
    Error,
}

/// A fact about the image.
#[derive(Serialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase")]
#[schemars(rename = "Fact")]
enum FactJson<'a> {
    /// The fact has a value.
    Seen {
        /// The value.
        value: ValueJson<'a>,
        /// Sites where the value was read.
        at: Vec<SiteJson<'a>>,
    },
    /// The fact is absent: it is in none of the places where it would have to be.
    Absent,
    /// The fact could not be determined.
    Unknown {
        /// The reason, and how to determine the fact.
        gap: String,
    },
}

/// Value of a fact, of the fact's type. Versions are text.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Value")]
pub(super) enum ValueJson<'a> {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text, or a version.
    Text(&'a str),
    /// A list of values.
    List(Vec<ValueJson<'a>>),
    /// Named values.
    Map(BTreeMap<&'a str, ValueJson<'a>>),
}

/// A site where a value was read.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Site")]
enum SiteJson<'a> {
    /// A file in the merged layers of the image.
    File {
        /// Index of the layer that provides the file, from 0.
        layer: usize,
        /// Digest of the layer's stored blob, else its diff ID; null if neither is known.
        digest: Option<&'a str>,
        /// Path in the image, with bytes that are not plain text as `\xNN` and a backslash as `\\`.
        path: String,
        /// The part of the file that was read, if not all of it.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        within: Option<&'a str>,
    },
    /// A key of the image configuration.
    Config {
        /// The key, such as `Env NCCL_DEBUG`.
        config: &'a str,
        /// The build step that set it, if known. Only in judgements.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "String")]
        step: Option<String>,
    },
    /// A step of a probe.
    Probe {
        /// Name of the step.
        probe: &'a str,
    },
    /// A place outside the image where the job that starts it sets a variable.
    Launch {
        /// A launch file as the user named it, or the command-line option.
        launch: &'a str,
        /// Line in the file, from 1, if known.
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(with = "usize")]
        line: Option<usize>,
        /// Name of the variable.
        variable: &'a str,
    },
}

/// Writes a line for each report.
pub(super) fn write(reports: &[Report<'_>], _: &Style, out: &mut dyn Write) -> io::Result<()> {
    reports.iter().try_for_each(|report| write_value(&ReportJson::from(report), out))
}

/// Writes an object for an image that could not be opened.
pub(super) fn write_unopened(image: &Unopened<'_>, out: &mut dyn Write) -> io::Result<()> {
    write_value(&ReportJson::from(image), out)
}

/// Writes a value as JSON on one line.
pub(super) fn write_value(value: &impl Serialize, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Plain);
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// The JSON schema of the report. A test verifies that it is current: the program would be larger with the code that generates it.
pub const SCHEMA: &str = include_str!("../schema/report.schema.json");

/// Generates the JSON schema of the report.
#[cfg(test)]
pub fn schema() -> String {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .into_generator()
        .into_root_schema_for::<ReportJson<'_>>();
    format!("{:#}\n", schema.as_value())
}

/// Compact JSON whose strings control neither a terminal nor a build log. Escapes keep every character.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: Write + ?Sized>(&mut self, out: &mut W, fragment: &str) -> io::Result<()> {
        // CI services obey `##[command]` anywhere in a line.
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

/// This program.
const TOOL: ToolJson = ToolJson { name: "ncclcheck", version: env!("CARGO_PKG_VERSION") };

impl<'a> From<&'a Report<'a>> for ReportJson<'a> {
    fn from(report: &'a Report<'a>) -> Self {
        let layers = &report.image.layers;
        let judgement = |judgement: &'a rules::Judgement<'a>| JudgementJson::of(judgement, report.image);
        Self {
            schema: FORM,
            tool: TOOL,
            time: report.run.map(|run| &*run.time),
            asked: AskedJson::of(&report.image.reference, report.run, report.fail_on, report.fail_for),
            rules: report.rules,
            image: report.image.into(),
            host: report.host.map(Into::into),
            verdict: report.verdict().map(Into::into),
            error: None,
            counts: report.judgements.map(|judgements| OutcomeCounts::of(judgements).into()),
            probe: report.probe.map(Into::into),
            facts: report.facts.iter().map(|(name, fact)| (name, FactJson::of(fact, layers))).collect(),
            judgements: report.judgements.map(|judgements| judgements.iter().map(judgement).collect()),
            notices: report.notices,
        }
    }
}

impl<'a> From<&'a Unopened<'a>> for ReportJson<'a> {
    fn from(image: &'a Unopened<'a>) -> Self {
        Self {
            schema: FORM,
            tool: TOOL,
            time: image.run.map(|run| &*run.time),
            asked: AskedJson::of(image.reference, image.run, FailOn::default(), &Owner::ALL),
            rules: None,
            image: ImageJson {
                reference: image.reference,
                source: "",
                served_by: None,
                manifest: None,
                config: None,
                platform: None,
                layers: Vec::new(),
                notes: &[],
            },
            host: None,
            verdict: Some(VerdictName::Error),
            error: Some(image.why),
            counts: None,
            probe: None,
            facts: BTreeMap::new(),
            judgements: Some(Vec::new()),
            notices: &[],
        }
    }
}

impl<'a> AskedJson<'a> {
    fn of(image: &'a str, run: Option<&'a ReportRun>, fail_on: FailOn, fail_for: &'a [Owner]) -> Self {
        Self {
            command: run.map(|run| &*run.command),
            image,
            platform: run.map(|run| &*run.platform),
            variables: run.map(|run| &*run.variables).unwrap_or_default(),
            fail_on,
            fail_for,
            sandbox: run.and_then(|run| run.sandbox.as_ref()),
        }
    }
}

impl From<OutcomeCounts> for CountsJson {
    fn from(counts: OutcomeCounts) -> Self {
        Self {
            error: counts.errors,
            warning: counts.warnings,
            info: counts.infos,
            unknown: counts.unknown,
            waived: counts.waived,
            consequence: counts.consequences,
            pass: counts.passed,
            not_applicable: counts.not_applicable,
        }
    }
}

impl<'a> From<&'a ImageSummary> for ImageJson<'a> {
    fn from(image: &'a ImageSummary) -> Self {
        Self {
            reference: &image.reference,
            source: &image.source,
            served_by: image.served_by.as_deref(),
            manifest: image.manifest.as_ref().map(model::Digest::as_str),
            config: image.config.as_ref().map(model::Digest::as_str),
            platform: image.platform.as_ref().map(ToString::to_string),
            layers: image.layers.iter().map(Into::into).collect(),
            notes: &image.notes,
        }
    }
}

impl<'a> From<&'a facts::machine::Host> for HostJson<'a> {
    fn from(host: &'a facts::machine::Host) -> Self {
        let gpu = host.gpu.as_ref();
        Self {
            name: &host.name,
            driver: host.driver.as_ref().map(model::Version::as_str),
            cuda: host.cuda.as_ref().map(model::Version::as_str),
            gpu: gpu.map(|gpu| &*gpu.name),
            gpu_arch: gpu.map(|gpu| format!("sm_{}", gpu.arch)),
            gpu_count: gpu.and_then(|gpu| gpu.count),
            fabric: host.fabric.map(facts::machine::Fabric::name),
            rdma: host.rdma.map(facts::machine::Nic::name),
            kernel: host.kernel.as_ref().map(model::Version::as_str),
        }
    }
}

impl<'a> From<&'a LayerSummary> for LayerJson<'a> {
    fn from(layer: &'a LayerSummary) -> Self {
        Self {
            digest: layer.digest.as_ref().map(model::Digest::as_str),
            diff_id: layer.diff_id.as_ref().map(model::Digest::as_str),
            diff_id_verified: layer.diff_id_verified,
            compression: layer.compression,
            size: layer.size,
            read: layer.read,
            unpacked: layer.unpacked,
            entries: layer.entries,
            cached: layer.cached,
            shared: layer.shared,
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
            model::Site::Config(key) => SiteJson::Config { config: key, step: None },
            model::Site::Probe(step) => SiteJson::Probe { probe: step },
            model::Site::Launch { file, line, variable } => SiteJson::Launch { launch: file, line: *line, variable },
        })
        .collect()
}
