//! A process that reaches nodes: its output, given to the agents of these nodes.

use std::time::Duration;

use rustix::process::Signal;

use super::agent::Agent;
use super::process::Process;
use super::run::Fate;
use super::slurm::{self, Labelled, Said};

/// Most bytes of a line of srun's standard error. The rest of a longer line is dropped.
const LONGEST_ERROR: usize = 1 << 16;

/// A process and the nodes that it reaches.
#[derive(Debug)]
pub(super) struct Channel {
    pub(super) process: Process,
    /// Indices of the nodes. In a step of Slurm, by task.
    pub(super) nodes: Vec<usize>,
    /// Labels of a step of Slurm.
    labelled: Option<Labelled>,
    /// The beginning of a line of srun's standard error.
    line: Vec<u8>,
    /// True if srun cannot start the step on one of the nodes, and gives up all of it.
    pub(super) is_refused: bool,
    /// True once the process has ended and its output was read.
    pub(super) is_over: bool,
}

impl Channel {
    pub(super) fn new(process: Process, nodes: Vec<usize>, is_step: bool) -> Self {
        let labelled = is_step.then(Labelled::default);
        Self { process, nodes, labelled, line: Vec::new(), is_refused: false, is_over: false }
    }

    /// Takes bytes of standard output.
    pub(super) fn output(&mut self, bytes: &[u8], agents: &mut [Agent], now: Duration) {
        let Self { nodes, labelled, .. } = self;
        // A label that no task has comes from none.
        let sink = &mut |task: usize, bytes: &[u8]| with_task(nodes, agents, task, |agent| agent.output(bytes, now));
        match labelled {
            Some(labelled) => labelled.push(bytes, sink),
            None => sink(0, bytes),
        }
    }

    /// Gives the agents the beginnings of lines that have no end.
    pub(super) fn finish(&mut self, agents: &mut [Agent], now: Duration) {
        let Self { nodes, labelled, .. } = self;
        if let Some(labelled) = labelled {
            labelled.finish(&mut |task, bytes| with_task(nodes, agents, task, |agent| agent.output(bytes, now)));
        }
    }

    /// Takes bytes of standard error.
    pub(super) fn errors(&mut self, bytes: &[u8], agents: &mut [Agent], now: Duration) {
        if self.labelled.is_none() {
            return complain(&self.nodes, agents, 0, bytes);
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_ERROR.saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                match slurm::labelled(&line) {
                    Some((task, text)) => complain(&self.nodes, agents, task, text),
                    None => self.heard(&line, agents, now),
                }
            }
        }
    }

    /// Takes a line that srun itself wrote to standard error.
    fn heard(&mut self, line: &[u8], agents: &mut [Agent], now: Duration) {
        match slurm::said(&String::from_utf8_lossy(line)) {
            // srun ends the tasks of a step that it gives up.
            Said::Ended(tasks, how) if !self.is_refused => {
                for task in tasks {
                    with_task(&self.nodes, agents, task, |agent| {
                        agent.obituary.get_or_insert_with(|| (now, format!("srun reported `{how}`")));
                    });
                }
            }
            Said::NotStarted(name, why) => {
                if let Some(agent) = agents.iter_mut().find(|agent| agent.node == name) {
                    agent.fate = Some(Fate::Absent(format!("Slurm cannot start a task there: {why}")));
                    self.is_refused = true;
                    // srun would wait for the tasks that it has started. They start again without this node.
                    self.process.signal(Signal::TERM);
                }
            }
            Said::Error => (0..self.nodes.len()).for_each(|task| complain(&self.nodes, agents, task, line)),
            Said::Ended(..) | Said::Nothing => {}
        }
    }
}

/// Changes the agent of a task, if there is such a task.
fn with_task(nodes: &[usize], agents: &mut [Agent], task: usize, change: impl FnOnce(&mut Agent)) {
    if let Some(agent) = nodes.get(task).and_then(|node| agents.get_mut(*node)) {
        change(agent);
    }
}

/// Gives the agent of a task bytes of its standard error.
fn complain(nodes: &[usize], agents: &mut [Agent], task: usize, bytes: &[u8]) {
    with_task(nodes, agents, task, |agent| agent.intake.push_error(bytes));
}
