//! The JSON report for programs: one object on one line, which `ncclcheck report` reads back. The structs below define the
//! published format, which changes only by additions while [`FORM`] stays. Reading skips what it does not need, and what an
//! older report lacks has a default.

mod fact;
mod host;
pub(super) mod in_toto;
mod judgement;
mod probe;
pub(super) mod stored;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Write};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;

use super::counts::OutcomeCounts;
use super::{Report, ReportRun, RulesInForce, Style, Unopened};
use fact::FactJson;
use host::HostJson;
use judge::Verdict;
use judge::rules::Judgement;
use judgement::JudgementJson;
use model::{FailOn, ImageSummary, Owner, SandboxState, printable};
use probe::ProbeJson;

/// Name and major version of the format.
const FORM: &str = "ncclcheck/2";

/// An ncclcheck report on one image, or on one that could not be opened. Later versions of this format may add keys.
#[derive(Default, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "ncclcheck report")]
struct ReportJson {
    /// Name and major version of the format.
    #[serde(skip_deserializing)]
    #[schemars(extend("const" = FORM))]
    schema: &'static str,
    /// The program that wrote the report.
    #[serde(skip_deserializing)]
    tool: ToolJson,
    /// Time when the run began, in UTC: 2026-01-31T12:00:00Z. Left out if a library made the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<String>,
    /// What was asked for.
    #[schemars(with = "AskedJson")]
    asked: Option<AskedJson>,
    /// The rules and the policies that judged. Left out if nothing was judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    rules: Option<RulesInForce>,
    /// The image. All but the reference is null or empty if it could not be opened.
    image: ImageSummary,
    /// The host that the image was judged for: there is one report for each host. Left out if no host was described.
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<HostJson>,
    /// The overall verdict. Left out by `inspect`.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    verdict: Option<VerdictName>,
    /// Why the image could not be opened. Left out if it could.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// Number of rules with each outcome. Left out by `inspect`, and if the image could not be opened.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    counts: Option<OutcomeCounts>,
    /// The results of running the image. Left out if the image was not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    probe: Option<ProbeJson>,
    /// Facts by name.
    #[serde(default)]
    facts: BTreeMap<String, FactJson>,
    /// One judgement for each rule, sorted by the rule's id. Left out by `inspect`.
    #[serde(skip_serializing_if = "Option::is_none")]
    judgements: Option<Vec<JudgementJson>>,
    /// Notices about the policy and the baseline, such as unused waivers.
    #[serde(default)]
    notices: Vec<String>,
}

/// The program that wrote a report.
#[derive(Default, Serialize, JsonSchema)]
#[schemars(rename = "Tool")]
struct ToolJson {
    /// ncclcheck.
    name: &'static str,
    /// Its version.
    version: &'static str,
}

