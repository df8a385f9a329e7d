//! The results of a probe in the JSON report.

use schemars::JsonSchema;
use serde::Serialize;

use probe::facts::log;
use probe::recording::{Recording, StepOutcome, StepRecord};
use probe::wire::events::{EventBody, StepFailure};

/// Results of a probe.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Probe")]
pub(super) struct ProbeJson<'a> {
    /// The engine that ran the image, if any.
    engine: Option<&'a str>,
    /// A command line that runs the same container.
    command: Option<&'a str>,
    /// The container's settings in the engine: `HostConfig` of its answer to ContainerInspect.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    given: Option<&'a serde_json::Value>,
    /// Reason why the probe program did not finish; null if it did.
    unfinished: Option<&'a str>,
    /// The steps in order.
    steps: Vec<ProbeStep<'a>>,
}

/// One step of a probe. The probe program's schema, src/probe/payload/events.schema.json, describes the bodies.
#[derive(Serialize, JsonSchema)]
struct ProbeStep<'a> {
    /// Name of the step.
    step: &'a str,
    /// done, failed, skipped or open; an open step did not report its end.
    outcome: &'a str,
    /// Duration in seconds.
    seconds: Option<f64>,
    /// Reason why the step was skipped, failed or exited uncleanly.
    why: Option<&'a str>,
    /// Results of the step.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    body: Option<&'a EventBody>,
    /// Partial results.
    #[schemars(with = "Vec<serde_json::Map<String, serde_json::Value>>")]
    parts: &'a [EventBody],
    /// NCCL's log of the step, parsed.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    nccl: Option<serde_json::Value>,
    /// Details of the failure.
    #[schemars(with = "Option<serde_json::Map<String, serde_json::Value>>")]
    failure: Option<FailedStep<'a>>,
}

/// A failure as the probe program reported it.
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
        Self {
            engine: launch.map(|launch| &*launch.engine),
            command: launch.map(|launch| &*launch.command),
            given: launch.and_then(|launch| launch.given.as_ref()),
            unfinished: probe.broken.as_deref().filter(|_| !probe.ended),
            steps: probe.steps.iter().map(Into::into).collect(),
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
        let seconds = step.seconds;
        let body = step.body();
        let failure = failure.map(|failure| FailedStep { step: &step.name, seconds, failure });
        let nccl = step.has_log().then(|| serde_json::to_value(log(step)).ok()).flatten();
        Self { step: &step.name, outcome, seconds, why, body, parts: &step.parts, nccl, failure }
    }
}
