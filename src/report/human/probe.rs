//! Results of a probe: the engine and the main facts, the topology matrix, the transports between ranks, and the
//! bandwidths.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use anstyle::AnsiColor;

use super::overview::told;
use super::page::{self, Page, label};
use crate::facts::Facts;
use crate::facts::key::{self, Definition};
use crate::model::{Fact, Value};
use crate::probe::facts::log;
use crate::probe::recording::{Recording, StepOutcome, StepRecord};
use crate::probe::wire::StepBody as _;
use crate::probe::wire::collectives::{CollectivesBody, FORCED_NETWORK, Measurement};
use crate::probe::wire::gpus::GpusBody;
use crate::probe::wire::pytorch::PytorchBody;
use crate::probe::wire::rdma::RdmaBody;
use crate::probe::wire::topology::{Matrix, TopologyBody};

/// Column of the values.
const COLUMN: usize = 14;

/// Writes the engine, the main facts and the steps, in a few lines.
pub(super) fn summary(probe: &Recording, facts: &Facts, page: &mut Page<'_>) -> io::Result<()> {
    let mut row = |name: &str, text: &str| page.row(2, label(name), COLUMN, text);
    row("engine", &probe.launch.as_ref().map_or("none (run in place)".to_owned(), |launch| launch.engine.clone()))?;
    if let Some(text) = entrypoint(facts) {
        row("entrypoint", &text)?;
    }
    let looked = |step: &str, text: String| if probe.find(step).is_some() { text } else { "not tested".to_owned() };
    row("GPUs", &looked(GpusBody::STEP, gpus(facts)))?;
    row("torch", &looked(PytorchBody::STEP, torch(facts)))?;
    row("NCCL", &looked(CollectivesBody::STEP, nccl(facts)))?;
    row("RDMA", &looked(RdmaBody::STEP, rdma(facts)))?;
    row("steps", &probe.steps.iter().map(step).collect::<Vec<_>>().join(", "))
}

/// The image's entrypoint, and what it did; `None` if the image has none.
fn entrypoint(facts: &Facts) -> Option<String> {
    if let Some(why) = value(facts, &key::RUN_ENTRYPOINT_BYPASSED) {
        return Some(format!("not run: {why}"));
    }
    let command = value(facts, &key::RUN_ENTRYPOINT)?;
    let did = match facts.view(&key::RUN_ENTRYPOINT_CHANGES) {
        _ if facts.get(key::RUN_ENTRYPOINT_ERROR).value().is_some() => "did not start the program".to_owned(),
        Fact::Absent => "changes nothing".to_owned(),
        changes => told(changes),
    };
    Some(format!("{command}: {did}"))
}

/// Text of a fact, if it has a value.
fn value(facts: &Facts, key: &Definition) -> Option<String> {
    facts.view(key).value().map(ToString::to_string)
}

fn gpus(facts: &Facts) -> String {
    let Some(models) = facts.get(key::RUN_GPU_MODELS).value() else {
        return told(facts.view(&key::RUN_GPU_COUNT));
    };
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for model in models {
        *counts.entry(model).or_default() += 1;
    }
    let counts: Vec<_> = counts.iter().map(|(model, count)| format!("{count} x {model}")).collect();
    let driver = facts.get(key::RUN_DRIVER).value().map(|driver| format!(", driver {driver}")).unwrap_or_default();
    format!("{}{driver}", counts.join(", "))
}

fn torch(facts: &Facts) -> String {
    match (value(facts, &key::RUN_TORCH_VERSION), value(facts, &key::RUN_TORCH_FILE)) {
        (Some(version), Some(file)) => format!("{version} from {file}"),
        (Some(version), None) => version,
        (None, _) => match facts.view(&key::RUN_TORCH_ERROR) {
            Fact::Absent => told(facts.view(&key::RUN_TORCH_VERSION)),
            error => told(error),
        },
    }
}

fn nccl(facts: &Facts) -> String {
    let Some(version) = value(facts, &key::RUN_NCCL_VERSION) else {
        return told(facts.view(&key::RUN_NCCL_WORKS));
    };
    let part =
        |key: &Definition, before: &str| value(facts, key).map(|text| format!(", {before}{text}")).unwrap_or_default();
    let ranks = facts.get(key::RUN_NCCL_RANKS).value().map(|ranks| format!(", {ranks} ranks")).unwrap_or_default();
    let hosts = match facts.get(key::RUN_NCCL_NODES).value() {
        None => String::new(),
        Some(1) => " on 1 host".to_owned(),
        Some(hosts) => format!(" on {hosts} hosts (as NCCL counts them)"),
    };
    let network = part(&key::RUN_NCCL_NETWORK, "network ");
    format!("{version}{ranks}{hosts}{}{network}", part(&key::RUN_NCCL_TRANSPORTS, ""))
}

