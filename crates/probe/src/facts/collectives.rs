//! Facts about the collectives, from measurements and from NCCL's debug output.

use std::collections::BTreeMap;

use facts::Facts;
use facts::key::{self, Definition};
use facts::records::{ArrangementResult, VariantResult};
use model::{Fact, Gap, Version, size};

use super::super::recording::{Recording, StepOutcome, StepRecord};
use super::super::wire::collectives::{CollectivesBody, FORCED_NETWORK, Measurement, PointToPoint, Setup, Times};
use super::super::wire::isolated::{IsolatedBody, IsolatedRow};
use super::super::wire::pytorch::MappedLibraries;
use super::super::wire::what_if::{VariantSize, WhatIfBody, WhatIfVariant};
use super::super::wire::{self, StepBody as _};
use super::{filled, none_of, seen, texts, unanswered, whole};
use nccllog::NcclLog;

const KEYS: &[&Definition] = key::definitions![
    RUN_NCCL_WORKS,
    RUN_NCCL_ERROR,
    RUN_NCCL_HANG,
    RUN_NCCL_RANKS,
    RUN_NCCL_VERSION,
    RUN_NCCL_PATHS,
    RUN_NCCL_NODES,
    RUN_NCCL_TRANSPORTS,
    RUN_NCCL_NETWORK,
    RUN_NCCL_INTERFACES,
    RUN_NCCL_WARNINGS,
    RUN_NCCL_PLUGIN_ERRORS,
    RUN_NCCL_WRONG,
    RUN_NCCL_BUSBW,
    RUN_NCCL_ALL_REDUCE,
    RUN_NCCL_INIT,
    RUN_NCCL_PAIR,
];

/// Smallest size, in bytes, at which bandwidth dominates over latency.
const LARGE: u64 = 64 << 20;

/// NCCL's debug output in the first run of a step.
pub fn log(step: &StepRecord) -> NcclLog {
    if let Some(read) = &step.read_log {
        return NcclLog::clone(read);
    }
    log_of_run(step, 0)
}

/// NCCL's debug output in one run of a step.
pub fn log_of_run(step: &StepRecord, run: u32) -> NcclLog {
    let mut log = NcclLog::read(step.log.iter().filter(|line| line.run == run).map(|line| line.line.as_str()));
    log.left_out = step.log.iter().filter_map(|line| line.left_out).sum();
    log
}

/// Bus bandwidth of an operation at the largest measured size, in bytes per second.
pub fn bandwidth(step: &StepRecord, operation: &str) -> Option<f64> {
    let of_operation = step.parts_of::<Measurement>().filter(|part| part.operation.text() == Some(operation));
    of_operation.max_by_key(|part| part.bytes.copied())?.busbw()
}

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    match recording.find(CollectivesBody::STEP) {
        Some(step) if !matches!(step.outcome, StepOutcome::Skipped(_)) => collectives(step, facts),
        _ => none_of(KEYS, &unanswered(recording, CollectivesBody::STEP), facts),
    }
    forced(recording, facts);
    isolated(recording, facts);
    what_if(recording, facts);
}

fn collectives(step: &StepRecord, facts: &mut Facts) {
    let failed = match &step.outcome {
        StepOutcome::Failed(failed) => Some(failed),
        _ => None,
    };
    // The program reports these times as soon as the first call has returned.
    let first = step.parts_of::<Times>().next();
    let works = match (&first, &step.outcome) {
        (Some(_), _) => Fact::seen(true, [super::site(&step.name)]),
        (None, StepOutcome::Failed(_)) => Fact::seen(false, [super::site(&step.name)]),
        (None, _) => Fact::Unknown(Gap::new("the collectives did not end")),
    };
    facts.insert(key::RUN_NCCL_WORKS, works);
    let hang = failed.filter(|failed| failed.is_hang());
    let error = failed.filter(|failed| !failed.is_hang());
    let error = error.map_or(Fact::Absent, |failed| seen(step, failed.worded(&one_line(&failed.message))));
    facts.insert(key::RUN_NCCL_ERROR, error);
    facts.insert(key::RUN_NCCL_HANG, hang.map_or(Fact::Absent, |failed| seen(step, failed.message.clone())));
    let ranks = step.parts_of::<Setup>().next().and_then(|setup| setup.world_size.copied());
    facts.insert(key::RUN_NCCL_RANKS, ranks.map_or(Fact::Absent, |ranks| seen(step, ranks)));
    let mapped = step.parts_of::<MappedLibraries>().next();
    let copies = mapped.map_or(Ok(Vec::new()), |part| part.paths.known_list().map(copies_of_nccl));
    facts.insert(key::RUN_NCCL_PATHS, copies.map_or_else(Fact::Unknown, |copies| texts(step, copies)));
    insert_log_facts(step, facts);
    measured(step, first.as_ref(), facts);
}

