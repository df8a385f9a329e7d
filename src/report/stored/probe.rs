//! The probe of a stored report. A report has less than the recording: the container's program, the lines of NCCL's log, and
//! what the image printed are missing, and no form shows them.

use serde::Deserialize;

use crate::probe::recording::{Recording, StepOutcome, StepRecord};
use crate::probe::wire::events::{EventBody, LaunchEvent, StepFailure};

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
    #[serde(default)]
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
    pub(super) fn recording(self) -> serde_json::Result<Recording> {
        let launch = |engine| LaunchEvent {
            engine,
            command: self.command.unwrap_or_default(),
            given: self.given,
            ..LaunchEvent::default()
        };
        let steps = self.steps.into_iter().map(StoredStep::record).collect::<Result<_, _>>()?;
        Ok(Recording::stored(self.engine.map(launch), steps, self.unfinished))
    }
}

impl StoredStep {
    fn record(self) -> serde_json::Result<StepRecord> {
        let outcome = match (self.outcome, self.failure) {
            (StoredStepOutcome::Open | StoredStepOutcome::Failed, None) => StepOutcome::Open,
            (StoredStepOutcome::Done, _) => {
                StepOutcome::Done { body: self.body.unwrap_or_default(), unclean_exit: self.why }
            }
            (StoredStepOutcome::Skipped, _) => StepOutcome::Skipped(self.why.unwrap_or_default()),
            (StoredStepOutcome::Open | StoredStepOutcome::Failed, Some(failure)) => StepOutcome::Failed(failure),
        };
        StepRecord::stored(self.step, self.parts, self.nccl, outcome, self.seconds)
    }
}
