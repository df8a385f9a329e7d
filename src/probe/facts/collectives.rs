//! The collectives, and what NCCL said of them.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key::{self, Key};
use crate::model::{Fact, Gap, Value, Version};

use super::super::nccl_log::NcclLog;
use super::super::recording::{Outcome, Recording, Step};
use super::pytorch::part;
use super::reading::Reading;
use super::{none_of, seen, texts, untold, whole};

const KEYS: &[&Key] = &[
    key::RUN_NCCL_WORKS,
    key::RUN_NCCL_ERROR,
    key::RUN_NCCL_HANG,
    key::RUN_NCCL_RANKS,
    key::RUN_NCCL_VERSION,
    key::RUN_NCCL_PATHS,
    key::RUN_NCCL_NODES,
    key::RUN_NCCL_TRANSPORTS,
    key::RUN_NCCL_NETWORK,
    key::RUN_NCCL_INTERFACES,
    key::RUN_NCCL_WARNINGS,
    key::RUN_NCCL_PLUGIN_ERRORS,
    key::RUN_NCCL_WRONG,
    key::RUN_NCCL_BUSBW,
    key::RUN_NCCL_ALL_REDUCE,
    key::RUN_NCCL_INIT,
    key::RUN_NCCL_PAIR,
];

/// Bytes from which on bandwidth is what counts, not latency.
const LARGE: i64 = 64 << 20;

/// What NCCL said in the first run of a step.
pub fn log(step: &Step) -> NcclLog {
    let mut log = NcclLog::read(step.log.iter().filter(|line| line.run == 0).map(|line| line.line.as_str()));
    log.left_out = step.log.iter().filter_map(|line| line.left_out).sum();
    log
}

/// Bus bandwidth of an operation at the largest size that was measured, in bytes per second.
pub fn bandwidth(step: &Step, operation: &str) -> Option<f64> {
    let of_operation = step.parts.iter().filter(|part| part.get("operation").and_then(Json::as_str) == Some(operation));
    let largest = of_operation.max_by_key(|part| part.get("bytes").and_then(Json::as_u64));
    largest?.get("busbw_bytes_per_second")?.as_f64()
}

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    match recording.find("collectives") {
        Some(step) if !matches!(step.outcome, Outcome::Skipped(_)) => collectives(step, facts),
        _ => none_of(KEYS, &untold(recording, "collectives"), facts),
    }
    forced(recording, facts);
    isolated(recording, facts);
    what_if(recording, facts);
}

fn collectives(step: &Step, facts: &mut Facts) {
    let failed = match &step.outcome {
        Outcome::Failed(failed) => Some(failed),
        _ => None,
    };
    // The first call's time is told as soon as it has come back.
    let first = part(step, "kind", "times").map(|part| Json::Object(part.clone()));
    let works = match (&first, &step.outcome) {
        (Some(_), _) => Fact::seen(true, [super::site(&step.name)]),
        (None, Outcome::Failed(_)) => Fact::seen(false, [super::site(&step.name)]),
        (None, _) => Fact::Unknown(Gap::new("the collectives were not ended")),
    };
    facts.insert(key::RUN_NCCL_WORKS, works);
    let hang = failed.filter(|failed| failed.how == "deadline");
    let error = failed.filter(|failed| failed.how != "deadline");
    let worded = |message: &str, kind: Option<&String>| {
        let line = one_line(message);
        kind.map_or_else(|| line.clone(), |kind| format!("{kind}: {line}"))
    };
    facts.insert(
        key::RUN_NCCL_ERROR,
        error.map_or(Fact::Absent, |failed| seen(step, worded(&failed.message, failed.kind.as_ref()))),
    );
    facts.insert(key::RUN_NCCL_HANG, hang.map_or(Fact::Absent, |failed| seen(step, failed.message.clone())));
    let setup = part(step, "kind", "setup").map(|part| Json::Object(part.clone()));
    let ranks = setup.as_ref().and_then(|setup| Reading::new(setup).number("world_size"));
    facts.insert(key::RUN_NCCL_RANKS, ranks.map_or(Fact::Absent, |ranks| seen(step, Value::Int(ranks))));
    let mapped = part(step, "kind", "libraries").map(|part| Json::Object(part.clone()));
    let paths = mapped.map(|part| Reading::new(&part).texts("paths")).unwrap_or_default();
    let copies =
        paths.into_iter().filter(|path| path.rsplit('/').next().is_some_and(|name| name.starts_with("libnccl.so")));
    facts.insert(key::RUN_NCCL_PATHS, texts(step, copies.collect()));
    said(step, facts);
    measured(step, first.as_ref(), facts);
}

