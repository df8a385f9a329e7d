//! Order of a program's events. The program shares its standard output with the image, which can write anything there:
//! an event is believed only where the program could have written it.

use super::wire::StepBody as _;
use super::wire::events::Event;
use super::wire::isolated::IsolatedBody;

/// The writer of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventWriter {
    /// The container, whose output is read while it runs.
    Container,
    /// ncclcheck, or a file that it wrote: some events are its own.
    Ncclcheck,
}

/// What has happened so far: one greeting, each step at most once and one after another, the end.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct EventOrder {
    has_greeted: bool,
    /// The step that has started and not ended.
    open: Option<String>,
    closed: Vec<String>,
    outcomes: Outcomes,
    has_ended: bool,
}

/// Numbers of steps by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Outcomes {
    run: u64,
    failed: u64,
    skipped: u64,
}

impl EventOrder {
    /// Returns an error for an event that cannot be the next one of a run of the steps `asked`.
    pub(super) fn admit(&mut self, event: &Event, asked: &[String], writer: EventWriter) -> Result<(), String> {
        if is_of_ncclcheck(event) {
            return match writer {
                EventWriter::Ncclcheck => Ok(()),
                EventWriter::Container => Err("only ncclcheck itself writes this event".to_owned()),
            };
        }
        if self.has_ended {
            return Err("it comes after the end of the program".to_owned());
        }
        if !self.has_greeted && !matches!(event, Event::Hello(_)) {
            return Err("it comes before the program's hello".to_owned());
        }
        match event {
            Event::Hello(_) => self.greet(),
            Event::Start { step, .. } => self.start(step, asked),
            Event::Part { step, .. } => self.within(step),
            Event::Log(log) => self.within(&log.step),
            Event::Result { step, .. } => self.close(step, |outcomes| &mut outcomes.run),
            Event::Failed(failed) => self.close(&failed.step, |outcomes| &mut outcomes.failed),
            Event::Skipped { step, .. } => self.close(step, |outcomes| &mut outcomes.skipped),
            Event::End { run, failed, skipped } => self.end(Outcomes { run: *run, failed: *failed, skipped: *skipped }),
            Event::Launch(_) | Event::Refused { .. } => Ok(()),
        }
    }

    fn greet(&mut self) -> Result<(), String> {
        if self.has_greeted {
            return Err("the program said hello before".to_owned());
        }
        self.has_greeted = true;
        Ok(())
    }

    fn start(&mut self, step: &str, asked: &[String]) -> Result<(), String> {
        if let Some(open) = &self.open {
            return Err(format!("the step {open} has not ended"));
        }
        if !asked.iter().any(|name| name == step) {
            return Err(format!("the step {step} was not requested"));
        }
        if self.closed.iter().any(|name| name == step) {
            return Err(format!("the step {step} has already run"));
        }
        self.open = Some(step.to_owned());
        Ok(())
    }

    /// The event belongs to the running step.
    fn within(&self, step: &str) -> Result<(), String> {
        match &self.open {
            Some(open) if open == step => Ok(()),
            Some(open) => Err(format!("it is of the step {step}, and {open} runs")),
            None => Err(format!("the step {step} does not run")),
        }
    }

    fn close(&mut self, step: &str, outcome: fn(&mut Outcomes) -> &mut u64) -> Result<(), String> {
        self.within(step)?;
        self.closed.extend(self.open.take());
        *outcome(&mut self.outcomes) += 1;
        Ok(())
    }

    fn end(&mut self, told: Outcomes) -> Result<(), String> {
        if let Some(open) = &self.open {
            return Err(format!("the step {open} has not ended"));
        }
        if told != self.outcomes {
            let Outcomes { run, failed, skipped } = self.outcomes;
            return Err(format!(
                "it counts {}, {} and {} steps that ran, failed and were skipped, and there were {run}, {failed} and {skipped}",
                told.run, told.failed, told.skipped
            ));
        }
        self.has_ended = true;
        Ok(())
    }
}

