//! Recording of a probe: its events, grouped by step.

use super::wire::events::{Event, EventBody, EventLine, Hello, LaunchEvent, LogEvent, StepFailure};
use super::wire::{self, PartBody, StepBody};

/// Most lines of noise that a recording keeps.
const NOISE: usize = 20;

/// The events of a probe, from its first line to its last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// Launch of the container; `None` if there was no container.
    pub launch: Option<LaunchEvent>,
    /// The program's environment and plan.
    pub hello: Option<Hello>,
    /// The steps, in the order in which they started.
    pub steps: Vec<StepRecord>,
    /// First lines that the image itself wrote to standard output.
    pub noise: Vec<String>,
    /// Lines of the protocol that could not be parsed, each with its number and the reason.
    pub odd: Vec<String>,
    /// True if the program ran to its end.
    pub ended: bool,
    /// Reason why it did not, if known.
    pub broken: Option<String>,
    lines: usize,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepRecord {
    /// Name of the step.
    pub name: String,
    /// Partial results.
    pub parts: Vec<EventBody>,
    /// NCCL's debug output.
    pub log: Vec<LogEvent>,
    /// Outcome of the step.
    pub outcome: StepOutcome,
    /// Duration in seconds.
    pub seconds: Option<f64>,
}

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// The step started, and its end was not recorded.
    Open,
    /// The step finished.
    Done {
        /// Result of the step.
        body: EventBody,
        /// Abnormal end of the process after it had delivered the result, if any.
        unclean_exit: Option<String>,
    },
    /// The step failed.
    Failed(Box<StepFailure>),
    /// The step could not run, for this reason.
    Skipped(String),
}

impl Recording {
    /// Reads the lines of a recording.
    pub fn read(text: &[u8]) -> Self {
        let mut recording = Self::default();
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(|line| recording.push(line));
        recording
    }

    /// Reads a recording of an earlier probe. Returns `None` if it has no line of a probe.
    pub fn replay(text: &[u8]) -> Option<Self> {
        let mut recording = Self::read(text);
        recording.hello.as_ref()?;
        if !recording.ended {
            recording.broken = Some("the recording ends before the probe did".to_owned());
        }
        Some(recording)
    }

    /// Adds one line.
    pub fn push(&mut self, line: &[u8]) {
        self.lines += 1;
        match EventLine::read(line) {
            Ok(EventLine::Event(_, event)) => self.take(*event),
            Ok(EventLine::Noise(text)) if self.noise.len() < NOISE => self.noise.push(text),
            Ok(EventLine::Noise(_)) => {}
            Err(why) => self.odd.push(format!("line {}: {why}", self.lines)),
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::Launch(launch) => self.launch = Some(launch),
            Event::Hello(hello) => self.hello = Some(*hello),
            Event::Start { step, .. } => {
                self.step(step);
            }
            Event::Part { step, body } => self.step(step).parts.push(body),
            Event::Log(log) => self.step(log.step.clone()).log.push(log),
            Event::Result { step, seconds, body, unclean_exit } => {
                let step = self.step(step);
                step.seconds = Some(seconds);
                step.outcome = StepOutcome::Done { body, unclean_exit };
            }
            Event::Failed(failed) => {
                let step = self.step(failed.step);
                step.seconds = Some(failed.seconds);
                step.outcome = StepOutcome::Failed(Box::new(failed.failure));
            }
            Event::Skipped { step, why } => self.step(step).outcome = StepOutcome::Skipped(why),
            Event::End { .. } => self.ended = true,
        }
    }

    /// The step of this name, added if it is new.
    fn step(&mut self, name: String) -> &mut StepRecord {
        let index = self.steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
            let log = Vec::new();
            self.steps.push(StepRecord { name, parts: Vec::new(), log, outcome: StepOutcome::Open, seconds: None });
            self.steps.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or pushed")]
        &mut self.steps[index]
    }

    /// Returns the step of this name.
    pub fn find(&self, name: &str) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// Returns a finished step and its body.
    pub fn result<B: StepBody>(&self) -> Option<(&StepRecord, B)> {
        let step = self.find(B::STEP)?;
        Some((step, wire::read(step.body()?)))
    }
}

impl StepRecord {
    /// Partial results of one kind.
    pub fn parts_of<P: PartBody>(&self) -> impl Iterator<Item = P> {
        self.parts.iter().filter_map(wire::read_part)
    }

    /// Result of the step, if it finished.
    pub fn body(&self) -> Option<&EventBody> {
        match &self.outcome {
            StepOutcome::Done { body, .. } => Some(body),
            _ => None,
        }
    }
}
