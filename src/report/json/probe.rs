//! What a probe told, for programs.

use schemars::JsonSchema;
use serde::Serialize;

use crate::probe::facts::log;
use crate::probe::recording::{Recording, StepOutcome, StepRecord};
use crate::probe::wire::StepBody as _;
use crate::probe::wire::collectives::CollectivesBody;
use crate::probe::wire::events::{EventBody, StepFailure};

/// What a probe told.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Probe")]
pub(super) struct ProbeJson<'a> {
    /// The engine, where one ran it.
    engine: Option<&'a str>,
    /// The command line that would run the same container.
    command: Option<&'a str>,
    /// What the engine said of the container: of its answer to ContainerInspect, `HostConfig`.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    given: Option<&'a serde_json::Value>,
    /// Why the program did not come to its end, if it did not.
    unfinished: Option<&'a str>,
    /// The steps, in their order.
    steps: Vec<ProbeStep<'a>>,
    /// What NCCL said in the step `collectives`.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    nccl: Option<serde_json::Value>,
}

/// One step of a probe. What is in its bodies stands in the program's own schema (src/probe/payload/events.schema.json).
#[derive(Serialize, JsonSchema)]
struct ProbeStep<'a> {
    /// Its name.
    step: &'a str,
    /// done, failed, skipped or open: its end was not told.
    outcome: &'a str,
    /// How long it took.
    seconds: Option<f64>,
    /// Why it was skipped, or how it failed.
    why: Option<&'a str>,
    /// What it found.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    body: Option<&'a EventBody>,
    /// Partial results.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    parts: &'a [EventBody],
    /// All that is known of its failure.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    failure: Option<FailedStep<'a>>,
}

/// A failure, as the program reported it.
#[derive(Serialize)]
struct FailedStep<'a> {
    step: &'a str,
    seconds: Option<f64>,
    #[serde(flatten)]
    failure: &'a StepFailure,
}

impl<'a> From<&'a Recording> for ProbeJson<'a> {
    fn from(probe: &'a Recording) -> Self {
        let launch = probe.launch.as_ref();
        let collectives = probe.find(CollectivesBody::STEP).filter(|step| !step.log.is_empty());
        Self {
            engine: launch.map(|launch| &*launch.engine),
            command: launch.map(|launch| &*launch.command),
            given: launch.and_then(|launch| launch.given.as_ref()),
            unfinished: probe.broken.as_deref().filter(|_| !probe.ended),
            steps: probe.steps.iter().map(Into::into).collect(),
            nccl: collectives.and_then(|step| serde_json::to_value(log(step)).ok()),
        }
    }
}

impl<'a> From<&'a StepRecord> for ProbeStep<'a> {
    fn from(step: &'a StepRecord) -> Self {
        let (outcome, why, failure) = match &step.outcome {
            StepOutcome::Open => ("open", None, None),
            StepOutcome::Done { unclean_exit, .. } => ("done", unclean_exit.as_deref(), None),
            StepOutcome::Failed(failed) => ("failed", Some(&*failed.message), Some(&**failed)),
            StepOutcome::Skipped(why) => ("skipped", Some(&**why), None),
        };
        let (seconds, body) = (step.seconds, step.body());
        let failure = failure.map(|failure| FailedStep { step: &step.name, seconds, failure });
        Self { step: &step.name, outcome, seconds, why, body, parts: &step.parts, failure }
    }
}
