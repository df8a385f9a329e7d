//! Compares a probe with expectations: a file of facts, or the recording of a good run.

use std::collections::BTreeMap;

use serde::Deserialize;

use facts::Facts;
use facts::key::{self, Definition};
use model::document::Document;
use model::{Fact, Gap, Value, size};

use super::facts::JobGpus;
use super::recording::{Recording, StepRecord};
use super::wire::StepBody as _;
use super::wire::collectives::{CollectivesBody, Measurement};

/// Fraction of the reference run's bandwidth that still counts as equal. Runs on one machine differ by a few percent.
const AS_GOOD: f64 = 0.9;

/// Expectations of a run.
#[derive(Clone, Debug, Default)]
pub struct ExpectedRun {
    /// Expected values of facts.
    pub values: Option<Expectations>,
    /// Recording of a good run; this run must not be slower.
    pub reference: Option<Recording>,
}

impl ExpectedRun {
    /// Adds the facts about deviations from the expectations.
    pub fn compare(&self, recording: &Recording, facts: &mut Facts) {
        if let Some(good) = &self.reference {
            facts.insert(key::RUN_REFERENCE, Fact::seen(true, []));
            compare(good, recording, facts);
        }
        if let Some(values) = &self.values {
            facts.insert(key::RUN_EXPECTED, Fact::seen(true, []));
            values.compare(facts);
        }
    }
}

/// Expected values by fact name.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Expectations(BTreeMap<String, Expected>);

/// One expected value.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
enum Expected {
    AtLeast { at_least: i64 },
    AtMost { at_most: i64 },
    Equal(serde_json::Value),
}

impl Expectations {
    /// Reads a YAML map from fact names to values, `{at_least: N}` or `{at_most: N}`.
    pub fn read(document: Document<'_>) -> Result<Self, String> {
        let expectations: Self = document.parse().map_err(|mistake| mistake.to_string())?;
        let name = document.name;
        match expectations.0.keys().find(|name| key::find(name).is_none()) {
            Some(odd) => Err(format!("{name}: unknown fact '{odd}'; ncclcheck probe --format json lists all facts")),
            None if expectations.0.is_empty() => Err(format!("{name}: it names no fact")),
            None => Ok(expectations),
        }
    }

    /// Adds the facts about deviations from the expectations.
    pub fn compare(&self, facts: &mut Facts) {
        let mut otherwise = Vec::new();
        let mut gap = None;
        for (name, expected) in &self.0 {
            match key::find(name).map(|key| facts.view(key)) {
                Some(Fact::Unknown(why)) => gap = gap.or_else(|| Some(Gap::new(format!("{name}: {}", why.why)))),
                fact => otherwise.extend(expected.missed(name, fact.and_then(Fact::value))),
            }
        }
        let fact = match gap {
            _ if !otherwise.is_empty() => Fact::known(otherwise),
            Some(gap) => Fact::Unknown(gap),
            None => Fact::Absent,
        };
        facts.insert(key::RUN_UNEXPECTED, fact);
    }
}

impl Expected {
    fn missed(&self, name: &str, found: Option<&Value>) -> Option<String> {
        let is = found.map_or_else(|| "absent".to_owned(), ToString::to_string);
        let number = match found {
            Some(Value::Int(number)) => Some(*number),
            _ => None,
        };
        let (holds, wanted) = match self {
            Self::AtLeast { at_least } => (number >= Some(*at_least), format!("at least {at_least}")),
            Self::AtMost { at_most } => (number.is_some_and(|number| number <= *at_most), format!("at most {at_most}")),
            Self::Equal(value) => {
                let wanted = plain(value);
                (is == wanted, wanted)
            }
        };
        (!holds).then(|| format!("{name} is {is}, expected {wanted}"))
    }
}

/// Formats a value as facts are displayed.
fn plain(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => text.clone(),
        serde_json::Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(", "),
        serde_json::Value::Null => "absent".to_owned(),
        other => other.to_string(),
    }
}

