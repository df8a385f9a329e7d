//! What a probe has told, gathered by step.

use super::wire::events::{Event, EventBody, EventLine, Hello, LaunchEvent, LogEvent, StepFailure};
use super::wire::{self, PartBody, StepBody};

/// Lines of noise that are kept.
const NOISE: usize = 20;

/// A probe from its first line to its last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// How the container was launched; `None` where there was none.
    pub launch: Option<LaunchEvent>,
    /// Who spoke.
    pub hello: Option<Hello>,
    /// The steps, in the order in which they began.
    pub steps: Vec<StepRecord>,
    /// What the image itself wrote to standard output: the first lines.
    pub noise: Vec<String>,
    /// Lines that were to be ours and were not understood, with their number and why.
    pub odd: Vec<String>,
    /// Whether the program came to its end.
    pub ended: bool,
    /// Why it did not, where that is known.
    pub broken: Option<String>,
    lines: usize,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StepRecord {
    /// Its name.
    pub name: String,
    /// Partial results.
    pub parts: Vec<EventBody>,
    /// NCCL's own lines.
    pub log: Vec<LogEvent>,
    /// What came of it.
    pub outcome: StepOutcome,
    /// How long it took, in seconds.
    pub seconds: Option<f64>,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StepOutcome {
    /// It began, and its end was not told.
    Open,
    /// It is done.
    Done {
        /// What it found.
        body: EventBody,
        /// How its process ended after it had delivered, if not well.
        unclean_exit: Option<String>,
    },
    /// It is lost.
    Failed(Box<StepFailure>),
    /// It could not be run.
    Skipped(String),
}

impl Recording {
    /// Reads the lines of a recording.
    pub fn read(text: &[u8]) -> Self {
        let mut recording = Self::default();
        text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).for_each(|line| recording.push(line));
        recording
    }

    /// Reads a recording of an earlier probe; `None` where no line of a probe is in it.
    pub fn replay(text: &[u8]) -> Option<Self> {
        let mut recording = Self::read(text);
        recording.hello.as_ref()?;
        if !recording.ended {
            recording.broken = Some("the recording ends before the probe did".to_owned());
        }
        Some(recording)
    }

    /// Takes one more line.
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

    /// The step of this name; it begins if it has not.
    fn step(&mut self, name: String) -> &mut StepRecord {
        let index = self.steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
            let log = Vec::new();
            self.steps.push(StepRecord { name, parts: Vec::new(), log, outcome: StepOutcome::Open, seconds: None });
            self.steps.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or pushed")]
        &mut self.steps[index]
    }

    /// A step by its name.
    pub fn find(&self, name: &str) -> Option<&StepRecord> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// A step that is done, and its body.
    pub fn result<B: StepBody>(&self) -> Option<(&StepRecord, B)> {
        let step = self.find(B::STEP)?;
        Some((step, wire::read(step.body()?)))
    }
}

impl StepRecord {
    /// Its partial results of one kind.
    pub fn parts_of<P: PartBody>(&self) -> impl Iterator<Item = P> {
        self.parts.iter().filter_map(wire::read_part)
    }

    /// What it found, if it is done.
    pub fn body(&self) -> Option<&EventBody> {
        match &self.outcome {
            StepOutcome::Done { body, .. } => Some(body),
            _ => None,
        }
    }
}
