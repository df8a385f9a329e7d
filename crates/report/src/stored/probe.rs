//! The probe of a stored report. A report has less than the recording: the container's program, the lines of NCCL's log, and
//! what the image printed are missing, and no form shows them.

use serde::Deserialize;

use super::StoredError;
use probe::recording::{Recording, StepOutcome, StepRecord};
use probe::wire::events::{EventBody, LaunchEvent, StepFailure};

/// Results of a probe.
#[derive(Deserialize)]
pub(super) struct StoredProbe {
    engine: Option<String>,
    command: Option<String>,
    given: Option<serde_json::Value>,
    unfinished: Option<String>,
    #[serde(default)]
    steps: Vec<StoredStep>,
}

#[derive(Deserialize)]
struct StoredStep {
    step: String,
    outcome: StoredStepOutcome,
    seconds: Option<f64>,
    why: Option<String>,
    body: Option<EventBody>,
    #[serde(default)]
    parts: Vec<EventBody>,
    nccl: Option<serde_json::Value>,
    failure: Option<Box<StepFailure>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StoredStepOutcome {
    Open,
    Done,
    Failed,
    Skipped,
}

impl StoredProbe {
    pub(super) fn recording(self) -> Result<Recording, StoredError> {
        let launch = |engine| LaunchEvent {
            engine,
            command: self.command.unwrap_or_default(),
            given: self.given,
            ..LaunchEvent::default()
        };
        let steps = self.steps.into_iter().map(StoredStep::record).collect::<Result<_, StoredError>>()?;
        Ok(Recording::stored(self.engine.map(launch), steps, self.unfinished))
    }
}

impl StoredStep {
    fn record(self) -> Result<StepRecord, StoredError> {
        let Self { step, outcome, seconds, why, body, parts, nccl, failure } = self;
        let missing = |what: &str| StoredError::Value(format!("probe.steps: the step {step} has no {what}"));
        let outcome = match outcome {
            StoredStepOutcome::Open => StepOutcome::Open,
            StoredStepOutcome::Done => {
                StepOutcome::Done { body: body.ok_or_else(|| missing("body"))?, unclean_exit: why }
            }
            StoredStepOutcome::Failed => StepOutcome::Failed(failure.ok_or_else(|| missing("failure"))?),
            StoredStepOutcome::Skipped => StepOutcome::Skipped(why.ok_or_else(|| missing("reason"))?),
        };
        Ok(StepRecord::stored(step, parts, nccl, outcome, seconds)?)
    }
}
