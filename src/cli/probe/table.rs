//! A live table of a probe's steps on a terminal: name, state and seconds of each. The report replaces it.

use std::time::Duration;

use probe::recording::{StepOutcome, StepRecord};

use super::super::progress::{Bar, Terminal};

/// Time between two updates of the seconds of a running step.
const TICK: Duration = Duration::from_secs(1);

/// The rows of the steps, in the order in which they run; cleared when dropped.
#[derive(Debug)]
pub(super) struct StepTable {
    rows: Vec<(String, Bar)>,
}

impl StepTable {
    /// Draws a row for each step.
    pub(super) fn new(terminal: &Terminal, steps: &[String]) -> Self {
        let width = steps.iter().map(String::len).max().unwrap_or_default();
        let row = |name: &String| (name.clone(), terminal.row(&format!("{name:width$}"), "waiting"));
        Self { rows: steps.iter().map(row).collect() }
    }

    /// Shows that a step has started.
    pub(super) fn start(&self, name: &str) {
        if let Some(row) = self.row(name) {
            row.run("running", TICK);
        }
    }

    /// Shows how a step has ended.
    pub(super) fn end(&self, step: &StepRecord) {
        if let Some(row) = self.row(&step.name) {
            row.stop(&ended(step));
        }
    }

    fn row(&self, name: &str) -> Option<&Bar> {
        self.rows.iter().find(|(row, _)| row == name).map(|(_, bar)| bar)
    }
}

fn ended(step: &StepRecord) -> String {
    let state = match &step.outcome {
        StepOutcome::Done { .. } | StepOutcome::Open => "done",
        StepOutcome::Failed(_) => "failed",
        StepOutcome::Skipped(_) => "skipped",
    };
    step.seconds.map_or_else(|| state.to_owned(), |seconds| format!("{state:8} {seconds:.1} s"))
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use probe::recording::Recording;

    use super::*;

    #[test]
    fn a_table_shows_the_state_of_each_step_until_it_is_dropped() {
        let screen = InMemoryTerm::new(10, 80);
        let terminal = Terminal::in_memory(&screen);
        let table = StepTable::new(&terminal, &["limits", "gpus", "collectives"].map(ToOwned::to_owned));
        let lines = [
            r#"{"ncclcheck":1,"event":"hello","plan":{"steps":["limits","gpus"]}}"#,
            r#"{"ncclcheck":1,"event":"start","step":"limits","deadline":20}"#,
            r#"{"ncclcheck":1,"event":"result","step":"limits","seconds":0.24,"body":{}}"#,
            r#"{"ncclcheck":1,"event":"start","step":"gpus","deadline":60}"#,
            r#"{"ncclcheck":1,"event":"skipped","step":"gpus","why":"none"}"#,
        ];
        for step in &Recording::replay(lines.join("\n").as_bytes()).unwrap().steps {
            table.end(step);
        }
        table.start("collectives");
        table.start("unheard-of");
        let limits = "  limits       done     0.2 s";
        let gpus = "  gpus         skipped";
        let drawn = || screen.contents().lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>();
        // Drawings have a rate, and the last of them may be left out until the next.
        std::thread::sleep(2 * TICK);
        let [first, second, third] = &*drawn() else { panic!("{:?}", drawn()) };
        assert_eq!((&**first, &**second), (limits, gpus));
        assert!(["  collectives  running  1 s", "  collectives  running  2 s"].contains(&&**third), "{third}");
        drop(table);
        assert_eq!(drawn(), [""; 0]);
    }
}
