//! One run on all nodes: starts the program there, gathers what it writes, and ends it.
//!
//! No node holds up the others: one that is absent, dies, hangs or floods ends as such, with the reason, at the latest when the
//! time is over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde::{Deserialize, Serialize};

use probe::{ProbePlan, payload};

use super::ClusterError;
use super::agent::Agent;
use super::between::{BetweenNodes, Network};
use super::channel::Channel;
use super::launch::{Launch, LaunchWay};
use super::limits::{END_TIME, RunLimits};
use super::orders::Order;
use super::process::{News, Process, Stopper};
use super::rounds::Rounds;

/// Pieces of output that wait to be read. A flood waits in its pipe.
const WAITING: usize = 256;
/// Pause between two looks at the processes.
const TICK: Duration = Duration::from_millis(50);
/// Time in which the output of a task that has ended comes.
const REST: Duration = Duration::from_secs(1);

/// What a run gave.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterRun {
    /// Names of the steps that each node was asked to run.
    pub steps: Vec<String>,
    /// The nodes, in the order in which they were named.
    pub nodes: Vec<NodeRun>,
    /// What is known of the network.
    pub network: Network,
    /// What the nodes did with each other.
    pub between: BetweenNodes,
}

/// What came from a node.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeRun {
    /// Name of the node.
    pub name: String,
    /// Lines of its recording.
    pub text: Vec<u8>,
    /// How its program ended.
    pub fate: Fate,
}

/// How the program on a node ended. The first line of a reason says why; the others are the last lines of the
/// program's standard error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", tag = "end", content = "why")]
pub enum Fate {
    /// It ran to its end.
    Ended,
    /// It started and did not come to its end.
    Failed(String),
    /// It did not start.
    Absent(String),
}

/// Runs the plan on all nodes, and tests between them if the plan has the step for it.
///
/// # Errors
/// A command cannot be started.
pub fn run(
    launch: &Launch,
    plan: ProbePlan,
    network: Network,
    limits: &RunLimits,
    stopper: &Stopper,
    note: &mut dyn FnMut(&str),
) -> Result<ClusterRun, ClusterError> {
    let plan = ProbePlan { lifeline: true, ..plan };
    let (sender, news) = sync_channel(WAITING);
    let agents = launch.nodes.iter().map(|node| Agent::new(node, &plan.steps)).collect();
    let mut gathering = Gathering {
        launch,
        plan,
        program: payload::program().into(),
        sender,
        news,
        stopper,
        note,
        began: Instant::now(),
        agents,
        channels: Vec::new(),
        lost: BTreeSet::new(),
    };
    let ran = gathering.run(&network, limits);
    gathering.end(limits);
    let between = ran?;
    Ok(gathering.finish(network, between))
}

/// A run under way.
pub(super) struct Gathering<'a> {
    launch: &'a Launch,
    plan: ProbePlan,
    program: Arc<str>,
    sender: SyncSender<News>,
    news: Receiver<News>,
    stopper: &'a Stopper,
    note: &'a mut dyn FnMut(&str),
    pub(super) began: Instant,
    pub(super) agents: Vec<Agent>,
    channels: Vec<Channel>,
    /// Numbers of the nodes that failed, as far as that was noted.
    lost: BTreeSet<usize>,
}

