//! The results of a probe in the JSON report. They are less than the recording: the container's program, the lines of NCCL's
//! log, and what the image printed are missing, and no form shows them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::stored::StoredError;
use probe::facts::log;
use probe::recording::{Recording, StepOutcome, StepRecord};
use probe::wire::events::{EventBody, LaunchEvent, StepFailure};

/// Results of a probe.
#[derive(Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Probe")]
pub(super) struct ProbeJson {
    /// The engine that ran the image, if any.
    engine: Option<String>,
    /// A command line that runs the same container.
    command: Option<String>,
    /// The container's settings in the engine: `HostConfig` of its answer to ContainerInspect.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    given: Option<serde_json::Value>,
    /// Reason why the probe program did not finish; null if it did.
    unfinished: Option<String>,
    /// The steps in order.
    #[serde(default)]
    steps: Vec<ProbeStep>,
}

/// One step of a probe. The probe program's schema, crates/probe/src/payload/events.schema.json, describes the bodies.
#[derive(Serialize, Deserialize, JsonSchema)]
struct ProbeStep {
    /// Name of the step.
    step: String,
    /// done, failed, skipped or open; an open step did not report its end.
    #[schemars(with = "String")]
    outcome: StepEnd,
    /// Duration in seconds.
    seconds: Option<f64>,
    /// Reason why the step was skipped, failed or exited uncleanly.
    why: Option<String>,
    /// Results of the step.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    body: Option<EventBody>,
    /// Partial results.
    #[serde(default)]
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    parts: Vec<EventBody>,
    /// NCCL's log of the step, parsed.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    nccl: Option<serde_json::Value>,
    /// Details of the failure.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    failure: Option<FailedStep>,
}

/// A failure as the probe program reported it.
#[derive(Serialize, Deserialize)]
#[serde(from = "StepFailure")]
struct FailedStep {
    step: String,
    seconds: Option<f64>,
    #[serde(flatten)]
    failure: StepFailure,
}

impl From<StepFailure> for FailedStep {
    fn from(failure: StepFailure) -> Self {
        Self { step: String::new(), seconds: None, failure }
    }
}

/// How a step ended.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepEnd {
    Open,
    Done,
    Failed,
    Skipped,
}

impl From<&Recording> for ProbeJson {
    fn from(probe: &Recording) -> Self {
        let launch = probe.launch.as_ref();
        Self {
            engine: launch.map(|launch| launch.engine.clone()),
            command: launch.map(|launch| launch.command.clone()),
            given: launch.and_then(|launch| launch.given.clone()),
            unfinished: probe.broken.clone().filter(|_| !probe.ended),
            steps: probe.steps.iter().map(Into::into).collect(),
        }
    }
}

impl From<&StepRecord> for ProbeStep {
    fn from(step: &StepRecord) -> Self {
        let (outcome, why, failure) = match &step.outcome {
            StepOutcome::Open => (StepEnd::Open, None, None),
            StepOutcome::Done { unclean_exit, .. } => (StepEnd::Done, unclean_exit.clone(), None),
            StepOutcome::Failed(failed) => (StepEnd::Failed, Some(failed.message.clone()), Some(&**failed)),
            StepOutcome::Skipped(why) => (StepEnd::Skipped, Some(why.clone()), None),
        };
        let failed = |failure: &StepFailure| FailedStep {
            step: step.name.clone(),
            seconds: step.seconds,
            failure: failure.clone(),
        };
        Self {
            step: step.name.clone(),
            outcome,
            seconds: step.seconds,
            why,
            body: step.body().cloned(),
            parts: step.parts.clone(),
            nccl: step.has_log().then(|| serde_json::to_value(log(step)).ok()).flatten(),
            failure: failure.map(failed),
        }
    }
}

impl ProbeJson {
    /// Reads the recording back.
    pub(super) fn into_recording(self) -> Result<Recording, StoredError> {
        let launch = |engine| LaunchEvent {
            engine,
            command: self.command.unwrap_or_default(),
            given: self.given,
            ..LaunchEvent::default()
        };
        let steps = self.steps.into_iter().map(ProbeStep::into_record).collect::<Result<_, StoredError>>()?;
        Ok(Recording::stored(self.engine.map(launch), steps, self.unfinished))
    }
}

impl ProbeStep {
    fn into_record(self) -> Result<StepRecord, StoredError> {
        let Self { step, outcome, seconds, why, body, parts, nccl, failure } = self;
        let missing = |what: &str| StoredError::Value(format!("probe.steps: the step {step} has no {what}"));
        let outcome = match outcome {
            StepEnd::Open => StepOutcome::Open,
            StepEnd::Done => StepOutcome::Done { body: body.ok_or_else(|| missing("body"))?, unclean_exit: why },
            StepEnd::Failed => StepOutcome::Failed(Box::new(failure.ok_or_else(|| missing("failure"))?.failure)),
            StepEnd::Skipped => StepOutcome::Skipped(why.ok_or_else(|| missing("reason"))?),
        };
        Ok(StepRecord::stored(step, parts, nccl, outcome, seconds)?)
    }
}
