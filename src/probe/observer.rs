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
    pub(super) fn new(observer: &'o mut dyn Observer) -> Self {
        Self { recording: Recording::default(), observer }
    }

    pub(super) fn line(&mut self, line: &[u8]) {
        let is_over = |step: &&StepRecord| step.outcome != StepOutcome::Open;
        let before = self.recording.steps.iter().filter(is_over).count();
        self.recording.push(line);
        self.observer.line(line);
        if self.recording.steps.iter().filter(is_over).count() > before
            && let Some(step) = self.recording.steps.iter().rev().find(is_over)
        {
            self.observer.step_over(step);
        }
    }

    /// Adds an event of ncclcheck itself, as if the program had written it.
    pub(super) fn event(&mut self, event: &Event) {
        if let Ok(line) = events::write(event) {
            self.line(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Seen(Vec<String>);

    impl Observer for Seen {
        fn line(&mut self, line: &[u8]) {
            self.0.push(format!("{} bytes", line.len()));
        }

        fn step_over(&mut self, step: &StepRecord) {
            self.0.push(step.name.clone());
        }
    }

    #[test]
    fn an_observer_sees_each_line_and_the_end_of_each_step() {
        let mut seen = Seen::default();
        let mut follower = Follower::new(&mut seen);
        follower.line(b"noise");
        follower.event(&Event::Start { step: "one".to_owned(), deadline: 1.0 });
        follower.event(&Event::Skipped { step: "two".to_owned(), why: "none".to_owned() });
        assert_eq!(follower.recording.steps.len(), 2);
        let steps: Vec<_> = seen.0.iter().map(String::as_str).filter(|text| !text.ends_with(" bytes")).collect();
        assert_eq!((seen.0.len(), steps), (4, vec!["two"]));
    }
}