/// Adds the fact about what is worse than in a good run: lower bandwidth, or other GPUs, transports, networks or node
/// counts.
pub fn compare(good: &Recording, now: &Recording, facts: &mut Facts) {
    let mut before = Facts::default();
    super::facts::add(good, &JobGpus::default(), &mut before);
    let mut worse = Vec::new();
    let ways: &[&Definition] = key::definitions![RUN_GPU_MODELS, RUN_NCCL_TRANSPORTS, RUN_NCCL_NETWORK, RUN_NCCL_NODES];
    for key in ways {
        if let (Some(before), Some(now)) = (before.view(key).value(), facts.view(key).value())
            && before != now
        {
            worse.push(format!("{} is {now}, reference {before}", key.name));
        }
    }
    let Some((good, now)) = good.find(CollectivesBody::STEP).zip(now.find(CollectivesBody::STEP)) else {
        let gap = Gap::new("the reference run or this one lacks the step collectives");
        return facts.insert(key::RUN_WORSE, Fact::Unknown(gap));
    };
    let good = speeds(good);
    let now = speeds(now);
    if worse.is_empty() && !good.keys().any(|measured| now.contains_key(measured)) {
        let gap = Gap::new("the reference run and this one have no operation and size of at least 1 MiB in common");
        return facts.insert(key::RUN_WORSE, Fact::Unknown(gap));
    }
    for ((operation, bytes), before) in &good {
        if let Some(speed) = now.get(&(operation.clone(), *bytes))
            && *speed < before * AS_GOOD
        {
            let now = speed / 1e9;
            let before = before / 1e9;
            worse.push(format!("{operation} of {}: {now:.1} GB/s, reference {before:.1} GB/s", size(*bytes)));
        }
    }
    facts.insert(key::RUN_WORSE, if worse.is_empty() { Fact::Absent } else { Fact::seen(worse, []) });
}

/// Smallest size, in bytes, at which bandwidth is compared. Below it latency dominates, which varies more.
const LARGE: u64 = 1 << 20;