/// What was asked for.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Asked")]
struct AskedJson {
    /// The command: check, inspect, probe, preflight, log or explain. Null if a library made the report.
    command: Option<String>,
    /// The reference as the user wrote it.
    #[serde(skip_deserializing)]
    image: String,
    /// The platform: host, all, or os/arch[/variant]. Null if a library made the report.
    platform: Option<String>,
    /// Names of the variables that the job sets.
    #[serde(default)]
    variables: Vec<String>,
    /// The lowest severity that makes the verdict a failure.
    #[serde(default)]
    fail_on: FailOn,
    /// The owners whose findings count for the verdict.
    #[schemars(with = "Vec<Owner>")]
    fail_for: Option<Vec<Owner>>,
    /// Whether the process that read the image had given up what it did not need. Null if a library made the report.
    sandbox: Option<SandboxState>,
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

/// Writes a line for each report.
pub(super) fn write(reports: &[Report<'_>], _: &Style, out: &mut dyn Write) -> io::Result<()> {
    reports.iter().try_for_each(|report| write_value(&ReportJson::from(report), out))
}

/// Writes an object for an image that could not be opened.
pub(super) fn write_unopened(image: &Unopened, out: &mut dyn Write) -> io::Result<()> {
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

/// The JSON schema of the predicate of in-toto statements, which the same test verifies.
pub const VERDICT_SCHEMA: &str = include_str!("../schema/verdict.schema.json");

/// The schemas by the names of their files.
#[cfg(test)]
pub fn schemas() -> [(&'static str, String); 2] {
    [("report", schema::<ReportJson>()), ("verdict", schema::<in_toto::VerdictJson>())]
}

/// Generates the JSON schema of a form, as it is written: a key that may be left out is never null.
#[cfg(test)]
fn schema<T: JsonSchema>() -> String {
    let schema = schemars::generate::SchemaSettings::draft2020_12()
        .for_serialize()
        .with_transform(schemars::transform::RecursiveTransform(describe_written))
        .into_generator()
        .into_root_schema_for::<T>();
    format!("{:#}\n", schema.as_value())
}

/// Removes what concerns the reading of a report, and null from keys that are left out instead.
#[cfg(test)]
fn describe_written(schema: &mut schemars::Schema) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |key: &str| required.as_array().is_some_and(|keys| keys.iter().any(|other| other == key));
    let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) else { return };
    for (key, value) in properties {
        let Some(property) = value.as_object_mut() else { continue };
        property.remove("default");
        property.remove("readOnly");
        if is_required(key) {
            continue;
        }
        if let Some([kind, _null]) = property.get("type").and_then(serde_json::Value::as_array).map(Vec::as_slice) {
            let kind = kind.clone();
            property.insert("type".to_owned(), kind);
        }
        if let Some(serde_json::Value::Array(kinds)) = property.remove("anyOf") {
            property.extend(kinds.into_iter().next().and_then(|kind| kind.as_object().cloned()).unwrap_or_default());
        }
    }
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

impl From<&Report<'_>> for ReportJson {
    fn from(report: &Report<'_>) -> Self {
        let image = report.image;
        let facts = report.facts.iter().map(|(name, fact)| (name.to_owned(), FactJson::new(fact, &image.layers)));
        let judgement = |one: &Judgement<'_>| JudgementJson::new(one, image, report.dockerfile);
        let judgements = |judged: &[Judgement<'_>]| judged.iter().map(judgement).collect();
        Self {
            schema: FORM,
            tool: TOOL,
            time: report.run.map(|run| run.time.clone()),
            asked: Some(AskedJson::new(&image.reference, report.run, report.fail_on, report.fail_for)),
            rules: report.rules.cloned(),
            image: image.clone(),
            host: report.host.map(Into::into),
            verdict: report.verdict().map(Into::into),
            error: None,
            counts: report.judgements.map(OutcomeCounts::of),
            probe: report.probe.map(Into::into),
            facts: facts.collect(),
            judgements: report.judgements.map(judgements),
            notices: report.notices.to_vec(),
        }
    }
}

impl From<&Unopened> for ReportJson {
    fn from(Unopened { reference, why, run }: &Unopened) -> Self {
        let run = run.as_ref();
        Self {
            schema: FORM,
            tool: TOOL,
            time: run.map(|run| run.time.clone()),
            asked: Some(AskedJson::new(reference, run, FailOn::default(), &Owner::ALL)),
            image: ImageSummary { reference: reference.clone(), ..ImageSummary::default() },
            verdict: Some(VerdictName::Error),
            error: Some(why.clone()),
            judgements: Some(Vec::new()),
            ..Self::default()
        }
    }
}

impl AskedJson {
    fn new(image: &str, run: Option<&ReportRun>, fail_on: FailOn, fail_for: &[Owner]) -> Self {
        Self {
            command: run.map(|run| run.command.clone()),
            image: image.to_owned(),
            platform: run.map(|run| run.platform.clone()),
            variables: run.map(|run| run.variables.clone()).unwrap_or_default(),
            fail_on,
            fail_for: Some(fail_for.to_vec()),
            sandbox: run.and_then(|run| run.sandbox.clone()),
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
