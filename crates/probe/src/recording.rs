//! Recording of a probe: its events, grouped by step.

use super::order::{EventOrder, EventWriter};
use super::wire::events::{Event, EventBody, EventLine, Hello, LaunchEvent, LogEvent, StepFailure};
use super::wire::{self, PartBody, StepBody};
use nccllog::NcclLog;

/// Most lines of noise, and most reasons for refused lines, that a recording keeps.
pub(super) const MOST_LINES: usize = 20;

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
    /// The first lines of the protocol that were not accepted, each with its number and the reason.
    pub refused: Vec<String>,
    /// Number of lines that were not accepted.
    pub refused_count: usize,
    /// True if the program ran to its end.
    pub ended: bool,
    /// Reason why it did not, if known.
    pub broken: Option<String>,
    /// Names of the steps that were requested, if the program does not decide them.
    requested: Vec<String>,
    order: EventOrder,
    lines: usize,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub struct StepRecord {
    /// Name of the step.
    pub name: String,
    /// Partial results.
    pub parts: Vec<EventBody>,
    /// NCCL's debug output.
    pub log: Vec<LogEvent>,
    /// What that output says, in a record that was made from a report: a report has no lines.
    pub(super) read_log: Option<Box<NcclLog>>,
    /// Outcome of the step.
    pub outcome: StepOutcome,
    /// Duration in seconds.
    pub seconds: Option<f64>,
}

/// Outcome of a step.
#[derive(Clone, Debug, PartialEq)]
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
    /// A recording of a program that is asked to run these steps.
    pub(super) fn of_steps(requested: Vec<String>) -> Self {
        Self { requested, ..Self::default() }
    }

    /// The recording that a stored report shows: without the program's environment, and without what was not accepted.
    pub fn stored(launch: Option<LaunchEvent>, steps: Vec<StepRecord>, unfinished: Option<String>) -> Self {
        Self { launch, steps, ended: unfinished.is_none(), broken: unfinished, ..Self::default() }
    }

    /// Reads a recording of an earlier probe. Returns an error if nothing ran.
    pub fn replay(text: &[u8]) -> Result<Self, &'static str> {
        Self::replay_of(text, Vec::new())
    }

    /// Reads a recording of an earlier probe that was asked to run these steps. Returns an error if nothing ran.
    pub fn replay_of(text: &[u8], requested: Vec<String>) -> Result<Self, &'static str> {
        let lines = || text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let mut recording = Self::of_steps(requested);
        // The launch says what was requested, and its line comes after those of the container.
        if let Some(launch) = lines().rev().find_map(launch_in) {
            recording.requested = launch.steps;
        }
        for line in lines() {
            // A line that is not accepted is kept as such.
            let _ = recording.add(line, EventWriter::Ncclcheck);
        }
        if recording.note_failed_entrypoint() {
            return Ok(recording);
        }
        if recording.hello.is_none() {
            return Err("not a recording of a probe; create one with ncclcheck probe --record FILE");
        }
        if !recording.ended {
            recording.broken = Some("the recording ends before the probe did".to_owned());
        } else if recording.steps.is_empty() {
            return Err("no step ran in this recording; create one with ncclcheck probe --record FILE");
        }
        Ok(recording)
    }

    /// Reads events in any order, for tests of the result.
    #[cfg(test)]
    pub fn read(text: &[u8]) -> Self {
        let mut recording = Self::default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            match EventLine::read(line) {
                Ok(EventLine::Event(_, event)) => recording.take(*event),
                Ok(EventLine::Noise(text)) => recording.noise.push(text),
                Err(why) => recording.refuse(why),
            }
        }
        recording
    }

    /// Notes that nothing ran because the image's entrypoint did not start the program. Returns false if it did.
    pub(super) fn note_failed_entrypoint(&mut self) -> bool {
        let entrypoint = self.launch.as_ref().and_then(|launch| launch.entrypoint.as_ref());
        let has_failed = self.hello.is_none() && entrypoint.is_some_and(|entrypoint| entrypoint.failure.is_some());
        if has_failed {
            self.broken = Some("the image's entrypoint did not start the program".to_owned());
        }
        has_failed
    }

    /// Adds a line that the container wrote. Returns an error for a line of the protocol that is not accepted.
    pub(super) fn push(&mut self, line: &[u8]) -> Result<(), String> {
        self.add(line, EventWriter::Container)
    }

    /// Adds a line. Returns an error for a line of the protocol that is not accepted.
    fn add(&mut self, line: &[u8], writer: EventWriter) -> Result<(), String> {
        self.lines += 1;
        let read = EventLine::read(line).and_then(|read| match read {
            EventLine::Event(_, event) => self.admit(&event, writer).map(|()| Some(event)),
            EventLine::Noise(text) => {
                if self.noise.len() < MOST_LINES {
                    self.noise.push(text);
                }
                Ok(None)
            }
        });
        match read {
            Ok(Some(event)) => self.take(*event),
            Ok(None) => {}
            Err(why) => {
                let why = format!("line {}: {why}", self.lines);
                self.refuse(why.clone());
                return Err(why);
            }
        }
        Ok(())
    }

    fn admit(&mut self, event: &Event, writer: EventWriter) -> Result<(), String> {
        let asked = match event {
            Event::Start { .. } => self.asked().to_vec(),
            _ => Vec::new(),
        };
        self.order.admit(event, &asked, writer)
    }

    /// Names of the steps that were requested. Without a launch that names them, the program's own plan decides.
    pub fn asked(&self) -> &[String] {
        let plan = || self.hello.as_ref().and_then(|hello| hello.plan.value()).map(|plan| plan.steps.list());
        if self.requested.is_empty() { plan().unwrap_or_default() } else { &self.requested }
    }

    fn refuse(&mut self, why: String) {
        self.refused_count += 1;
        if self.refused.len() < MOST_LINES {
            self.refused.push(why);
        }
    }

    /// Adds an event that was accepted, or one of ncclcheck itself.
    pub(super) fn take(&mut self, event: Event) {
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
            Event::Refused { why } => self.refuse(why),
            Event::End { .. } => self.ended = true,
        }
    }

    /// The step of this name, added if it is new.
    fn step(&mut self, name: String) -> &mut StepRecord {
        let index = self.steps.iter().position(|step| step.name == name).unwrap_or_else(|| {
            let log = Vec::new();
            self.steps.push(StepRecord {
                name,
                parts: Vec::new(),
                log,
                read_log: None,
                outcome: StepOutcome::Open,
                seconds: None,
            });
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

/// The launch in a line, if the line has one.
fn launch_in(line: &[u8]) -> Option<LaunchEvent> {
    match EventLine::read(line) {
        Ok(EventLine::Event(_, event)) => match *event {
            Event::Launch(launch) => Some(launch),
            _ => None,
        },
        _ => None,
    }
}

impl StepRecord {
    /// A step of a stored report. `log` is the JSON of what NCCL's debug output says.
    pub fn stored(
        name: String,
        parts: Vec<EventBody>,
        log: Option<serde_json::Value>,
        outcome: StepOutcome,
        seconds: Option<f64>,
    ) -> serde_json::Result<Self> {
        let read_log = log.map(serde_json::from_value).transpose()?;
        Ok(Self { name, parts, log: Vec::new(), read_log, outcome, seconds })
    }

    /// Returns true if NCCL wrote debug output.
    pub fn has_log(&self) -> bool {
        !self.log.is_empty() || self.read_log.is_some()
    }

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