/// NCCL's errors are several lines.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What NCCL's log tells.
fn said(step: &Step, facts: &mut Facts) {
    let log = log(step);
    let uses_nccl =
        part(step, "kind", "setup").and_then(|setup| setup.get("backend")).is_none_or(|backend| backend == "nccl");
    let silent = step.log.is_empty() && uses_nccl;
    let gap = || Fact::Unknown(Gap::new("NCCL wrote no debug output"));
    let list = |values: Vec<String>| match log.left_out {
        _ if silent => gap(),
        left_out if left_out > 0 && values.is_empty() => {
            Fact::Unknown(Gap::new(format!("{left_out} lines of NCCL's debug output were left out")))
        }
        _ => texts(step, values),
    };
    let version = log.version.as_deref().and_then(Version::parse);
    facts.insert(key::RUN_NCCL_VERSION, version.map_or_else(|| list(Vec::new()), |version| seen(step, version)));
    let nodes = log.nodes.map_or_else(|| list(Vec::new()), |nodes| seen(step, Value::Int(nodes.into())));
    facts.insert(key::RUN_NCCL_NODES, nodes);
    facts.insert(key::RUN_NCCL_TRANSPORTS, list(log.transports().into_iter().map(ToOwned::to_owned).collect()));
    facts.insert(key::RUN_NCCL_NETWORK, list(log.network.into_iter().collect()));
    let mut interfaces = log.bootstrap;
    interfaces.extend(log.sockets);
    facts.insert(key::RUN_NCCL_INTERFACES, list(interfaces.into_iter().collect()));
    facts.insert(key::RUN_NCCL_WARNINGS, list(log.warnings.into_keys().collect()));
    facts.insert(key::RUN_NCCL_PLUGIN_ERRORS, list(log.plugin_errors.into_iter().collect()));
}

fn measured(step: &Step, first: Option<&Json>, facts: &mut Facts) {
    let parts: Vec<_> = step.parts.iter().map(|part| Json::Object(part.clone())).collect();
    let of_kind =
        |kind: &'static str| parts.iter().map(Reading::new).filter(move |part| part.text("kind") == Some(kind));
    let measurements: Vec<_> = of_kind("measurement").collect();
    // Where the step was lost on its way, what was not measured is not known to be right.
    let lost = match &step.outcome {
        Outcome::Done { .. } => None,
        Outcome::Failed(failed) => Some(Gap::new(format!("the step failed: {}", failed.message))),
        Outcome::Open | Outcome::Skipped(_) => Some(Gap::new("the step was not ended")),
    };
    let or_gap = |fact: Fact| match (&fact, &lost) {
        (Fact::Absent, Some(gap)) => Fact::Unknown(gap.clone()),
        _ => fact,
    };
    let wrong = measurements.iter().filter(|part| part.number("wrong").is_some_and(|wrong| wrong > 0)).map(|part| {
        let (operation, bytes) = (part.text("operation").unwrap_or("?"), part.number("bytes").unwrap_or_default());
        format!("{operation} of {bytes} bytes: {} wrong values", part.number("wrong").unwrap_or_default())
    });
    // Nothing wrong was found: is that since all was looked at?
    let unchecked = measurements.iter().find_map(|part| part.known("wrong").err());
    let left_out = || {
        let body = Json::Object(step.body()?.clone());
        let why = Reading::new(&body).list("left_out").next()?.text("why")?.to_owned();
        Some(Gap::new(format!("nothing was measured: {why}")))
    };
    let unchecked = unchecked.or_else(|| if measurements.is_empty() { left_out() } else { None });
    let wrong = match (texts(step, wrong.collect()), unchecked) {
        (Fact::Absent, Some(gap)) => Fact::Unknown(gap),
        (wrong, _) => or_gap(wrong),
    };
    facts.insert(key::RUN_NCCL_WRONG, wrong);
    let mut largest: BTreeMap<String, Reading<'_>> = BTreeMap::new();
    for part in &measurements {
        let name = part.text("operation").unwrap_or_default().to_owned();
        let is_larger = largest.get(&name).is_none_or(|other| other.number("bytes") < part.number("bytes"));
        if is_larger {
            largest.insert(name, *part);
        }
    }
    let speed = |part: &Reading<'_>| part.float("busbw_bytes_per_second");
    let busbw: BTreeMap<_, _> =
        largest.iter().filter_map(|(name, part)| Some((name.clone(), format!("{:.1}", speed(part)? / 1e9)))).collect();
    facts.insert(key::RUN_NCCL_BUSBW, or_gap(if busbw.is_empty() { Fact::Absent } else { seen(step, busbw) }));
    let all_reduce = largest.get("all_reduce").filter(|part| part.number("bytes") >= Some(LARGE));
    let all_reduce = all_reduce.and_then(speed).map(|speed| seen(step, Value::Int(whole(speed / 1e6))));
    facts.insert(key::RUN_NCCL_ALL_REDUCE, or_gap(all_reduce.unwrap_or(Fact::Absent)));
    let first = first
        .map(Reading::new)
        .and_then(|times| Some(times.float("init_seconds")? + times.float("first_call_seconds")?));
    let milliseconds = |seconds: f64| seen(step, Value::Int(whole(seconds * 1e3)));
    facts.insert(key::RUN_NCCL_INIT, or_gap(first.map_or(Fact::Absent, milliseconds)));
    let pair = of_kind("point-to-point").find(|part| part.text("prepared_by") == Some("nothing"));
    let pair = pair.and_then(|part| part.float("first_seconds"));
    facts.insert(key::RUN_NCCL_PAIR, pair.map_or(Fact::Absent, milliseconds));
}

