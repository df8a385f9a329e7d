//! Facts of a probe: results of the steps, under the names that rules use. One file for each step. A value that a step
//! could not read is unknown, with the step's own reason.

mod collectives;
mod container;
mod entrypoint;
mod given;
mod gpus;
mod pytorch;
mod rdma;
mod speed;
mod storage;
mod topology;
mod variables;

use facts::key::{self, Definition};
use facts::machine::Host;
use facts::{Facts, Handover};
use model::{Fact, Gap, Site};

use super::recording::{Recording, StepOutcome, StepRecord};

pub use collectives::{bandwidth, log, log_of_run};
pub use gpus::JobGpus;
pub use speed::table_of_speeds;

/// Adds the facts of a probe to the facts about an image, which are empty if the image was not scanned. `job` has the GPUs
/// of all tasks that are judged together.
pub fn add(recording: &Recording, job: &JobGpus, facts: &mut Facts) {
    container::produce(recording, facts);
    entrypoint::produce(recording, facts);
    storage::produce(recording, facts);
    gpus::produce(recording, job, facts);
    topology::produce(recording, facts);
    rdma::produce(recording, facts);
    pytorch::produce(recording, facts);
    collectives::produce(recording, facts);
    variables::produce(recording, facts);
    speed::produce(recording, facts);
}

/// The host that the probe ran on, if the recording describes it.
pub fn host(recording: &Recording) -> Option<Host> {
    gpus::host(recording)
}

/// A step's site.
fn site(step: &str) -> Site {
    Site::Probe(step.to_owned())
}

/// A fact of a step.
fn seen<T>(step: &StepRecord, value: impl Into<T>) -> Fact<T> {
    Fact::seen(value.into(), [site(&step.name)])
}

/// A text field of a record; `None` if the text is empty.
fn filled(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// A list of texts; absent if empty.
fn texts(step: &StepRecord, texts: Vec<String>) -> Fact<Vec<String>> {
    if texts.is_empty() { Fact::Absent } else { seen(step, texts) }
}

/// The state of all facts of a step without a result: unknown, with the reason, or absent if the step was not planned.
fn unanswered<T>(recording: &Recording, name: &str) -> Fact<T> {
    let gap = |text: String| Fact::Unknown(Gap::new(text));
    let Some(step) = recording.find(name) else {
        return match &recording.broken {
            _ if !recording.asked().iter().any(|step| step == name) => Fact::Absent,
            Some(why) => gap(format!("the step {name} was not reached: {why}")),
            None => gap(format!("the step {name} was requested, and the program did not run it")),
        };
    };
    match &step.outcome {
        StepOutcome::Open => gap(format!("the step {name} did not end")),
        StepOutcome::Failed(failed) => gap(format!("the step {name} failed: {}", failed.message)),
        StepOutcome::Skipped(why) => gap(format!("the step {name} was skipped: {why}")),
        StepOutcome::Done { .. } => Fact::Absent,
    }
}

/// Makes all of these facts unknown or absent.
fn none_of(keys: &[&'static Definition], fact: &Fact, facts: &mut Facts) {
    for key in keys {
        facts.insert_value(key, fact.clone());
    }
}

/// Adds the facts that compare a prediction with the run, which need both a check and a probe. `handover` is what the
/// check predicts of the image's entrypoint.
pub fn compare(recording: &Recording, handover: &Result<Handover, Gap>, facts: &mut Facts) {
    let unpredicted = pytorch::differences(facts.get(key::TORCH_LOADED), facts.get(key::RUN_TORCH_LOADED));
    facts.insert(key::RUN_TORCH_UNPREDICTED, unpredicted);
    facts.insert(key::RUN_ENTRYPOINT_UNPREDICTED, entrypoint::unpredicted(recording, handover));
}

/// Rounds to the nearest integer.
#[expect(clippy::cast_possible_truncation, reason = "the cast saturates, and no speed or time comes near its limits")]
fn whole(number: f64) -> i64 {
    number.round() as i64
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use facts::key::{KEYS, definitions};

    /// Facts that need more than a recording: the facts of the image, expectations, or another recording.
    const COMPARISONS: &[&Definition] = definitions![
        RUN_TORCH_UNPREDICTED,
        RUN_ENTRYPOINT_UNPREDICTED,
        RUN_EXPECTED,
        RUN_REFERENCE,
        RUN_UNEXPECTED,
        RUN_WORSE,
    ];

    #[test]
    fn every_recording_sets_every_fact_of_a_run() {
        let of_run = KEYS.iter().filter(|key| key.is_of_run() && !COMPARISONS.contains(key));
        let of_run: BTreeSet<_> = of_run.map(|key| key.name).collect();
        let full = format!("{}/../../fixtures/probe/h200-x2/full.jsonl", env!("CARGO_MANIFEST_DIR"));
        for recording in [std::fs::read(full).unwrap(), Vec::new()] {
            let mut facts = Facts::default();
            add(&Recording::read(&recording), &JobGpus::default(), &mut facts);
            assert_eq!(facts.iter().map(|(name, _)| name).collect::<BTreeSet<_>>(), of_run);
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_is_unknown() {
        let cases: [(&str, &str, &[&Definition]); 5] = [
            (
                "collectives",
                r#""part","body":{"kind":"libraries","paths":["/libnccl.so.2",null]}"#,
                definitions![RUN_NCCL_PATHS],
            ),
            ("topology", r#""result","body":{"gpu_pairs":7}"#, definitions![RUN_NVLINK_PAIRS, RUN_PEER_REFUSED]),
            (
                "rdma",
                r#""result","body":{"devices":{}}"#,
                definitions![RUN_RDMA_DEVICES, RUN_RDMA_CLOSED, RUN_RDMA_PING],
            ),
            ("isolated", r#""result","body":{"rows":"x"}"#, definitions![RUN_ISOLATED]),
            ("what-if", r#""result","body":{"variants":[1]}"#, definitions![RUN_WHAT_IF]),
        ];
        for (step, event, keys) in cases {
            let line = format!(r#"{{"ncclcheck":1,"step":"{step}","run":0,"seconds":1.0,"event":{event}}}"#);
            let mut facts = Facts::default();
            add(&Recording::read(line.as_bytes()), &JobGpus::default(), &mut facts);
            for key in keys {
                let fact = facts.view(key);
                assert!(
                    matches!(fact, Fact::Unknown(gap) if gap.why.starts_with("invalid type")),
                    "{}: {fact:?}",
                    key.name
                );
            }
        }
    }
}
