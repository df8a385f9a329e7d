//! Lets a caller follow a running probe and interrupt it.

use std::sync::{Arc, Mutex, PoisonError};

use super::ProbeError;
use super::engine::Killer;
use super::recording::{Recording, StepOutcome, StepRecord};
use super::wire::events::{self, Event};

/// Follows a running probe. The default methods do nothing.
pub trait Observer {
    /// Receives each line of the recording, without its newline.
    fn line(&mut self, _line: &[u8]) {}

    /// Receives each step when it has ended.
    fn step_over(&mut self, _step: &StepRecord) {}

    /// Receives notes about what runs next and about deviations from the defaults.
    fn note(&mut self, _text: &str) {}
}

/// Ignores everything.
impl Observer for () {}

/// Removes the containers of a probe, from another thread or a signal handler.
#[derive(Clone, Debug, Default)]
pub struct Interrupt(Arc<Mutex<Vec<Killer>>>);

impl Interrupt {
    /// Removes every container that was started under this interrupt. Returns an error for each one that could not be
    /// removed.
    pub fn end(&self) -> Vec<ProbeError> {
        let containers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        containers.iter().filter_map(|container| container.end().err()).collect()
    }

    pub(super) fn remember(&self, container: Killer) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(container);
    }
}

/// Adds the lines of a program to a recording and passes them to the observer.
pub(super) struct Follower<'o> {
    pub(super) recording: Recording,
    pub(super) observer: &'o mut dyn Observer,
}

impl<'o> Follower<'o> {
    /// Follows a run of these steps.
    pub(super) fn new(steps: Vec<String>, observer: &'o mut dyn Observer) -> Self {
        Self { recording: Recording::of_steps(steps), observer }
    }

    /// Adds a line of the container. The observer gets an event of ncclcheck in place of a line that is not accepted.
    pub(super) fn line(&mut self, line: &[u8]) {
        let before = self.ended_steps();
        match self.recording.push(line) {
            Ok(()) => self.observer.line(line),
            Err(why) => self.write(&Event::Refused { why }),
        }
        self.report_since(before);
    }

    /// Adds an event of ncclcheck itself.
    pub(super) fn event(&mut self, event: Event) {
        let before = self.ended_steps();
        self.write(&event);
        self.recording.take(event);
        self.report_since(before);
    }

    fn write(&mut self, event: &Event) {
        if let Ok(line) = events::write(event) {
            self.observer.line(line.as_bytes());
        }
    }

    fn ended_steps(&self) -> usize {
        self.recording.steps.iter().filter(|step| is_over(step)).count()
    }

    /// Passes the step that has ended since the number of such steps was `before` to the observer.
    fn report_since(&mut self, before: usize) {
        if self.ended_steps() > before
            && let Some(step) = self.recording.steps.iter().rev().find(|step| is_over(step))
        {
            self.observer.step_over(step);
        }
    }
}

fn is_over(step: &StepRecord) -> bool {
    step.outcome != StepOutcome::Open
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default)]
    struct Seen(Vec<String>);

    impl Observer for Seen {
        fn line(&mut self, line: &[u8]) {
            self.0.push(String::from_utf8_lossy(line).into_owned());
        }

        fn step_over(&mut self, step: &StepRecord) {
            self.0.push(step.name.clone());
        }
    }

    #[test]
    fn an_observer_sees_each_line_and_the_end_of_each_step() {
        let mut seen = Seen::default();
        let mut follower = Follower::new(vec!["one".to_owned()], &mut seen);
        for line in [
            "noise",
            r#"{"ncclcheck":1,"event":"hello"}"#,
            r#"{"ncclcheck":1,"event":"start","step":"one","deadline":1.0}"#,
            r#"{"ncclcheck":1,"event":"skipped","step":"one","why":"none"}"#,
        ] {
            follower.line(line.as_bytes());
        }
        follower.event(Event::Skipped { step: "isolated".to_owned(), why: "none".to_owned() });
        assert_eq!(follower.recording.steps.len(), 2);
        let steps: Vec<_> = seen.0.iter().map(String::as_str).filter(|text| !text.starts_with('{')).collect();
        assert_eq!((seen.0.len(), steps), (7, vec!["noise", "one", "isolated"]));
    }

    #[test]
    fn a_line_that_is_not_accepted_is_recorded_with_its_reason() {
        let mut seen = Seen::default();
        let mut follower = Follower::new(vec!["one".to_owned()], &mut seen);
        follower.line(br#"{"ncclcheck":1,"event":"result","step":"one","seconds":1.0,"body":{}}"#);
        assert_eq!(follower.recording.refused, ["line 1: it comes before the program's hello"]);
        assert!(seen.0[0].contains(r#""event":"refused","why":"line 1: it comes before"#), "{seen:?}");
    }
}