fn copies_of_nccl(libraries: &[String]) -> Vec<String> {
    let is_nccl = |path: &&String| path.rsplit('/').next().is_some_and(|file_name| file_name.starts_with("libnccl.so"));
    libraries.iter().filter(is_nccl).cloned().collect()
}

/// Joins the lines of a text, because NCCL's errors have several.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Adds the facts from NCCL's debug output.
fn insert_log_facts(step: &StepRecord, facts: &mut Facts) {
    let log = log(step);
    let setup = step.parts_of::<Setup>().next();
    let uses_nccl = setup.as_ref().and_then(|setup| setup.backend.text()).is_none_or(|backend| backend == "nccl");
    let silent = step.log.is_empty() && uses_nccl;
    // Reason why the absence of a line proves nothing.
    let gap = match log.left_out {
        _ if silent => Some(Gap::new("NCCL wrote no debug output")),
        0 => None,
        left_out => Some(Gap::new(format!("{left_out} lines of NCCL's debug output were left out"))),
    };
    let gap = gap.as_ref();
    let list = |values: Vec<String>| or_gap(texts(step, values), gap);
    let version = log.version.as_deref().and_then(Version::parse);
    facts.insert(key::RUN_NCCL_VERSION, or_gap(version.map_or(Fact::Absent, |version| seen(step, version)), gap));
    let nodes = or_gap(log.nodes.map_or(Fact::Absent, |nodes| seen(step, nodes)), gap);
    facts.insert(key::RUN_NCCL_NODES, nodes);
    facts.insert(key::RUN_NCCL_TRANSPORTS, list(log.transports().into_iter().map(ToOwned::to_owned).collect()));
    facts.insert(key::RUN_NCCL_NETWORK, list(log.network.into_iter().collect()));
    let mut interfaces = log.bootstrap;
    interfaces.extend(log.sockets);
    facts.insert(key::RUN_NCCL_INTERFACES, list(interfaces.into_iter().collect()));
    facts.insert(key::RUN_NCCL_WARNINGS, list(log.warnings.into_keys().collect()));
    facts.insert(key::RUN_NCCL_PLUGIN_ERRORS, list(log.plugin_errors.into_iter().collect()));
}

