//! Lets a caller follow a running probe and interrupt it.

use std::sync::{Arc, Mutex, PoisonError};

use model::conceal_line;

use super::ProbeError;
use super::engine::Killer;
use super::recording::{Recording, StepOutcome, StepRecord};
use super::wire::events::{self, Event};

/// Most lines that were not accepted in a recording on disk: each has a reason, which may be longer than the line.
const MOST_REFUSED: usize = 1000;

/// Follows a running probe. The default methods do nothing.
pub trait Observer {
    /// Receives each line of the recording, without its newline.
    fn line(&mut self, _line: &[u8]) {}

    /// Receives the names of all steps, in order, before anything runs.
    fn planned(&mut self, _steps: &[String]) {}

    /// Receives the name of each step when it starts.
    fn step_started(&mut self, _name: &str) {}

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
        observer.planned(&steps);
        Self { recording: Recording::of_steps(steps), observer }
    }

    /// Adds a line of the container. The observer gets an event of ncclcheck in place of a line that is not accepted.
    pub(super) fn line(&mut self, line: &[u8]) {
        let before = self.counts();
        match self.recording.push(line) {
            Ok(()) => self.observer.line(conceal_line(&String::from_utf8_lossy(line)).as_bytes()),
            Err(why) if self.recording.refused_count < MOST_REFUSED => self.write(&Event::Refused { why }),
            Err(why) if self.recording.refused_count == MOST_REFUSED => {
                self.write(&Event::Refused { why: format!("{why}; more such lines follow, which are not recorded") });
            }
            Err(_) => {}
        }
        self.report_since(before);
    }

    /// Adds an event of ncclcheck itself.
    pub(super) fn event(&mut self, event: Event) {
        let before = self.counts();
        self.write(&event);
        self.recording.take(events::concealed(event));
        self.report_since(before);
    }

    fn write(&mut self, event: &Event) {
        if let Ok(line) = events::write(event) {
            self.observer.line(conceal_line(&line).as_bytes());
        }
    }

    fn ended_steps(&self) -> usize {
        self.recording.steps.iter().filter(|step| is_over(step)).count()
    }

    /// Numbers of steps that have started and that have ended.
    fn counts(&self) -> (usize, usize) {
        (self.recording.steps.len(), self.ended_steps())
    }

    /// Passes the step that has started or ended since the numbers of such steps were `before` to the observer.
    fn report_since(&mut self, before: (usize, usize)) {
        let (started, ended) = before;
        if let Some(step) = self.recording.steps.get(started) {
            self.observer.step_started(&step.name);
        }
        if self.ended_steps() > ended
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

        fn planned(&mut self, steps: &[String]) {
            self.0.push(format!("planned {}", steps.join(" ")));
        }

        fn step_started(&mut self, name: &str) {
            self.0.push(format!("started {name}"));
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
        let expected = ["planned one", "noise", "started one", "one", "started isolated", "isolated"];
        assert_eq!((seen.0.len(), &*steps), (10, &expected[..]));
    }

    #[test]
    fn a_line_that_is_not_accepted_is_recorded_with_its_reason() {
        let mut seen = Seen::default();
        let mut follower = Follower::new(vec!["one".to_owned()], &mut seen);
        follower.line(br#"{"ncclcheck":1,"event":"result","step":"one","seconds":1.0,"body":{}}"#);
        assert_eq!(follower.recording.refused, ["line 1: it comes before the program's hello"]);
        assert!(seen.0[1].contains(r#""event":"refused","why":"line 1: it comes before"#), "{seen:?}");
    }

    #[test]
    fn the_reasons_in_a_recording_are_bounded() {
        let mut seen = Seen::default();
        let mut follower = Follower::new(vec!["one".to_owned()], &mut seen);
        for _ in 0..3 * MOST_REFUSED {
            follower.line(br#"{"ncclcheck":1,"event":"end"}"#);
        }
        assert_eq!(follower.recording.refused_count, 3 * MOST_REFUSED);
        assert_eq!(seen.0.len(), 1 + MOST_REFUSED);
        assert!(seen.0[MOST_REFUSED].contains("more such lines follow"), "{:?}", seen.0.last());
    }
}