fn rdma(facts: &Facts) -> String {
    match (facts.view(&key::RUN_RDMA_DEVICES), facts.get(key::RUN_RDMA_CLOSED).value()) {
        (Fact::Absent, None) => "no device".to_owned(),
        (Fact::Absent, Some(_)) => "the container cannot open the devices".to_owned(),
        (devices, _) => told(devices),
    }
}

fn step(step: &StepRecord) -> String {
    match (&step.outcome, step.seconds) {
        (StepOutcome::Done { .. }, Some(seconds)) => format!("{} {seconds:.1} s", step.name),
        (StepOutcome::Done { .. }, None) => step.name.clone(),
        (StepOutcome::Failed(failed), _) => format!("{} failed ({})", step.name, failed.how),
        (StepOutcome::Skipped(_), _) => format!("{} skipped", step.name),
        (StepOutcome::Open, _) => format!("{} unfinished", step.name),
    }
}

/// Writes the topology matrix and the tables.
pub(super) fn tables(probe: &Recording, facts: &Facts, page: &mut Page<'_>) -> io::Result<()> {
    if let Some(matrix) = probe.result::<TopologyBody>().as_ref().and_then(|(_, body)| body.matrix.value()) {
        topology(matrix, page)?;
    }
    for (name, title) in [(CollectivesBody::STEP, "transports"), (FORCED_NETWORK, "transports over the network alone")]
    {
        if let Some(step) = probe.find(name) {
            transports(step, title, page)?;
            bandwidths(step, page)?;
        }
    }
    records(facts, &key::RUN_ISOLATED, "one container for each GPU", &ISOLATED, page)?;
    records(facts, &key::RUN_WHAT_IF, "with other variables", &WHAT_IF, page)?;
    hung(probe, page)
}

/// Columns of the tables of records: field and title.
const ISOLATED: [(&str, &str); 4] =
    [("arrangement", ""), ("gb_s", "GB/s"), ("percent", "%"), ("transports", "transports")];
const WHAT_IF: [(&str, &str); 4] = [("variables", ""), ("size", "size"), ("ratio", "speed"), ("differs", "differs")];

/// Writes a fact of records as a table, with errors below it.
fn records(
    facts: &Facts,
    key: &Definition,
    title: &str,
    columns: &[(&str, &str)],
    page: &mut Page<'_>,
) -> io::Result<()> {
    let Some(Value::List(records)) = facts.view(key).value() else { return Ok(()) };
    heading(title, page)?;
    let field = |record: &Value, name: &str| match record {
        Value::Map(fields) => fields.get(name).map(ToString::to_string),
        _ => None,
    };
    let mut rows = vec![columns.iter().map(|(_, title)| (*title).to_owned()).collect::<Vec<_>>()];
    rows.extend(records.iter().map(|record| {
        let cell = |(name, _): &(&str, &str)| match (*name, field(record, name)) {
            ("size", Some(bytes)) => bytes.parse().map_or(bytes, size),
            (_, text) => text.unwrap_or_else(|| "-".to_owned()),
        };
        columns.iter().map(cell).collect()
    }));
    table(&rows, page)?;
    for record in records {
        if let (Some(name), Some(error)) =
            (field(record, columns.first().map_or("", |(name, _)| name)), field(record, "error"))
        {
            page.text(2, &format!("{name}: {}", one_line(&error)))?;
        }
    }
    Ok(())
}

fn heading(title: &str, page: &mut Page<'_>) -> io::Result<()> {
    page.blank()?;
    page.heading(title, page::bold(AnsiColor::Cyan), "")
}

/// Writes rows of cells, each column as wide as its widest cell; the first cell is the label.
fn table(rows: &[Vec<String>], page: &mut Page<'_>) -> io::Result<()> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
    let widths: Vec<_> = (0..columns).map(|column| width(column).unwrap_or_default()).collect();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().skip(1);
        let text: Vec<_> = cells.map(|(_, (cell, width))| format!("{cell:>width$}")).collect();
        let first = row.first().map_or("", String::as_str);
        let column = 4 + widths.first().copied().unwrap_or_default();
        page.verbatim(2, label(if first.is_empty() { " " } else { first }), column, &text.join("  "))?;
    }
    Ok(())
}