fn speeds(step: &StepRecord) -> BTreeMap<(String, u64), f64> {
    let measured = step.parts_of::<Measurement>().filter_map(|part| {
        let bytes = part.bytes.copied().filter(|bytes| *bytes >= LARGE)?;
        Some(((part.operation.text()?.to_owned(), bytes), part.busbw()?))
    });
    measured.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(name: &str) -> Recording {
        let path = format!("{}/../../fixtures/probe/h200-x2/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        Recording::read(&std::fs::read(path).unwrap())
    }

    fn facts(recording: &Recording) -> Facts {
        let mut facts = Facts::default();
        super::super::facts::add(recording, &JobGpus::default(), &mut facts);
        facts
    }

    fn shown(facts: &Facts, key: &Definition) -> String {
        facts.view(key).value().map(ToString::to_string).unwrap_or_default()
    }

    fn read(text: &str) -> Result<Expectations, String> {
        Expectations::read(Document { name: "expected.yaml", text })
    }

    #[test]
    fn facts_are_compared_with_expected_values() {
        let mut facts = facts(&recorded("quick"));
        let good = "run.gpu.count: 2\nrun.nccl.all_reduce_mb_s: {at_least: 250000}\nrun.nccl.transports: [P2P/CUMEM]\n\
                    run.nccl.wrong_values: null\nrun.nccl.version: 2.28.9\n";
        read(good).unwrap().compare(&mut facts);
        assert_eq!(shown(&facts, &key::RUN_UNEXPECTED), "");
        let bad = "run.gpu.count: 8\nrun.nccl.all_reduce_mb_s: {at_least: 350000}\nrun.nccl.network: [IB]\n";
        read(bad).unwrap().compare(&mut facts);
        let text = shown(&facts, &key::RUN_UNEXPECTED);
        assert!(text.contains("run.gpu.count is 2, expected 8"), "{text}");
        assert!(text.contains("expected at least 350000") && text.contains("is Socket, expected IB"), "{text}");
        assert!(read("run.gpus: 8").unwrap_err().contains("expected.yaml: unknown fact 'run.gpus'"));
        assert_eq!(read("# later\n").unwrap_err(), "expected.yaml: it names no fact");
    }

    #[test]
    fn a_run_is_compared_with_a_good_one() {
        let good = recorded("quick");
        let mut same = facts(&good);
        compare(&good, &good, &mut same);
        assert_eq!(shown(&same, &key::RUN_WORSE), "");
        let full = recorded("full");
        let mut other = facts(&full);
        compare(&good, &full, &mut other);
        assert_eq!(shown(&other, &key::RUN_WORSE), "", "two runs of one machine");
        let text =
            std::fs::read_to_string(format!("{}/../../fixtures/probe/h200-x2/quick.jsonl", env!("CARGO_MANIFEST_DIR")))
                .unwrap();
        let slow = Recording::read(
            text.replace("P2P/CUMEM", "SHM/direct/direct")
                .replace("\"busbw_bytes_per_second\":2", "\"busbw_bytes_per_second\":1")
                .as_bytes(),
        );
        let mut worse = facts(&slow);
        compare(&good, &slow, &mut worse);
        let text = shown(&worse, &key::RUN_WORSE);
        assert!(text.contains("run.nccl.transports is SHM, reference P2P/CUMEM"), "{text}");
        assert!(text.contains("all_reduce of 256 MiB: 199.1 GB/s, reference 299.1 GB/s"), "{text}");
    }

    #[test]
    fn only_given_expectations_are_compared() {
        let full = recorded("full");
        let added = |values: Option<&str>, reference: Option<Recording>| {
            let expected = ExpectedRun { values: values.map(|text| read(text).unwrap()), reference };
            let mut facts = facts(&full);
            expected.compare(&full, &mut facts);
            [&key::RUN_EXPECTED, &key::RUN_REFERENCE].map(|key| *facts.view(key) != Fact::Absent)
        };
        assert_eq!(added(None, None), [false, false]);
        assert_eq!(added(Some("run.gpu.count: 2"), None), [true, false]);
        assert_eq!(added(None, Some(recorded("full"))), [false, true]);
    }

    #[test]
    fn bounds_are_inclusive_and_hold_for_numbers_only() {
        let mut facts = Facts::default();
        facts.insert(key::RUN_GPU_COUNT, Fact::seen(8, []));
        facts.insert(key::RUN_NCCL_ERROR, Fact::seen("broken".to_owned(), []));
        facts.insert(key::RUN_NCCL_HANG, Fact::Absent);
        for (expected, otherwise) in [
            ("run.gpu.count: {at_most: 8}", ""),
            ("run.gpu.count: {at_most: 7}", "run.gpu.count is 8, expected at most 7"),
            ("run.gpu.count: {at_least: 8}", ""),
            ("run.gpu.count: {at_least: 9}", "run.gpu.count is 8, expected at least 9"),
            ("run.nccl.error: {at_most: 7}", "run.nccl.error is broken, expected at most 7"),
            ("run.nccl.error: {at_least: 7}", "run.nccl.error is broken, expected at least 7"),
            ("run.nccl.hang: {at_most: 7}", "run.nccl.hang is absent, expected at most 7"),
            ("run.nccl.hang: {at_least: -7}", "run.nccl.hang is absent, expected at least -7"),
            ("run.nccl.hang: null", ""),
            ("run.nccl.hang: [a, b]", "run.nccl.hang is absent, expected a, b"),
            ("run.gpu.count: true", "run.gpu.count is 8, expected true"),
        ] {
            read(expected).unwrap().compare(&mut facts);
            assert_eq!(shown(&facts, &key::RUN_UNEXPECTED), otherwise, "{expected}");
        }
    }

    #[test]
    fn an_unknown_value_is_a_gap_unless_another_is_wrong() {
        let mut facts = Facts::default();
        facts.insert(key::RUN_GPU_COUNT, Fact::seen(8, []));
        facts.insert(key::RUN_NCCL_ERROR, Fact::Unknown(Gap::new("first reason")));
        facts.insert(key::RUN_NCCL_HANG, Fact::Unknown(Gap::new("second reason")));
        let unknown = "run.nccl.error: null\nrun.nccl.hang: null\n";
        read(&format!("{unknown}run.gpu.count: 8")).unwrap().compare(&mut facts);
        assert_eq!(gap(&facts, &key::RUN_UNEXPECTED), "run.nccl.error: first reason");
        read(&format!("{unknown}run.gpu.count: 4")).unwrap().compare(&mut facts);
        assert_eq!(shown(&facts, &key::RUN_UNEXPECTED), "run.gpu.count is 8, expected 4");
        read("run.gpu.count: 8").unwrap().compare(&mut facts);
        assert!(matches!(facts.get(key::RUN_UNEXPECTED), Fact::Absent));
    }

    /// The reason why a fact is unknown.
    fn gap(facts: &Facts, key: &key::Definition) -> String {
        match facts.view(key) {
            Fact::Unknown(gap) => gap.why.clone(),
            known => panic!("{known:?}"),
        }
    }

    /// A recording of a step collectives with these measurements: operation, bytes, bytes per second.
    fn measured(measurements: &[(&str, u64, f64)]) -> Recording {
        let line = |(operation, bytes, speed): &(&str, u64, f64)| {
            format!(
                r#"{{"ncclcheck": 1, "event": "part", "step": "collectives", "body": {{"kind": "measurement", "operation": "{operation}", "bytes": {bytes}, "busbw_bytes_per_second": {speed:.1}}}}}"#
            )
        };
        Recording::read(measurements.iter().map(line).collect::<Vec<_>>().join("\n").as_bytes())
    }

    #[test]
    fn a_run_is_slower_below_nine_tenths_at_the_same_size_from_1_mib_on() {
        let good = measured(&[("all_reduce", 1 << 20, 100e9), ("all_reduce", (1 << 20) - 1, 100e9)]);
        for (speed, worse) in
            [(200e9, ""), (90e9, ""), (89.9e9, "all_reduce of 1 MiB: 89.9 GB/s, reference 100.0 GB/s")]
        {
            let now = measured(&[("all_reduce", 1 << 20, speed), ("all_reduce", (1 << 20) - 1, 1.0)]);
            let mut facts = Facts::default();
            compare(&good, &now, &mut facts);
            assert_eq!(shown(&facts, &key::RUN_WORSE), worse);
        }
        for now in [measured(&[("broadcast", 1 << 20, 1.0)]), measured(&[("all_reduce", (1 << 20) - 1, 1.0)])] {
            let mut facts = Facts::default();
            compare(&good, &now, &mut facts);
            let why = "the reference run and this one have no operation and size of at least 1 MiB in common";
            assert_eq!(gap(&facts, &key::RUN_WORSE), why);
        }
        // One size in common is enough.
        let now = measured(&[("broadcast", 1 << 20, 1.0), ("all_reduce", 1 << 20, 100e9)]);
        let mut facts = Facts::default();
        compare(&good, &now, &mut facts);
        assert!(matches!(facts.get(key::RUN_WORSE), Fact::Absent));
    }

    #[test]
    fn one_size_in_common_is_enough() {
        let good = measured(&[("all_reduce", 1 << 20, 100e9), ("all_reduce", 1 << 28, 100e9)]);
        let mut facts = Facts::default();
        compare(&good, &measured(&[("all_reduce", 1 << 28, 100e9)]), &mut facts);
        assert_eq!(facts.view(&key::RUN_WORSE), &Fact::Absent);
    }

    #[test]
    fn without_collectives_on_both_sides_nothing_is_compared() {
        let some = measured(&[("all_reduce", 1 << 20, 1e9)]);
        let none = Recording::default();
        for (good, now) in [(&some, &none), (&none, &some), (&none, &none)] {
            let mut facts = Facts::default();
            compare(good, now, &mut facts);
            assert_eq!(gap(&facts, &key::RUN_WORSE), "the reference run or this one lacks the step collectives");
        }
    }

    #[test]
    fn other_models_and_networks_are_worse_if_both_runs_have_them() {
        let good = recorded("quick");
        let mut facts = facts(&good);
        facts.insert(key::RUN_GPU_MODELS, Fact::seen(vec!["another".to_owned()], []));
        facts.insert(key::RUN_NCCL_NETWORK, Fact::Absent);
        // Other differences count even without a measurement in common.
        compare(&good, &measured(&[("other", 1 << 20, 1.0)]), &mut facts);
        assert_eq!(shown(&facts, &key::RUN_WORSE), "run.gpu.models is another, reference NVIDIA H200, NVIDIA H200");
    }
}