impl Gathering<'_> {
    fn run(&mut self, network: &Network, limits: &RunLimits) -> Result<BetweenNodes, ClusterError> {
        let all: Vec<_> = (0..self.agents.len()).collect();
        self.start(&all)?;
        self.gather(limits)?;
        let found = Rounds::new(self, network, limits).run()?;
        self.order(&all.into_iter().map(|node| (node, Order::End { end: true })).collect());
        let until = Instant::now() + END_TIME;
        while Instant::now() < until && self.agents.iter().any(|agent| agent.fate.is_none()) {
            self.pump()?;
        }
        let waited = self.began.elapsed();
        self.agents.iter_mut().for_each(|agent| agent.late(waited));
        Ok(found)
    }

    pub(super) fn note(&mut self, text: &str) {
        (self.note)(text);
    }

    /// Gives orders to nodes.
    pub(super) fn order(&self, orders: &BTreeMap<usize, Order>) {
        for channel in self.channels.iter().filter(|channel| !channel.is_over) {
            let of_node = |node: &usize| {
                let id = self.agents.get(*node)?.id.clone()?;
                Some((id, orders.get(node)?))
            };
            let line: BTreeMap<_, _> = channel.nodes.iter().filter_map(of_node).collect();
            if !line.is_empty()
                && let Ok(line) = serde_json::to_string(&line)
            {
                channel.process.write((line + "\n").into());
            }
        }
    }

    /// Starts the program on these nodes.
    fn start(&mut self, nodes: &[usize]) -> Result<(), ClusterError> {
        let is_step = matches!(self.launch.way, LaunchWay::Step { .. });
        for (nodes, command) in self.launch.commands(nodes, &self.program, &self.plan) {
            let name = command.get_program().to_string_lossy().into_owned();
            let failed = |error| ClusterError::Start { command: name, why: model::cause(&error) };
            let number = self.channels.len();
            let process = Process::start(command, number, &self.program, &self.sender, self.stopper).map_err(failed)?;
            self.channels.push(Channel::new(process, nodes, is_step));
        }
        Ok(())
    }

    /// Reads until all nodes have done their own steps, or the time is over.
    fn gather(&mut self, limits: &RunLimits) -> Result<(), ClusterError> {
        let mut noted = limits.budget;
        while self.agents.iter().any(|agent| agent.fate.is_none() && agent.arrived.is_none()) {
            let mut arrived: Vec<_> = self.agents.iter().filter_map(|agent| agent.arrived).collect();
            arrived.sort_unstable();
            let limit = limits.until(&arrived, self.agents.len());
            if limit < noted {
                noted = limit;
                let seconds = limit.as_secs_f64();
                self.note(&format!("most nodes are done; the others have until {seconds:.0} s after the start"));
            }
            if self.began.elapsed() >= limit {
                let late = self.agents.iter_mut().filter(|agent| agent.arrived.is_none());
                late.for_each(|agent| agent.late(limit));
                return Ok(());
            }
            self.pump()?;
        }
        Ok(())
    }

    /// Takes what came from the processes.
    pub(super) fn pump(&mut self) -> Result<(), ClusterError> {
        match self.news.recv_timeout(TICK) {
            Ok(one) => self.take(one),
            // This holds a sender. All that has come was read.
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let now = self.began.elapsed();
                self.agents.iter_mut().for_each(|agent| agent.end_silent_start(now));
            }
        }
        self.look()?;
        self.report_lost();
        Ok(())
    }

    fn take(&mut self, news: News) {
        let now = self.began.elapsed();
        let Self { channels, agents, .. } = self;
        let (News::Output(number, _) | News::Errors(number, _) | News::Closed(number)) = news;
        let Some(channel) = channels.get_mut(number) else { return };
        match news {
            News::Output(_, bytes) => channel.output(&bytes, agents, now),
            News::Errors(_, bytes) => channel.errors(&bytes, agents, now),
            News::Closed(_) => channel.process.closed(),
        }
    }

    /// Looks at what has ended.
    fn look(&mut self) -> Result<(), ClusterError> {
        let now = self.began.elapsed();
        let Self { channels, agents, .. } = self;
        for agent in agents.iter_mut() {
            if let Some((_, how)) = agent.obituary.clone().filter(|(since, _)| now > *since + REST) {
                agent.gone(&how);
            }
        }
        let mut again = Vec::new();
        for channel in channels.iter_mut().filter(|channel| !channel.is_over) {
            let Some(status) = channel.process.ending() else { continue };
            channel.is_over = true;
            channel.finish(agents, now);
            for node in channel.nodes.clone() {
                let Some(agent) = agents.get_mut(node).filter(|agent| agent.fate.is_none()) else { continue };
                if channel.is_refused {
                    *agent = Agent::new(&agent.node, &self.plan.steps);
                    again.push(node);
                } else {
                    let how = || format!("{} ended with {status}", command_name(self.launch));
                    let how = agent.obituary.take().map_or_else(how, |(_, how)| how);
                    agent.gone(&how);
                }
            }
        }
        if again.is_empty() { Ok(()) } else { self.start(&again) }
    }

    /// Says which nodes have failed since it was last called.
    fn report_lost(&mut self) {
        for (node, agent) in self.agents.iter().enumerate() {
            if let Some(Fate::Failed(why) | Fate::Absent(why)) = &agent.fate
                && self.lost.insert(node)
            {
                (self.note)(&format!("{} is lost: {}", agent.node, why.lines().next().unwrap_or_default()));
            }
        }
    }

    /// Returns true if a node has failed.
    pub(super) fn has_lost(&self) -> bool {
        !self.lost.is_empty()
    }

    /// Ends all processes: by the end of their input, then by signals.
    fn end(&mut self, limits: &RunLimits) {
        self.channels.iter_mut().for_each(|channel| channel.process.end_input());
        for (time, signal) in limits.endings.into_iter().zip([Signal::TERM, Signal::KILL]) {
            let until = Instant::now() + time;
            while self.channels.iter_mut().any(|channel| !channel.is_over) {
                if Instant::now() >= until {
                    break;
                }
                if let Ok(News::Closed(number)) = self.news.recv_timeout(TICK) {
                    let _ = self.channels.get_mut(number).map(|channel| channel.process.closed());
                }
                for channel in &mut self.channels {
                    channel.is_over |= channel.process.ending().is_some();
                }
            }
            self.channels.iter().filter(|channel| !channel.is_over).for_each(|channel| channel.process.signal(signal));
        }
    }

    fn finish(self, network: Network, between: BetweenNodes) -> ClusterRun {
        let missing = || Fate::Absent("nothing came from it".to_owned());
        let node = |agent: Agent| NodeRun {
            name: agent.node,
            text: agent.intake.into_text(),
            fate: agent.fate.unwrap_or_else(missing),
        };
        let nodes = self.agents.into_iter().map(node).collect();
        ClusterRun { steps: self.plan.steps, nodes, network, between }
    }
}

/// The command that reaches the nodes, for messages.
fn command_name(launch: &Launch) -> &str {
    match &launch.way {
        LaunchWay::Step { .. } => "srun",
        LaunchWay::Each(_) => "its command",
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
