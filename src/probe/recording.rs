//! What a probe has told, gathered by step.

use super::wire::events::{Body, Event, Hello, Launch, Line, Log, StepFailure};
use super::wire::{self, PartBody, StepBody};

/// Lines of noise that are kept.
const NOISE: usize = 20;

/// A probe from its first line to its last.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    /// How the container was launched; `None` where there was none.
    pub launch: Option<Launch>,
    /// Who spoke.
    pub hello: Option<Hello>,
    /// The steps, in the order in which they began.
    pub steps: Vec<Step>,
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
pub struct Step {
    /// Its name.
    pub name: String,
    /// Partial results.
    pub parts: Vec<Body>,
    /// NCCL's own lines.
    pub log: Vec<Log>,
    /// What came of it.
    pub outcome: Outcome,
    /// How long it took, in seconds.
    pub seconds: Option<f64>,
}

/// What came of a step.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// It began, and its end was not told.
    Open,
    /// It is done.
    Done {
        /// What it found.
        body: Body,
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
        match Line::read(line) {
            Ok(Line::Event(_, event)) => self.take(*event),
            Ok(Line::Noise(text)) if self.noise.len() < NOISE => self.noise.push(text),
            Ok(Line::Noise(_)) => {}
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
                step.outcome = Outcome::Done { body, unclean_exit };
            }
            Event::Failed(failed) => {
                let step = self.step(failed.step);
                step.seconds = Some(failed.seconds);
                step.outcome = Outcome::Failed(Box::new(failed.failure));
            }
            Event::Skipped { step, why } => self.step(step).outcome = Outcome::Skipped(why),
            Event::End { .. } => self.ended = true,
        }
    }

    /// The step of this name; it begins if it has not.
    fn step(&mut self, name: String) -> &mut Step {
        let index = self.steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
            let log = Vec::new();
            self.steps.push(Step { name, parts: Vec::new(), log, outcome: Outcome::Open, seconds: None });
            self.steps.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "it was found or pushed")]
        &mut self.steps[index]
    }

    /// A step by its name.
    pub fn find(&self, name: &str) -> Option<&Step> {
        self.steps.iter().find(|step| step.name == name)
    }

    /// A step that is done, and its body.
    pub fn result<B: StepBody>(&self) -> Option<(&Step, B)> {
        let step = self.find(B::STEP)?;
        Some((step, wire::read(step.body()?)))
    }
}

impl Step {
    /// Its partial results of one kind.
    pub fn parts_of<P: PartBody>(&self) -> impl Iterator<Item = P> {
        self.parts.iter().filter_map(wire::read_part)
    }

    /// What it found, if it is done.
    pub fn body(&self) -> Option<&Body> {
        match &self.outcome {
            Outcome::Done { body, .. } => Some(body),
            _ => None,
        }
    }
}
