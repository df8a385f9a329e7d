//! The program on one node.

use std::time::Duration;

use probe::Intake;
use probe::recording::{StepOutcome, StepRecord};
use probe::wire::between_nodes::{BETWEEN_NODES, ReadyNode, TestAnswer};
use probe::wire::collectives::Measurement;
use probe::wire::read_part;

use super::limits::LONGEST_SILENCE;
use super::run::Fate;

/// The variable in which Slurm names the node of a task.
const NODE_VARIABLE: &str = "SLURMD_NODENAME";

/// The program on one node, and what has come of it.
#[derive(Debug)]
pub(super) struct Agent {
    pub(super) node: String,
    pub(super) intake: Intake,
    /// How it ended; `None` while it may still write.
    pub(super) fate: Option<Fate>,
    /// When its last output came.
    pub(super) heard: Duration,
    /// When it came to the end of its own steps: it ended, or it takes tests.
    pub(super) arrived: Option<Duration>,
    /// Its name in orders, once it takes them.
    pub(super) id: Option<String>,
    /// What other nodes need to know for a test; none while it takes none.
    pub(super) ready: Option<ReadyNode>,
    /// True once it has said that it is alive, which it repeats in a test and while its ranks start.
    says_alive: bool,
    /// What it answered to tests, and measured in them.
    pub(super) answers: Vec<TestAnswer>,
    pub(super) measurements: Vec<Measurement>,
    /// Number of parts that were read.
    parts: usize,
    /// When and how its process ended, if srun has said so. Output may still come.
    pub(super) obituary: Option<(Duration, String)>,
}

impl Agent {
    pub(super) fn new(node: &str, steps: &[String]) -> Self {
        let intake = Intake::new(steps.to_vec());
        Self {
            node: node.to_owned(),
            intake,
            fate: None,
            heard: Duration::ZERO,
            arrived: None,
            id: None,
            ready: None,
            says_alive: false,
            answers: Vec::new(),
            measurements: Vec::new(),
            parts: 0,
            obituary: None,
        }
    }

    /// Takes bytes of its standard output.
    pub(super) fn output(&mut self, bytes: &[u8], now: Duration) {
        if self.fate.is_some() {
            return;
        }
        self.heard = now;
        if let Err(why) = self.intake.push(bytes) {
            self.fate = Some(Fate::Failed(why));
        } else if let Some(other) = self.other_node() {
            self.fate = Some(Fate::Failed(format!(
                "its task says that it runs on {other}: srun did not place the tasks in order"
            )));
        } else {
            self.read_parts(now);
            if self.intake.recording().ended {
                self.arrived = self.arrived.or(Some(now));
                self.fate = Some(self.distrusted().map_or(Fate::Ended, Fate::Failed));
            }
        }
    }

    /// Reads what came from the step between nodes.
    fn read_parts(&mut self, now: Duration) {
        let parts = self.intake.recording().find(BETWEEN_NODES).map_or(&[][..], |step| &step.parts);
        for part in parts.get(self.parts..).unwrap_or_default() {
            if let Some(ready) = read_part::<ReadyNode>(part) {
                self.id = ready.id.text().map(ToOwned::to_owned);
                self.ready = Some(ready);
                self.arrived = self.arrived.or(Some(now));
            } else if let Some(answer) = read_part::<TestAnswer>(part) {
                // The ranks restart after a failure.
                self.ready = self.ready.take().filter(|_| answer.failed.value().is_none());
                self.answers.push(answer);
            } else if part.get("kind").is_some_and(|kind| kind == "alive") {
                self.says_alive = true;
            } else {
                self.measurements.extend(read_part::<Measurement>(part));
            }
        }
        self.parts = parts.len();
    }

    /// Why what it wrote cannot be believed, if it cannot: the program itself writes no line that is refused.
    fn distrusted(&self) -> Option<String> {
        let recording = self.intake.recording();
        let first = recording.refused.first()?;
        let count = model::counted(recording.refused_count, "line", "lines");
        Some(format!("{count} of its output cannot be of the probe's program, the first: {first}"))
    }

    /// The node by the task's own variable, if that is another one.
    fn other_node(&self) -> Option<String> {
        let environment = self.intake.recording().hello.as_ref()?.environment.value()?;
        environment.get(NODE_VARIABLE)?.clone().filter(|name| *name != self.node)
    }

