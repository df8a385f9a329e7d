//! Values in what the program wrote, by their places.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use facts::Facts;
use model::{Fact, size};
use probe::facts::JobGpus;
use probe::recording::{Recording, StepOutcome, StepRecord};

use super::compare::NodeRecord;
use super::table::{Row, Source, Unit};

/// What a node has, or why that is not known.
pub(super) type Reading = Result<String, String>;

/// Values of a node, by the device that they are of. The value with an empty key is that of the node itself, or of each device that
/// has none of its own.
pub(super) type Readings = BTreeMap<String, Reading>;

/// A place in what the program writes: `STEP.FIELD`. `NAME[FIELD]` stands for each entry of a list by a field, `NAME[*]` for all
/// entries as one value, and `NAME{}` for each entry of a map by its key.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Place {
    pub(super) step: String,
    pub(super) path: Vec<Segment>,
}

#[derive(Debug)]
pub(super) struct Segment {
    pub(super) field: String,
    pub(super) entries: Entries,
}

/// Which entries of a field a segment stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Entries {
    /// The field itself.
    Itself,
    /// Each entry, by this field.
    By(String),
    /// All entries as one value.
    All,
    /// Each entry of a map.
    Keys,
}

impl TryFrom<String> for Place {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a place such as limits.interfaces[name].mtu_bytes");
        let mut parts = text.split('.');
        let step = parts.next().filter(|step| !step.is_empty()).ok_or_else(wrong)?;
        let segment = |part: &str| {
            if let Some(field) = part.strip_suffix("{}") {
                return Some(Segment { field: field.to_owned(), entries: Entries::Keys });
            }
            let Some((field, by)) = part.split_once('[') else {
                return Some(Segment { field: part.to_owned(), entries: Entries::Itself }).filter(|_| !part.is_empty());
            };
            let by = by.strip_suffix(']')?;
            let entries = if by == "*" { Entries::All } else { Entries::By(by.to_owned()) };
            Some(Segment { field: field.to_owned(), entries })
        };
        let path: Option<Vec<_>> = parts.map(segment).collect();
        let path = path.filter(|path| !path.is_empty()).ok_or_else(wrong)?;
        Ok(Self { step: step.to_owned(), path })
    }
}

/// Reads the values of a row on a node. A step that a node was not asked for, or that it did not reach before it failed, has
/// none.
pub(super) fn read(row: &Row, node: &NodeRecord, facts: &Facts) -> Readings {
    let mut readings = Readings::new();
    match &row.source {
        Source::Fact(name) => {
            let reading = match facts.view(name.0) {
                Fact::Seen { value, .. } => Ok(value.to_string()),
                Fact::Absent => Ok(NONE.to_owned()),
                Fact::Unknown(_) if !node.is_whole => return readings,
                Fact::Unknown(gap) => Err(gap.why.clone()),
            };
            readings.insert(String::new(), reading);
        }
        Source::Log(part) => {
            let log = node.log_between(false).filter(|_| node.is_whole);
            readings.extend(log.map(|log| (String::new(), part.read(&log))));
        }
        Source::Read(place) => match body(&place.step, &node.recording) {
            Some(Ok(body)) => walk(row, body, &place.path, "", &mut readings),
            Some(Err(why)) if node.is_whole => {
                readings.insert(String::new(), Err(why));
            }
            Some(Err(_)) | None => {}
        },
    }
    readings.retain(|key, _| !row.except.iter().any(|start| key.starts_with(start.as_str())));
    readings
}

/// The facts of a node's recording.
pub(super) fn facts(recording: &Recording) -> Facts {
    let mut facts = Facts::default();
    probe::facts::add(recording, &JobGpus::default(), &mut facts);
    facts
}

/// Value of a field that the program found to be missing.
pub(super) const NONE: &str = "none";
const UNREPORTED: &str = "its program does not report ";
/// Value of an entry that a map does not have.
const UNSET: &str = "unset";

/// The result of a step, or why there is none; `None` if the node was not asked for it.
fn body<'r>(step: &str, recording: &'r Recording) -> Option<Result<&'r Map<String, Value>, String>> {
    let Some(step) = recording.find(step) else {
        let is_asked = recording.asked().iter().any(|asked| asked == step);
        return is_asked.then(|| Err(format!("the step {step} was not reached")));
    };
    Some(step.body().ok_or_else(|| missing(step)))
}