fn measured(step: &StepRecord, first: Option<&Times>, facts: &mut Facts) {
    let measurements: Vec<_> = step.parts_of::<Measurement>().collect();
    // If the step did not finish, operations that it did not measure may still be wrong.
    let lost = match &step.outcome {
        StepOutcome::Done { .. } => None,
        StepOutcome::Failed(failed) => Some(Gap::new(format!("the step failed: {}", failed.message))),
        StepOutcome::Open | StepOutcome::Skipped(_) => Some(Gap::new("the step did not end")),
    };
    let lost = lost.as_ref();
    let wrong = measurements.iter().filter_map(|part| {
        let wrong = part.wrong.copied().filter(|wrong| *wrong > 0)?;
        let operation = part.operation.text().unwrap_or("?");
        let bytes = part.bytes.copied().unwrap_or_default();
        Some(format!("{operation} of {}: {wrong} wrong values", size(bytes)))
    });
    // The absence of wrong values counts only if all values were compared.
    let unchecked = measurements.iter().find_map(|part| part.wrong.known().err());
    let left_out = || {
        let body: CollectivesBody = wire::read(step.body()?);
        let why = body.left_out.list().first()?.why.text()?.to_owned();
        Some(Gap::new(format!("nothing was measured: {why}")))
    };
    let unchecked = unchecked.or_else(|| if measurements.is_empty() { left_out() } else { None });
    let wrong = match (texts(step, wrong.collect()), unchecked) {
        (Fact::Absent, Some(gap)) => Fact::Unknown(gap),
        (wrong, _) => or_gap(wrong, lost),
    };
    facts.insert(key::RUN_NCCL_WRONG, wrong);
    let mut largest: BTreeMap<&str, &Measurement> = BTreeMap::new();
    for part in &measurements {
        let name = part.operation.text().unwrap_or_default();
        let is_larger = largest.get(name).is_none_or(|other| other.bytes.copied() < part.bytes.copied());
        if is_larger {
            largest.insert(name, part);
        }
    }
    // A bandwidth that cannot be read leaves all of them in doubt.
    let unread = measurements.iter().find_map(|part| part.busbw_bytes_per_second.known().err());
    let lost = lost.or(unread.as_ref());
    let busbw: BTreeMap<_, _> = largest
        .iter()
        .filter_map(|(name, part)| Some(((*name).to_owned(), format!("{:.1}", part.busbw()? / 1e9))))
        .collect();
    facts.insert(key::RUN_NCCL_BUSBW, or_gap(if busbw.is_empty() { Fact::Absent } else { seen(step, busbw) }, lost));
    let all_reduce = largest.get("all_reduce").filter(|part| part.bytes.copied() >= Some(LARGE));
    let all_reduce = all_reduce.and_then(|part| part.busbw()).map(|speed| seen(step, whole(speed / 1e6)));
    facts.insert(key::RUN_NCCL_ALL_REDUCE, or_gap(all_reduce.unwrap_or(Fact::Absent), lost));
    let first = first.and_then(|times| Some(times.init_seconds.copied()? + times.first_call_seconds.copied()?));
    let milliseconds = |seconds: f64| seen(step, whole(seconds * 1e3));
    facts.insert(key::RUN_NCCL_INIT, or_gap(first.map_or(Fact::Absent, milliseconds), lost));
    let mut pairs = step.parts_of::<PointToPoint>();
    let pair = pairs.find(|part| part.prepared_by.text() == Some("nothing"));
    let pair = pair.and_then(|part| part.first_seconds.copied());
    facts.insert(key::RUN_NCCL_PAIR, pair.map_or(Fact::Absent, milliseconds));
}

/// Replaces an absent fact by the gap of a step that was lost.
fn or_gap<T>(fact: Fact<T>, lost: Option<&Gap>) -> Fact<T> {
    match (&fact, lost) {
        (Fact::Absent, Some(gap)) => Fact::Unknown(gap.clone()),
        _ => fact,
    }
}

/// Adds the facts of the run over the network only.
fn forced(recording: &Recording, facts: &mut Facts) {
    let keys = key::definitions![RUN_FORCED_ERROR, RUN_FORCED_TRANSPORTS, RUN_FORCED_MB_S];
    let Some(step) = recording.find(FORCED_NETWORK).filter(|step| !matches!(step.outcome, StepOutcome::Skipped(_)))
    else {
        return none_of(keys, &unanswered(recording, FORCED_NETWORK), facts);
    };
    let error = match &step.outcome {
        StepOutcome::Failed(failed) => seen(step, one_line(&failed.message)),
        StepOutcome::Open => Fact::Unknown(Gap::new("the step did not end")),
        _ => Fact::Absent,
    };
    facts.insert(key::RUN_FORCED_ERROR, error);
    let log = log(step);
    facts
        .insert(key::RUN_FORCED_TRANSPORTS, texts(step, log.transports().into_iter().map(ToOwned::to_owned).collect()));
    let speed = bandwidth(step, "all_reduce").map(|speed| seen(step, whole(speed / 1e6)));
    facts.insert(key::RUN_FORCED_MB_S, speed.unwrap_or(Fact::Absent));
}

