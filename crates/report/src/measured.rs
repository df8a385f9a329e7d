//! What a run measured, for every format that shows it: the rows of the overview, the versions, and the tables.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::human::overview::fact_text;
use facts::Facts;
use facts::key::{self, Definition};
use model::{Fact, Value, size};
use probe::facts::log;
use probe::recording::{Recording, StepOutcome, StepRecord};
use probe::wire::StepBody as _;
use probe::wire::collectives::{CollectivesBody, FORCED_NETWORK, Measurement};
use probe::wire::gpus::GpusBody;
use probe::wire::pytorch::PytorchBody;
use probe::wire::rdma::RdmaBody;
use probe::wire::topology::{Matrix, TopologyBody};

/// What stands for an answer of a step that did not run.
const NOT_TESTED: &str = "not tested";

/// A table of results. The first cell of each row is its name.
#[derive(Clone, Debug)]
pub(super) struct MeasuredTable {
    pub(super) title: String,
    pub(super) rows: Vec<Vec<String>>,
    /// True if the first row has the titles of the columns.
    pub(super) has_head: bool,
    /// Lines below the table.
    pub(super) notes: Vec<String>,
}

/// The versions of torch, of its CUDA and of NCCL: those that ran, or else those in the image. Without a version, a word
/// says why.
pub(super) fn versions(report: &Report<'_>) -> [String; 3] {
    let has_image = report.probe.is_none() || !report.image.layers.is_empty();
    let word = |key: &Definition| match report.facts.view(key) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(_) => "unknown".to_owned(),
    };
    let of = |of_image: &Definition, of_run: Option<(&str, &Definition)>| match (report.probe, of_run) {
        (Some(_), Some((_, of_run))) if report.facts.view(of_run).value().is_some() => word(of_run),
        _ if has_image => word(of_image),
        (Some(probe), Some((step, of_run))) if probe.find(step).is_some() => word(of_run),
        (_, Some(_)) => NOT_TESTED.to_owned(),
        (_, None) => "not read".to_owned(),
    };
    [
        of(&key::TORCH_VERSION, Some((PytorchBody::STEP, &key::RUN_TORCH_VERSION))),
        of(&key::TORCH_CUDA_VERSION, None),
        of(&key::NCCL_LOADED_VERSION, Some((CollectivesBody::STEP, &key::RUN_NCCL_VERSION))),
    ]
}

/// The engine, the main facts and the steps.
pub(super) fn rows(probe: &Recording, facts: &Facts) -> Vec<(&'static str, String)> {
    let engine = probe.launch.as_ref().map_or("none (run in place)".to_owned(), |launch| launch.engine.clone());
    let looked = |step: &str, text: String| if probe.find(step).is_some() { text } else { NOT_TESTED.to_owned() };
    let mut rows = vec![("engine", engine)];
    rows.extend(entrypoint(facts).map(|text| ("entrypoint", text)));
    rows.extend([
        ("GPUs", looked(GpusBody::STEP, gpus(facts))),
        ("torch", looked(PytorchBody::STEP, torch(facts))),
        ("NCCL", looked(CollectivesBody::STEP, nccl(facts))),
        ("RDMA", looked(RdmaBody::STEP, rdma(facts))),
        ("steps", probe.steps.iter().map(step).collect::<Vec<_>>().join(", ")),
    ]);
    rows
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
        changes => fact_text(changes),
    };
    Some(format!("{command}: {did}"))
}

/// Text of a fact, if it has a value.
fn value(facts: &Facts, key: &Definition) -> Option<String> {
    facts.view(key).value().map(ToString::to_string)
}

fn gpus(facts: &Facts) -> String {
    let Some(models) = facts.get(key::RUN_GPU_MODELS).value() else {
        return fact_text(facts.view(&key::RUN_GPU_COUNT));
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
            Fact::Absent => fact_text(facts.view(&key::RUN_TORCH_VERSION)),
            Fact::Seen { value, .. } => format!("not imported: {value}"),
            gap @ Fact::Unknown(_) => fact_text(gap),
        },
    }
}

fn nccl(facts: &Facts) -> String {
    let version = match facts.view(&key::RUN_NCCL_VERSION) {
        Fact::Seen { value, .. } => value.to_string(),
        version => return without_version(facts, version),
    };
    let part =
        |key: &Definition, before: &str| value(facts, key).map(|text| format!(", {before}{text}")).unwrap_or_default();
    let ranks = facts.get(key::RUN_NCCL_RANKS).value();
    let ranks = ranks.map(|ranks| if *ranks == 1 { ", 1 rank".to_owned() } else { format!(", {ranks} ranks") });
    let hosts = match facts.get(key::RUN_NCCL_NODES).value() {
        None => String::new(),
        Some(1) => " on 1 host".to_owned(),
        Some(hosts) => format!(" on {hosts} hosts (as NCCL counts them)"),
    };
    let network = part(&key::RUN_NCCL_NETWORK, "network ");
    let ranks = ranks.unwrap_or_default();
    format!("{version}{ranks}{hosts}{}{network}", part(&key::RUN_NCCL_TRANSPORTS, ""))
}