/// Why a step has no result.
fn missing(step: &StepRecord) -> String {
    let name = &step.name;
    match &step.outcome {
        StepOutcome::Open | StepOutcome::Done { .. } => format!("the step {name} did not end"),
        StepOutcome::Failed(failed) => format!("the step {name} failed: {}", failed.message),
        StepOutcome::Skipped(why) => format!("the step {name} was skipped: {why}"),
    }
}

/// Adds the values at a path in an object. `key` is the device so far.
fn walk(row: &Row, object: &Map<String, Value>, path: &[Segment], key: &str, readings: &mut Readings) {
    let Some((Segment { field, entries }, rest)) = path.split_first() else { return };
    let value = match present(object, field) {
        Ok(value) => value,
        Err(why) => {
            readings.insert(key.to_owned(), Err(why));
            return;
        }
    };
    let is_left_out = |object: &Map<String, Value>| match &row.has {
        Some(has) if *entries != Entries::Itself => object.get(has).is_none_or(Value::is_null),
        _ => false,
    };
    let inside = |value: &Value, key: &str, readings: &mut Readings| match value {
        Value::Object(object) if is_left_out(object) => {}
        Value::Object(object) if !rest.is_empty() => walk(row, object, rest, key, readings),
        value => {
            let reading = if rest.is_empty() { Ok(shown(value, row.unit)) } else { Err(unreported(field)) };
            readings.insert(key.to_owned(), reading);
        }
    };
    let below = |name: &str| if key.is_empty() { name.to_owned() } else { format!("{key}:{name}") };
    match (entries, value) {
        (Entries::Keys, Value::Object(map)) => {
            readings.insert(key.to_owned(), Ok(UNSET.to_owned()));
            map.iter().for_each(|(name, value)| inside(value, &below(name), readings));
        }
        (Entries::By(by), Value::Array(list)) => {
            for entry in list {
                let name = entry.get(by).map(|name| shown(name, Unit::None)).unwrap_or_default();
                inside(entry, &below(&name), readings);
            }
        }
        (Entries::All, Value::Array(list)) => {
            let mut all = Readings::new();
            for (index, entry) in list.iter().enumerate() {
                inside(entry, &format!("{index:08}"), &mut all);
            }
            let all: Result<Vec<_>, _> = all.into_values().collect();
            readings.insert(key.to_owned(), all.map(|all| listed(&all)));
        }
        (_, value) => inside(value, key, readings),
    }
}

/// A field of an object, or why the program could not read it.
fn present<'v>(object: &'v Map<String, Value>, field: &str) -> Result<&'v Value, String> {
    let why = object.get("unread").and_then(|unread| unread.get(field)).and_then(Value::as_str);
    match (object.get(field), why) {
        // The device lacks what this field describes.
        (Some(Value::Null), Some(why)) if !why.contains("NOT_SUPPORTED") => Err(why.to_owned()),
        (Some(value), _) => Ok(value),
        (None, _) => Err(unreported(field)),
    }
}

fn unreported(field: &str) -> String {
    format!("{UNREPORTED}{field}")
}

/// The programs that wrote these readings are older than the row.
pub(super) fn is_unreported(readings: &Readings) -> bool {
    readings.values().all(|reading| reading.as_ref().is_err_and(|why| why.starts_with(UNREPORTED)))
}

/// A value in words.
fn shown(value: &Value, unit: Unit) -> String {
    match (value, unit) {
        (Value::Null, _) => NONE.to_owned(),
        (Value::String(text), _) if text.is_empty() => NONE.to_owned(),
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), Unit::Bytes | Unit::Limit) if number.as_i64() == Some(-1) => "unlimited".to_owned(),
        (Value::Number(number), Unit::Bytes) => number.as_u64().map_or_else(|| number.to_string(), exact_size),
        (Value::Array(list), _) => listed(&list.iter().map(|value| shown(value, unit)).collect::<Vec<_>>()),
        (value, _) => value.to_string(),
    }
}

/// A size that differs from every other one.
fn exact_size(bytes: u64) -> String {
    let text = size(bytes);
    if text.contains('.') || text.ends_with("bytes") { format!("{bytes} bytes") } else { text }
}

/// A list in words, in which repeated entries are counted.
fn listed(values: &[String]) -> String {
    let mut runs: Vec<(&str, usize)> = Vec::new();
    for value in values {
        match runs.last_mut() {
            Some((last, count)) if last == value => *count += 1,
            _ => runs.push((value, 1)),
        }
    }
    let run = |(value, count): (&str, usize)| if count == 1 { value.to_owned() } else { format!("{count} × {value}") };
    let texts: Vec<_> = runs.into_iter().map(run).collect();
    if texts.is_empty() { NONE.to_owned() } else { texts.join(", ") }
}