    /// Notes that its process has ended: `how` is the end of a sentence. What it has written has come before.
    pub(super) fn gone(&mut self, how: &str) {
        self.decide(|agent| match &agent.intake.recording().hello {
            None => Fate::Absent(agent.intake.explained(&format!("its program did not start: {how}"))),
            Some(_) => {
                Fate::Failed(agent.intake.explained(&format!("its program {}, and then {how}", agent.position())))
            }
        });
    }

    /// Gives up waiting, `limit` after the start.
    pub(super) fn late(&mut self, limit: Duration) {
        let seconds = limit.as_secs_f64();
        self.decide(|agent| match &agent.intake.recording().hello {
            None => Fate::Absent(agent.intake.explained(&format!("nothing came from it within {seconds:.0} s"))),
            Some(_) => Fate::Failed(format!("its program {}, and did not end within {seconds:.0} s", agent.position())),
        });
    }

    /// Gives up waiting for an answer to a test. A line that was refused may have been the answer.
    pub(super) fn unanswering(&mut self, why: &str) {
        self.decide(|agent| Fate::Failed(agent.distrusted().unwrap_or_else(|| why.to_owned())));
    }

    /// Gives up a node that has written nothing for too long while its ranks start.
    pub(super) fn end_silent_start(&mut self, now: Duration) {
        let is_open = |step: &StepRecord| step.name == BETWEEN_NODES && step.outcome == StepOutcome::Open;
        let starts = self.ready.is_none() && self.intake.recording().steps.last().is_some_and(is_open);
        if self.says_alive && starts && now > self.heard + LONGEST_SILENCE {
            let seconds = LONGEST_SILENCE.as_secs();
            self.unanswering(&format!("nothing came from it for {seconds} s while its ranks started"));
        }
    }

    fn decide(&mut self, fate: impl FnOnce(&Self) -> Fate) {
        if self.fate.is_none() {
            self.fate = Some(fate(self));
        }
    }

    /// How far it has come.
    fn position(&self) -> String {
        match self.intake.recording().steps.last() {
            Some(step) if step.outcome == StepOutcome::Open => format!("began the step {}", step.name),
            Some(step) => format!("ended the step {}", step.name),
            None => "started".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELLO: &str = r#"{"ncclcheck":1,"event":"hello"}"#;
    const START: &str = r#"{"ncclcheck":1,"event":"start","at":1.0,"step":"between-nodes","deadline":900}"#;

    fn part(body: &str) -> String {
        format!(r#"{{"ncclcheck":1,"event":"part","at":1.0,"step":"between-nodes","body":{body}}}"#)
    }

    /// True if an agent that wrote these lines at once is given up after this many seconds of silence.
    fn is_given_up(lines: &[&str], seconds: u64) -> bool {
        let mut agent = Agent::new("a", &[BETWEEN_NODES.to_owned()]);
        for line in lines {
            agent.output(format!("{line}\n").as_bytes(), Duration::ZERO);
        }
        agent.end_silent_start(Duration::from_secs(seconds));
        let why = "nothing came from it for 12 s while its ranks started";
        assert!(agent.fate.is_none() || agent.fate == Some(Fate::Failed(why.to_owned())), "{:?}", agent.fate);
        agent.fate.is_some()
    }

    #[test]
    fn a_node_that_falls_silent_while_its_ranks_start_is_given_up() {
        let alive = part(r#"{"kind":"alive"}"#);
        let ready =
            part(r#"{"kind":"ready","id":"1","backend":"gloo","ranks":1,"addresses":["192.0.2.1"],"port":1024}"#);
        let failed = part(r#"{"kind":"test","test":0,"seconds":1.0,"failed":{"how":"exit","message":"x"}}"#);
        assert!(!is_given_up(&[HELLO, START], 1000), "its first line may take long");
        assert_eq!([12, 13].map(|seconds| is_given_up(&[HELLO, START, &alive], seconds)), [false, true]);
        assert!(!is_given_up(&[HELLO, START, &alive, &ready], 1000), "it waits for orders");
        assert!(is_given_up(&[HELLO, START, &alive, &ready, &failed], 13), "they start again");
    }
}