fn topology(matrix: &Matrix, page: &mut Page<'_>) -> io::Result<()> {
    let names = matrix.names.list();
    if names.len() < 2 {
        return Ok(());
    }
    heading("topology", page)?;
    let line = |first: &str, cells: Vec<String>| [vec![first.to_owned()], cells].concat();
    let words = |row: &Vec<Option<String>>| row.iter().map(|word| word.as_deref().unwrap_or("?").to_owned()).collect();
    let mut rows = vec![line("", names.to_vec())];
    rows.extend(names.iter().zip(matrix.rows.list()).map(|(name, row)| line(name, words(row))));
    table(&rows, page)
}

/// Writes the transports between ranks: a matrix, or one line if all pairs use the same transport.
fn transports(step: &StepRecord, title: &str, page: &mut Page<'_>) -> io::Result<()> {
    let log = log(step);
    let all = log.transports();
    if all.is_empty() {
        return Ok(());
    }
    heading(title, page)?;
    if let [only] = *all.iter().collect::<Vec<_>>() {
        let rings =
            log.rings.iter().map(|(ring, channels)| format!("{} ({channels} channels)", ring.replace(' ', "-")));
        page.row(
            2,
            label(only),
            4 + only.len(),
            &format!("between all ranks; rings {}", rings.collect::<Vec<_>>().join(", ")),
        )?;
        return Ok(());
    }
    let ranks: BTreeSet<u32> = log.pairs.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let mut rows = vec![std::iter::once("from/to".to_owned()).chain(ranks.iter().map(ToString::to_string)).collect()];
    for from in &ranks {
        let cell = |to: &u32| {
            let ways = log.pairs.get(&(*from, *to)).map(|ways| ways.iter().cloned().collect::<Vec<_>>().join("+"));
            ways.unwrap_or_else(|| "-".to_owned())
        };
        rows.push(std::iter::once(from.to_string()).chain(ranks.iter().map(cell)).collect());
    }
    table(&rows, page)
}

/// Writes the bus bandwidth of each operation by size, and the time for the smallest size.
fn bandwidths(step: &StepRecord, page: &mut Page<'_>) -> io::Result<()> {
    let mut operations: Vec<&str> = Vec::new();
    let mut cells: BTreeMap<(&str, u64), &Measurement> = BTreeMap::new();
    let measurements: Vec<_> = step.parts_of::<Measurement>().collect();
    for part in &measurements {
        if let (Some(operation), Some(bytes)) = (part.operation.text(), part.bytes.copied()) {
            if !operations.contains(&operation) {
                operations.push(operation);
            }
            cells.insert((operation, bytes), part);
        }
    }
    let sizes: BTreeSet<u64> = cells.keys().map(|(_, bytes)| *bytes).collect();
    let (Some(least), true) = (sizes.first(), !operations.is_empty()) else { return Ok(()) };
    // The smallest size shows latency, in microseconds; the largest ones show bandwidth.
    let large: Vec<u64> = sizes.iter().rev().filter(|bytes| **bytes >= 1 << 20).take(4).copied().collect();
    heading("bus bandwidth in GB/s", page)?;
    let mut first = vec![String::new(), format!("{} us", size(*least))];
    first.extend(large.iter().rev().map(|bytes| size(*bytes)));
    let mut rows = vec![first];
    for operation in operations {
        let time = cells.get(&(operation, *least)).and_then(|part| part.seconds_median.copied());
        let time = time.map(|seconds| format!("{:.1}", seconds * 1e6));
        let mut row = vec![operation.to_owned(), time.unwrap_or_else(|| "-".to_owned())];
        row.extend(large.iter().rev().map(|bytes| {
            let speed = cells.get(&(operation, *bytes)).and_then(|part| part.busbw());
            speed.map_or("-".to_owned(), |speed| format!("{:.1}", speed / 1e9))
        }));
        rows.push(row);
    }
    table(&rows, page)
}

/// Writes the state and phase of each rank of a failed step.
fn hung(probe: &Recording, page: &mut Page<'_>) -> io::Result<()> {
    for step in &probe.steps {
        let StepOutcome::Failed(failed) = &step.outcome else { continue };
        let ranks = failed.rank_states();
        if ranks.is_empty() {
            continue;
        }
        heading(&format!("ranks of {}", step.name), page)?;
        for rank in &ranks {
            let number = rank.rank.copied().unwrap_or_default();
            let error = rank.error.text().filter(|error| !error.is_empty());
            let error = error.map(|error| format!(": {}", one_line(error))).unwrap_or_default();
            let (state, phase) = (rank.state.text().unwrap_or_default(), rank.phase.text().unwrap_or_default());
            page.row(2, label(&format!("rank {number}")), 11, &format!("{state}, {phase}{error}"))?;
        }
    }
    Ok(())
}

/// Joins the lines of a text: NCCL's errors have several.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 30 => format!("{} GiB", bytes >> 30),
        _ if bytes >= 1 << 20 => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}