/// Returns true for an event that ncclcheck adds to those of the program.
fn is_of_ncclcheck(event: &Event) -> bool {
    match event {
        Event::Launch(_) | Event::Refused { .. } => true,
        Event::Start { step, .. }
        | Event::Part { step, .. }
        | Event::Result { step, .. }
        | Event::Skipped { step, .. } => step == IsolatedBody::STEP,
        Event::Failed(failed) => failed.step == IsolatedBody::STEP,
        Event::Log(log) => log.step == IsolatedBody::STEP,
        Event::Hello(_) | Event::End { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::events::EventLine;
    use super::*;

    /// Reasons why events of the container are not admitted, in order; an admitted event gives none.
    fn refused(events: &[&str]) -> Vec<String> {
        let asked = ["limits".to_owned(), "gpus".to_owned()];
        let mut order = EventOrder::default();
        let admit = |event: &&str| {
            let line = format!(r#"{{"ncclcheck":1,{event}}}"#);
            let EventLine::Event(_, event) = EventLine::read(line.as_bytes()).unwrap() else { panic!("{line}") };
            order.admit(&event, &asked, EventWriter::Container).err()
        };
        events.iter().filter_map(admit).collect()
    }

    const HELLO: &str = r#""event":"hello""#;
    const START: &str = r#""event":"start","step":"limits","deadline":1.0"#;
    const PART: &str = r#""event":"part","step":"limits","body":{}"#;
    const LOG: &str = r#""event":"log","step":"limits","rank":0,"line":"x""#;
    const RESULT: &str = r#""event":"result","step":"limits","seconds":1.0,"body":{}"#;
    const FAILED: &str = r#""event":"failed","step":"limits","seconds":1.0,"how":"exit","message":"x""#;
    const SKIP: &str = r#""event":"skipped","step":"gpus","why":"x""#;
    const START_GPUS: &str = r#""event":"start","step":"gpus","deadline":1.0"#;

    #[test]
    fn a_whole_run_is_admitted() {
        let end = r#""event":"end","run":1,"failed":0,"skipped":1"#;
        assert_eq!(refused(&[HELLO, START, PART, LOG, RESULT, START_GPUS, SKIP, end]), [""; 0]);
        let end = r#""event":"end","run":0,"failed":1,"skipped":0"#;
        assert_eq!(refused(&[HELLO, START, FAILED, end]), [""; 0]);
    }

    #[test]
    fn events_out_of_order_are_refused() {
        let other = r#""event":"start","step":"rdma","deadline":1.0"#;
        let end = r#""event":"end","run":1"#;
        for (events, why) in [
            (&[START][..], "it comes before the program's hello"),
            (&[HELLO, HELLO], "the program said hello before"),
            (&[HELLO, RESULT], "the step limits does not run"),
            (&[HELLO, other], "the step rdma was not requested"),
            (&[HELLO, START, START_GPUS], "the step limits has not ended"),
            (&[HELLO, START, SKIP], "it is of the step gpus, and limits runs"),
            (&[HELLO, START, FAILED, RESULT], "the step limits does not run"),
            (&[HELLO, START, RESULT, START], "the step limits has already run"),
            (&[HELLO, START, RESULT, LOG], "the step limits does not run"),
            (&[HELLO, START, end], "the step limits has not ended"),
            (&[HELLO, START, RESULT, end, PART], "it comes after the end of the program"),
        ] {
            assert_eq!(refused(events), [why], "{events:?}");
        }
        let miscounted = refused(&[HELLO, START, RESULT, r#""event":"end","run":2"#]);
        assert!(miscounted[0].starts_with("it counts 2, 0 and 0 steps"), "{miscounted:?}");
    }

    #[test]
    fn the_container_cannot_write_what_ncclcheck_measures() {
        let launch = r#""event":"launch","engine":"x","image":"x","image_id":"x","command":"x","gpus":true"#;
        let isolated = r#""event":"start","step":"isolated","deadline":1.0"#;
        for event in [launch, isolated, r#""event":"refused","why":"x""#] {
            assert_eq!(refused(&[HELLO, event]), ["only ncclcheck itself writes this event"]);
        }
    }
}