/// Adds one record for each arrangement of containers.
fn isolated(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<IsolatedBody>() else {
        return none_of(key::definitions![RUN_ISOLATED], &unanswered(recording, IsolatedBody::STEP), facts);
    };
    let rows = match body.rows.known_list() {
        Ok(rows) => rows,
        Err(gap) => return facts.insert(key::RUN_ISOLATED, Fact::Unknown(gap)),
    };
    let speed = |row: &IsolatedRow| row.all_reduce_bytes_per_second.copied();
    let together = rows.first().and_then(speed);
    let records = rows.iter().map(|row| {
        let text = |text: Option<&str>| one_line(text.unwrap_or_default());
        let error = [text(row.error.text()), text(row.warning.text())];
        let error = error.into_iter().filter(|_| row.error.text().is_some());
        let percent = speed(row).zip(together).map(|(speed, together)| format!("{:.0}", speed / together * 100.0));
        ArrangementResult {
            arrangement: filled(text(row.arrangement.text())),
            transports: filled(row.transports.list().join(", ")),
            gb_s: speed(row).map(|speed| format!("{:.1}", speed / 1e9)),
            percent,
            error: filled(error.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ")),
        }
    });
    let records: Vec<_> = records.collect();
    facts.insert(key::RUN_ISOLATED, if records.is_empty() { Fact::Absent } else { seen(step, records) });
}

/// Adds one record for each variant and size. A variant differs from the base beyond noise only if the slowest sample
/// of one is faster than the fastest sample of the other.
fn what_if(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<WhatIfBody>() else {
        return none_of(key::definitions![RUN_WHAT_IF], &unanswered(recording, WhatIfBody::STEP), facts);
    };
    let mut records: Vec<VariantResult> = Vec::new();
    let all = match body.variants.known_list() {
        Ok(all) => all,
        Err(gap) => return facts.insert(key::RUN_WHAT_IF, Fact::Unknown(gap)),
    };
    if let [base, variants @ ..] = all {
        records.extend(variants.iter().flat_map(|variant| compared(base, variant)));
    }
    facts.insert(key::RUN_WHAT_IF, if records.is_empty() { Fact::Absent } else { seen(step, records) });
}

/// The records of one variant: its failure, or one for each size that the base also has.
fn compared(base: &WhatIfVariant, variant: &WhatIfVariant) -> Vec<VariantResult> {
    let variables = variant.env.value().into_iter().flatten().map(|(name, value)| format!("{name}={value}"));
    let name = VariantResult { variables: Some(variables.collect::<Vec<_>>().join(" ")), ..VariantResult::default() };
    // An unreadable failure is still a failure.
    let error = match variant.failed.known() {
        Ok(failed) => failed.map(|failed| failed.message.clone()),
        Err(gap) => Some(gap.to_string()),
    };
    if error.is_some() {
        return vec![VariantResult { error, ..name }];
    }
    let records = variant.sizes.list().iter().filter_map(|size| {
        let bytes = size.bytes.copied()?;
        let base = base.sizes.list().iter().find(|other| other.bytes.copied() == Some(bytes))?;
        let ratio = base.median_seconds.copied()? / size.median_seconds.copied()?;
        Some(VariantResult {
            size: Some(bytes.to_string()),
            ratio: Some(format!("{ratio:.2}")),
            differs: Some(if differ(base, size) { "yes" } else { "no" }.to_owned()),
            ..name.clone()
        })
    });
    records.collect()
}

fn differ(base: &VariantSize, other: &VariantSize) -> bool {
    let range = |size: &VariantSize| {
        let samples = size.samples.list().iter().copied();
        (samples.clone().fold(f64::INFINITY, f64::min), samples.fold(0.0, f64::max))
    };
    let (least, most) = range(base);
    let (other_least, other_most) = range(other);
    most < other_least || other_most < least
}

#[cfg(test)]
mod tests;