/// What is known of an NCCL that did not say its version.
fn without_version(facts: &Facts, version: &Fact) -> String {
    let works = match facts.get(key::RUN_NCCL_WORKS) {
        Fact::Seen { value: true, .. } => "the first collective works",
        Fact::Seen { value: false, .. } => "the first collective fails",
        works @ (Fact::Absent | Fact::Unknown(_)) => {
            return if let Fact::Unknown(gap) = works { format!("unknown: {gap}") } else { fact_text(version) };
        }
    };
    match version {
        Fact::Unknown(gap) => format!("version unknown: {gap}; {works}"),
        _ => format!("no version in the log; {works}"),
    }
}

fn rdma(facts: &Facts) -> String {
    match (facts.view(&key::RUN_RDMA_DEVICES), facts.get(key::RUN_RDMA_CLOSED).value()) {
        (Fact::Absent, None) => "no device".to_owned(),
        (Fact::Absent, Some(_)) => "the container cannot open the devices".to_owned(),
        (devices, _) => fact_text(devices),
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

/// The topology, the transports and bandwidths, the runs in other arrangements, and the ranks of failed steps.
pub(super) fn tables(probe: &Recording, facts: &Facts) -> Vec<MeasuredTable> {
    let topology = probe.result::<TopologyBody>();
    let topology = topology.as_ref().and_then(|(_, body)| topology_table(body.matrix.value()?));
    let mut tables: Vec<_> = topology.into_iter().collect();
    for (name, title) in [(CollectivesBody::STEP, "transports"), (FORCED_NETWORK, "transports over the network alone")]
    {
        if let Some(step) = probe.find(name) {
            tables.extend(transports(step, title));
            tables.extend(bandwidths(step));
        }
    }
    tables.extend(undrawn(probe, facts));
    tables
}

/// The tables that a page has no drawing of: the runs in other arrangements, and the ranks of failed steps.
pub(super) fn undrawn(probe: &Recording, facts: &Facts) -> impl Iterator<Item = MeasuredTable> {
    let isolated = records(facts, &key::RUN_ISOLATED, "one container for each GPU", &ISOLATED);
    let what_if = records(facts, &key::RUN_WHAT_IF, "with other variables", &WHAT_IF);
    isolated.into_iter().chain(what_if).chain(probe.steps.iter().filter_map(ranks))
}

/// Columns of the tables of records: field and title.
const ISOLATED: [(&str, &str); 4] =
    [("arrangement", ""), ("gb_s", "GB/s"), ("percent", "%"), ("transports", "transports")];
const WHAT_IF: [(&str, &str); 4] = [("variables", ""), ("size", "size"), ("ratio", "speed"), ("differs", "differs")];

/// A fact of records as a table, with errors below it.
fn records(facts: &Facts, key: &Definition, title: &str, columns: &[(&str, &str)]) -> Option<MeasuredTable> {
    let Some(Value::List(records)) = facts.view(key).value() else { return None };
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
    let first = columns.first().map_or("", |(name, _)| name);
    let error = |record| Some(format!("{}: {}", field(record, first)?, one_line(&field(record, "error")?)));
    let notes = records.iter().filter_map(error).collect();
    Some(MeasuredTable { title: title.to_owned(), rows, has_head: true, notes })
}

fn topology_table(matrix: &Matrix) -> Option<MeasuredTable> {
    let names = matrix.names.list();
    if names.len() < 2 {
        return None;
    }
    let line = |first: &str, cells: Vec<String>| [vec![first.to_owned()], cells].concat();
    let words = |row: &Vec<Option<String>>| row.iter().map(|word| word.as_deref().unwrap_or("?").to_owned()).collect();
    let mut rows = vec![line("", names.to_vec())];
    rows.extend(names.iter().zip(matrix.rows.list()).map(|(name, row)| line(name, words(row))));
    Some(MeasuredTable { title: "topology".to_owned(), rows, has_head: true, notes: Vec::new() })
}

/// The transports between ranks: a matrix, or one line if all pairs use the same transport.
fn transports(step: &StepRecord, title: &str) -> Option<MeasuredTable> {
    let log = log(step);
    let all = log.transports();
    let table = |rows, has_head| MeasuredTable { title: title.to_owned(), rows, has_head, notes: Vec::new() };
    if let [only] = *all.iter().collect::<Vec<_>>() {
        let rings =
            log.rings.iter().map(|(ring, channels)| format!("{} ({channels} channels)", ring.replace(' ', "-")));
        let text = format!("between all ranks; rings {}", rings.collect::<Vec<_>>().join(", "));
        return Some(table(vec![vec![(*only).to_owned(), text]], false));
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
    (!all.is_empty()).then(|| table(rows, true))
}

/// The bus bandwidth of each operation by size, and the time for the smallest size.
fn bandwidths(step: &StepRecord) -> Option<MeasuredTable> {
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
    let least = sizes.first()?;
    // The smallest size shows latency, in microseconds; the largest ones show bandwidth.
    let large: Vec<u64> = sizes.iter().rev().filter(|bytes| **bytes >= 1 << 20).take(4).copied().collect();
    let mut first = vec![String::new(), format!("{}, us", size(*least))];
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
    Some(MeasuredTable { title: "bus bandwidth in GB/s".to_owned(), rows, has_head: true, notes: Vec::new() })
}

/// The state and phase of each rank of a failed step.
fn ranks(step: &StepRecord) -> Option<MeasuredTable> {
    let StepOutcome::Failed(failed) = &step.outcome else { return None };
    let ranks = failed.rank_states();
    let rows = ranks.iter().map(|rank| {
        let number = rank.rank.copied().unwrap_or_default();
        let error = rank.error.text().filter(|error| !error.is_empty());
        let error = error.map(|error| format!(": {}", one_line(error))).unwrap_or_default();
        let state = rank.state.text().unwrap_or_default();
        let phase = rank.phase.text().unwrap_or_default();
        vec![format!("rank {number}"), format!("{state}, {phase}{error}")]
    });
    let rows: Vec<_> = rows.collect();
    let title = format!("ranks of {}", step.name);
    (!rows.is_empty()).then(|| MeasuredTable { title, rows, has_head: false, notes: Vec::new() })
}

/// Joins the lines of a text: NCCL's errors have several.
pub(super) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use crate::{Collection, Format, Style};
    use model::{FailOn, ImageSummary, Owner};
    use probe::facts::{JobGpus, add};

    use super::*;

    /// What a recording shows in each of the formats, in this order, and as rows.
    fn shown(name: &str, formats: &[Format]) -> (Vec<String>, BTreeMap<&'static str, String>) {
        let path = format!("{}/../../fixtures/probe/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        let recording = Recording::replay(&std::fs::read(path).unwrap()).unwrap();
        let mut facts = Facts::default();
        add(&recording, &JobGpus::default(), &mut facts);
        let image = ImageSummary {
            reference: "torch:local".to_owned(),
            source: "an engine".to_owned(),
            ..ImageSummary::default()
        };
        let report = Report {
            image: &image,
            host: None,
            facts: &facts,
            judgements: Some(&[]),
            fail_on: FailOn::Error,
            fail_for: &Owner::ALL,
            notices: &[],
            probe: Some(&recording),
            rules: None,
            run: None,
            dockerfile: None,
        };
        let style = Style { color: false, width: 200, verbose: false, brief: false };
        let text = |format: &Format| {
            let mut out = Vec::new();
            let mut collection = Collection::new(&[*format]);
            collection.add(std::slice::from_ref(&report));
            format.write(std::slice::from_ref(&report), &style, &mut out).unwrap();
            format.finish(&collection, &style, &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        (formats.iter().map(text).collect(), rows(&recording, &facts).into_iter().collect())
    }

    #[test]
    fn every_format_shows_what_ran() {
        let formats = [Format::Human, Format::Markdown, Format::Html, Format::Table, Format::Csv];
        for (name, torch, nccl) in [
            ("h200-x2/hang", NOT_TESTED, "unknown"),
            ("h100-x2/fewer-gpus", NOT_TESTED, NOT_TESTED),
            ("h100-x2/few-files", "2.11.0+cu130", "unknown"),
        ] {
            let (texts, rows) = shown(name, &formats);
            for (format, text) in formats.iter().zip(&texts) {
                assert!(text.contains(torch) && text.contains(nccl), "{name} {}: {text}", format.name());
                assert!(!text.contains("absent"), "{name} {}: {text}", format.name());
            }
            assert!(rows["torch"].starts_with(torch), "{rows:?}");
            assert!(rows["NCCL"].contains(nccl), "{rows:?}");
        }
        let (texts, _) = shown("h200-x2/quick", &[Format::Markdown]);
        for part in [
            "**bus bandwidth in GB/s**",
            "| `all_reduce` |",
            "`2.11.0+cu130 from",
            "`2.28.9, 2 ranks",
            "**topology**",
            "`P2P/CUMEM`",
        ] {
            assert!(texts[0].contains(part), "{part}: {}", texts[0]);
        }
        let (texts, _) = shown("h100-x2/init-hangs", &[Format::Markdown]);
        for part in ["**ranks of collectives**", "running, communicator"] {
            assert!(texts[0].contains(part), "{part}: {}", texts[0]);
        }
    }

    /// A label says what a text is: no row of versions has a Boolean.
    #[test]
    fn rows_are_what_their_labels_mean() {
        for (name, row, expected) in [
            ("h200-x2/hang", "NCCL", "version unknown: NCCL wrote no debug output; the first collective works"),
            ("h100-x2/few-files", "NCCL", "version unknown: NCCL wrote no debug output; the first collective fails"),
            ("gloo/wrong-values", "NCCL", "no version in the log; the first collective works"),
            ("h100-x2/healthy", "NCCL", "2.28.9, 1 rank on 1 host, network Socket"),
            ("h100-x2/torch-debug", "torch", "not imported: ValueError: The value of TORCH_DISTRIBUTED_DEBUG"),
        ] {
            let (_, rows) = shown(name, &[]);
            assert!(rows[row].starts_with(expected), "{name}: {rows:?}");
        }
    }
}