/// The run over the network alone.
fn forced(recording: &Recording, facts: &mut Facts) {
    let keys = &[key::RUN_FORCED_ERROR, key::RUN_FORCED_TRANSPORTS, key::RUN_FORCED_MB_S];
    let Some(step) = recording.find("forced-network").filter(|step| !matches!(step.outcome, Outcome::Skipped(_)))
    else {
        return none_of(keys, &untold(recording, "forced-network"), facts);
    };
    let error = match &step.outcome {
        Outcome::Failed(failed) => seen(step, one_line(&failed.message)),
        Outcome::Open => Fact::Unknown(Gap::new("the step was not ended")),
        _ => Fact::Absent,
    };
    facts.insert(key::RUN_FORCED_ERROR, error);
    let log = log(step);
    facts
        .insert(key::RUN_FORCED_TRANSPORTS, texts(step, log.transports().into_iter().map(ToOwned::to_owned).collect()));
    let speed = bandwidth(step, "all_reduce").map(|speed| seen(step, Value::Int(whole(speed / 1e6))));
    facts.insert(key::RUN_FORCED_MB_S, speed.unwrap_or(Fact::Absent));
}

/// One record for each arrangement of containers.
fn isolated(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.find("isolated").and_then(|step| Some((step, step.body()?))) else {
        return none_of(&[key::RUN_ISOLATED], &untold(recording, "isolated"), facts);
    };
    let object = Json::Object(body.clone());
    let rows: Vec<_> = Reading::new(&object).list("rows").collect();
    let speed = |row: &Reading<'_>| row.float("all_reduce_bytes_per_second");
    let together = rows.first().and_then(speed);
    let records = rows.iter().map(|row| {
        let text = |name: &str| one_line(row.text(name).unwrap_or_default());
        let error = [text("error"), text("warning")].into_iter().filter(|_| row.text("error").is_some());
        let percent = speed(row).zip(together).map(|(speed, together)| format!("{:.0}", speed / together * 100.0));
        let fields = [
            ("arrangement", text("arrangement")),
            ("transports", row.texts("transports").join(", ")),
            ("gb_s", speed(row).map_or_else(String::new, |speed| format!("{:.1}", speed / 1e9))),
            ("percent", percent.unwrap_or_default()),
            ("error", error.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")),
        ];
        let record: BTreeMap<_, _> = fields.into_iter().filter(|(_, text)| !text.is_empty()).collect();
        record.into_iter().map(|(name, text)| (name.to_owned(), text)).collect::<BTreeMap<_, _>>().into()
    });
    let records: Vec<Value> = records.collect();
    facts.insert(key::RUN_ISOLATED, if records.is_empty() { Fact::Absent } else { seen(step, records) });
}

/// One record for each variant and size. Times are compared as whole samples: only if the slowest of one is faster than the
/// fastest of the other does one differ from the other beyond noise.
fn what_if(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.find("what-if").and_then(|step| Some((step, step.body()?))) else {
        return none_of(&[key::RUN_WHAT_IF], &untold(recording, "what-if"), facts);
    };
    let object = Json::Object(body.clone());
    let variants: Vec<_> = Reading::new(&object).list("variants").collect();
    let mut records: Vec<Value> = Vec::new();
    for variant in variants.iter().skip(1) {
        let variables: Vec<_> = variant
            .object("env")
            .entries()
            .filter_map(|(name, value)| Some(format!("{name}={}", value.as_text()?)))
            .collect();
        let name = ("variables".to_owned(), variables.join(" "));
        if let Some(error) = variant.object("failed").text("message") {
            records.push(BTreeMap::from([name, ("error".to_owned(), error.to_owned())]).into());
            continue;
        }
        for size in variant.list("sizes") {
            let bytes = size.number("bytes");
            let base =
                variants.first().and_then(|base| base.list("sizes").find(|other| other.number("bytes") == bytes));
            let (Some(base), Some(bytes)) = (base, bytes) else { continue };
            let (Some(before), Some(after)) = (base.float("median_seconds"), size.float("median_seconds")) else {
                continue;
            };
            records.push(
                BTreeMap::from([
                    name.clone(),
                    ("size".to_owned(), bytes.to_string()),
                    ("ratio".to_owned(), format!("{:.2}", before / after)),
                    ("differs".to_owned(), if differ(base, size) { "yes" } else { "no" }.to_owned()),
                ])
                .into(),
            );
        }
    }
    facts.insert(key::RUN_WHAT_IF, if records.is_empty() { Fact::Absent } else { seen(step, records) });
}

fn differ(base: Reading<'_>, other: Reading<'_>) -> bool {
    let range = |size: Reading<'_>| {
        let samples: Vec<_> = size.list("samples").filter_map(Reading::as_float).collect();
        let least = samples.iter().copied().fold(f64::INFINITY, f64::min);
        (least, samples.iter().copied().fold(0.0, f64::max))
    };
    let ((least, most), (other_least, other_most)) = (range(base), range(other));
    most < other_least || other_most < least
}

#[cfg(test)]
mod tests;
