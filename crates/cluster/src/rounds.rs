//! Tests between nodes: pairs in rounds until it is clear which part is slow, then all sound nodes together.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use blame::{Pair, SETTLING_ROUNDS, State, survey};
use probe::wire::between_nodes::{ReadyNode, TestAnswer};
use probe::wire::collectives::Measurement;

use super::ClusterError;
use super::between::{BetweenNodes, Network, NodeTest, TogetherRun};
use super::failed_test;
use super::limits::{END_TIME, LONGEST_SILENCE, RunLimits};
use super::losses::Packets;
use super::orders::{self, Order, TestKind};
use super::run::{Fate, Gathering};
use super::suspects;

/// What confines NCCL to sockets.
const SOCKETS: [(&str, &str); 1] = [("NCCL_NET", "Socket")];

/// Tests under way.
pub(super) struct Rounds<'r, 'a> {
    gathering: &'r mut Gathering<'a>,
    network: &'r Network,
    limits: &'r RunLimits,
    found: BetweenNodes,
    /// How long tests took.
    seconds: Vec<f64>,
    /// Number of the next test.
    next: usize,
    /// Number of the round, from 1.
    round: usize,
}

/// A test under way: its nodes, and what they answered.
struct Open {
    nodes: Vec<usize>,
    answers: BTreeMap<usize, TestAnswer>,
}

impl<'r, 'a> Rounds<'r, 'a> {
    pub(super) fn new(gathering: &'r mut Gathering<'a>, network: &'r Network, limits: &'r RunLimits) -> Self {
        Self { gathering, network, limits, found: BetweenNodes::default(), seconds: Vec::new(), next: 0, round: 0 }
    }

    /// Tests all nodes that are ready.
    pub(super) fn run(mut self) -> Result<BetweenNodes, ClusterError> {
        self.leave_out();
        let ready: Vec<_> = (0..self.gathering.agents.len()).map(|node| self.ready(node).is_some()).collect();
        let rounds = survey(&self.network.fleet(&ready));
        for (number, pairs) in rounds.iter().enumerate() {
            if self.is_enough()? {
                self.gathering.note("a node is lost, and all others are sound: no more rounds");
                break;
            }
            self.gathering.note(&format!("round {} of {}: {} pairs", number + 1, rounds.len(), pairs.len()));
            self.round(pairs, true)?;
        }
        for _ in 0..SETTLING_ROUNDS {
            let pairs = self.verdict()?.next_round();
            if pairs.is_empty() || self.is_late() {
                break;
            }
            self.gathering.note(&format!("one more round: {} pairs settle what is undecided", pairs.len()));
            self.round(&pairs, false)?;
        }
        self.writes()?;
        if !self.found.tests.is_empty() && !self.is_late() {
            self.together()?;
        }
        Ok(self.found)
    }

    fn verdict(&self) -> Result<blame::Verdict, ClusterError> {
        let runs: Vec<_> = self.gathering.agents.iter().map(|agent| agent.fate.is_none()).collect();
        let verdict = self.found.verdict(self.network, &runs);
        verdict.map_err(|error| ClusterError::Record(error.to_string()))
    }

    /// Returns true if a node is lost, so that the run has failed, and all others are sound in enough tests. The job can then start
    /// again on them sooner.
    fn is_enough(&self) -> Result<bool, ClusterError> {
        let runs = |node: usize| self.gathering.agents.get(node).is_some_and(|agent| agent.fate.is_none());
        if self.round < ENOUGH_TESTS || !self.gathering.has_lost() {
            return Ok(false);
        }
        let verdict = self.verdict()?;
        let is_sound =
            |node: usize| matches!(verdict.nodes.get(node), Some(State::Sound { fast }) if *fast >= ENOUGH_TESTS);
        let mut tests = self.found.tests.iter().filter(|test| runs(test.pair.0) && runs(test.pair.1));
        let mut nodes = (0..self.gathering.agents.len()).filter(|node| runs(*node));
        Ok(nodes.all(is_sound)
            && verdict.undecided().is_empty()
            && verdict.bad().is_empty()
            && tests.all(|test| test.failure.is_none()))
    }

    fn is_late(&self) -> bool {
        self.gathering.began.elapsed() + END_TIME > self.limits.budget
    }

    /// The node, if it takes tests.
    fn ready(&self, node: usize) -> Option<&ReadyNode> {
        let agent = self.gathering.agents.get(node)?;
        agent.ready.as_ref().filter(|_| agent.fate.is_none() && !self.is_left_out(node))
    }

    fn is_left_out(&self, node: usize) -> bool {
        self.found.left_out.iter().any(|(left_out, _)| *left_out == node)
    }

    /// Leaves out nodes that use another backend than most: no group has two.
    fn leave_out(&mut self) {
        let backends =
            (0..self.gathering.agents.len()).filter_map(|node| Some((node, self.ready(node)?.backend.text()?)));
        let backends: Vec<_> = backends.map(|(node, backend)| (node, backend.to_owned())).collect();
        let has_gpus = |backend: &str| backend != "gloo";
        let with = backends.iter().filter(|(_, backend)| has_gpus(backend)).count();
        let is_most = |backend: &str| has_gpus(backend) == (2 * with >= backends.len());
        for (node, backend) in backends.iter().filter(|(_, backend)| !is_most(backend)) {
            let why = if has_gpus(backend) { "CUDA sees a GPU there" } else { "CUDA sees no GPU there" };
            self.found.left_out.push((*node, format!("{why}, unlike on most nodes")));
        }
    }

    /// Tests pairs at once. A pair of a node whose ranks restart waits for them.
    fn round(&mut self, pairs: &[Pair], is_survey: bool) -> Result<(), ClusterError> {
        self.round += 1;
        let mut open = pairs.to_vec();
        let began = Instant::now();
        while !self.is_late() {
            let is_over = |node: usize| self.gathering.agents.get(node).is_none_or(|agent| agent.fate.is_some());
            open.retain(|(a, b)| !is_over(*a) && !is_over(*b));
            let (now, later): (Vec<_>, Vec<_>) =
                open.into_iter().partition(|(a, b)| self.ready(*a).is_some() && self.ready(*b).is_some());
            open = later;
            if !now.is_empty() {
                self.pairs(&now, is_survey)?;
            } else if open.is_empty() || began.elapsed() > self.limits.patience {
                return Ok(());
            } else {
                self.gathering.pump()?;
            }
        }
        Ok(())
    }

    /// Tests these pairs at once.
    fn pairs(&mut self, pairs: &[Pair], is_survey: bool) -> Result<(), ClusterError> {
        let nodes = pairs.iter().map(|(a, b)| vec![*a, *b]).collect();
        for Open { nodes, answers } in self.tests(nodes, TestKind::Pair, None)? {
            let [a, b] = nodes[..] else { continue };
            let names = [a, b].map(|node| self.name(node));
            let test = node_test((a, b), is_survey, names, [answers.get(&a), answers.get(&b)]);
            self.found.tests.push(NodeTest { round: Some(self.round), ..test });
        }
        Ok(())
    }

    /// Lets suspects and sound nodes write to each other by verbs, one pair after the other.
    fn writes(&mut self) -> Result<(), ClusterError> {
        let agents = self.gathering.agents.iter().enumerate();
        let takes_tests: Vec<_> = agents.map(|(node, agent)| agent.fate.is_none() && !self.is_left_out(node)).collect();
        for pair in suspects::pairs(&self.found, &self.verdict()?, &self.network.leaf_of, &takes_tests) {
            let nodes = vec![pair.0, pair.1];
            self.wait_for(&nodes)?;
            let left = self.limits.budget.saturating_sub(self.gathering.began.elapsed());
            if left < WRITES_TIME + END_TIME || nodes.iter().any(|node| self.ready(*node).is_none()) {
                continue;
            }
            self.gathering.note(&format!("RDMA writes between {} and {}", self.name(pair.0), self.name(pair.1)));
            for Open { answers, .. } in self.tests(vec![nodes], TestKind::Writes, Some(WRITES_TIME))? {
                let of = |node: usize| (self.name(node), answers.get(&node));
                self.found.writes.push(suspects::writes_test(pair, [of(pair.0), of(pair.1)]));
            }
        }
        let all: Vec<_> = self.found.writes.iter().flat_map(|test| [test.pair.0, test.pair.1]).collect();
        self.wait_for(&all)
    }

    fn name(&self, node: usize) -> &str {
        self.gathering.agents.get(node).map_or("", |agent| &agent.node)
    }

    /// Runs all sound nodes at once, as they are and over sockets.
    fn together(&mut self) -> Result<(), ClusterError> {
        let verdict = self.verdict()?;
        let is_sound = |node: &usize| matches!(verdict.nodes.get(*node), Some(State::Sound { .. }));
        let sound: Vec<_> = (0..self.gathering.agents.len()).filter(is_sound).collect();
        let uses_gpus = |node: &usize| self.ready(*node).is_some_and(|node| node.backend.text() == Some("nccl"));
        let ways = if sound.iter().all(uses_gpus) { vec![false, true] } else { vec![false] };
        for over_sockets in ways {
            if over_sockets {
                self.renew(&sound)?;
            }
            let nodes: Vec<_> = sound.iter().copied().filter(|node| self.ready(*node).is_some()).collect();
            let [first, _, ..] = nodes[..] else { return Ok(()) };
            if self.is_late() {
                return Ok(());
            }
            self.gathering.note(&format!("all {} sound nodes together", nodes.len()));
            let known = self.measured(first).len();
            for Open { nodes, answers } in self.tests(vec![nodes], TestKind::Together, Some(TOGETHER_TIME))? {
                let measured = self.measured(first).get(known..).unwrap_or_default();
                let of_size = |one: &Measurement| Some((one.bytes.copied()?, whole(one.busbw()?)?));
                let busbw: Vec<_> = measured.iter().filter_map(of_size).collect();
                let seconds = measured.last().and_then(|last| last.seconds_median.copied());
                let named: Vec<_> = nodes.iter().map(|node| (self.name(*node), answers.get(node))).collect();
                let left_out = || Some(answers.get(&first)?.left_out.list().first()?.why.text()?.to_owned());
                let failure = failed_test::failure(&named)
                    .map(|error| error.why)
                    .or_else(|| left_out().filter(|_| busbw.is_empty()));
                self.found.together.push(TogetherRun { nodes, over_sockets, busbw, seconds, failure });
            }
        }
        Ok(())
    }

    fn measured(&self, node: usize) -> &[Measurement] {
        self.gathering.agents.get(node).map_or(&[], |agent| &agent.measurements)
    }

    /// Restarts the ranks of these nodes, confined to sockets, and waits for them.
    fn renew(&mut self, nodes: &[usize]) -> Result<(), ClusterError> {
        let renew = || Order::Renew { renew: SOCKETS.into_iter().collect() };
        self.gathering.order(&nodes.iter().map(|node| (*node, renew())).collect());
        for node in nodes {
            self.gathering.agents.get_mut(*node).into_iter().for_each(|agent| agent.ready = None);
        }
        self.wait_for(nodes)
    }

    /// Waits until the ranks of these nodes have restarted.
    fn wait_for(&mut self, nodes: &[usize]) -> Result<(), ClusterError> {
        let began = Instant::now();
        let is_waited_for = |rounds: &Self, node: &usize| {
            rounds.ready(*node).is_none()
                && rounds.gathering.agents.get(*node).is_some_and(|agent| agent.fate.is_none())
        };
        while began.elapsed() < self.limits.patience && nodes.iter().any(|node| is_waited_for(self, node)) {
            self.gathering.pump()?;
        }
        Ok(())
    }

    /// Runs tests of these nodes at once, and gives up those that take much longer than most.
    fn tests(
        &mut self,
        nodes: Vec<Vec<usize>>,
        kind: TestKind,
        limit: Option<Duration>,
    ) -> Result<Vec<Open>, ClusterError> {
        let first = self.next;
        let mut tests: Vec<Open> = Vec::new();
        for nodes in nodes {
            let ready: Vec<_> = nodes.iter().filter_map(|node| Some((*node, self.ready(*node)?))).collect();
            let orders = orders::test(self.next, kind, &ready);
            self.next += 1;
            self.gathering.order(&orders);
            tests.push(Open { nodes, answers: BTreeMap::new() });
        }
        let began = Instant::now();
        let began_at = self.gathering.began.elapsed();
        let mut stopped: Option<Instant> = None;
        loop {
            self.gathering.pump()?;
            self.take_answers(first, &mut tests);
            self.end_silent(began_at, first, &tests);
            let late: BTreeSet<usize> = tests.iter().flat_map(|test| self.missing(test)).collect();
            if late.is_empty() {
                return Ok(tests);
            }
            match stopped {
                None if began.elapsed() > limit.unwrap_or_else(|| self.limits.test(&self.seconds)) => {
                    let stops = tests.iter().zip(first..).flat_map(|(test, stop)| {
                        self.missing(test).map(move |node| (node, Order::Stop { stop })).collect::<Vec<_>>()
                    });
                    self.gathering.order(&stops.collect());
                    stopped = Some(Instant::now());
                }
                Some(since) if since.elapsed() > ANSWER_TIME => {
                    for (_, agent) in
                        self.gathering.agents.iter_mut().enumerate().filter(|(node, _)| late.contains(node))
                    {
                        agent.unanswering("it does not answer while it is tested");
                    }
                }
                None | Some(_) => {}
            }
        }
    }

    /// Ends nodes that have written nothing for too long in their tests, and gives up the tests on the others.
    fn end_silent(&mut self, began: Duration, first: usize, tests: &[Open]) {
        let now = self.gathering.began.elapsed();
        let mut stops = BTreeMap::new();
        for (test, stop) in tests.iter().zip(first..) {
            let missing: Vec<_> = self.missing(test).collect();
            for &node in &missing {
                let Some(agent) = self.gathering.agents.get_mut(node) else { continue };
                if now > agent.heard.max(began) + LONGEST_SILENCE {
                    let seconds = LONGEST_SILENCE.as_secs();
                    agent.unanswering(&format!("nothing came from it for {seconds} s while it was tested"));
                    stops.extend(missing.iter().map(|&other| (other, Order::Stop { stop })));
                }
            }
        }
        self.gathering.order(&stops);
    }

    /// The nodes of a test that have not answered and still run.
    fn missing<'t>(&'t self, test: &'t Open) -> impl Iterator<Item = usize> + 't {
        let runs = |node: &usize| self.gathering.agents.get(*node).is_some_and(|agent| agent.fate.is_none());
        test.nodes.iter().copied().filter(move |node| runs(node) && !test.answers.contains_key(node))
    }

    /// Moves what nodes answered into their tests. A failure on one node gives up the test on the others.
    fn take_answers(&mut self, first: usize, tests: &mut [Open]) {
        let mut stops = BTreeMap::new();
        for (node, agent) in self.gathering.agents.iter_mut().enumerate() {
            for answer in std::mem::take(&mut agent.answers) {
                let number = answer.test.copied().and_then(|number| number.checked_sub(first));
                let test = number.and_then(|number| Some((number, tests.get_mut(number)?)));
                match test.filter(|(_, test)| test.nodes.contains(&node) && !test.answers.contains_key(&node)) {
                    Some((number, test)) => {
                        if answer.failed.value().is_some() {
                            stops.extend(test.nodes.iter().map(|node| (*node, Order::Stop { stop: first + number })));
                        } else {
                            self.seconds.extend(answer.seconds.copied());
                        }
                        test.answers.insert(node, answer);
                    }
                    None => agent.fate = Some(Fate::Failed("it answers a test that it was not asked for".to_owned())),
                }
            }
        }
        stops.retain(|node, _| tests.iter().all(|test| !test.answers.contains_key(node)));
        self.gathering.order(&stops);
    }
}

/// How many fast tests of each node are enough once a node is lost. Large fleets have as many.
const ENOUGH_TESTS: usize = 3;

/// The time for a run of all nodes.
const TOGETHER_TIME: Duration = Duration::from_mins(1);

/// The time for the writes of a pair, a little more than they are ordered to take.
const WRITES_TIME: Duration = Duration::from_secs(30);

/// The time in which a node answers that it gives up a test.
const ANSWER_TIME: Duration = Duration::from_secs(4);

/// A rate in whole bytes per second; none if it is not one.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is in the range")]
pub(super) fn whole(rate: f64) -> Option<u64> {
    (rate.is_finite() && (0.0..1e15).contains(&rate)).then_some(rate as u64)
}

/// A test of two nodes by their answers.
fn node_test(pair: Pair, is_survey: bool, names: [&str; 2], answers: [Option<&TestAnswer>; 2]) -> NodeTest {
    let [from, to] = answers.map(|answer| answer.map_or(&[][..], |answer| answer.received.list()));
    let rail = |rail: usize| [to, from].map(|received| received.get(rail).copied().flatten().and_then(whole));
    let busbw = answers[0].and_then(|answer| whole(answer.busbw_bytes_per_second.copied()?));
    let bytes = answers[0].and_then(|answer| answer.bytes.copied());
    let error = failed_test::failure(&[(names[0], answers[0]), (names[1], answers[1])]);
    let culprit = error.as_ref().and_then(|error| [pair.0, pair.1].get(error.culprit?).copied());
    let failure = error.map(|error| error.why);
    let packets = answers.map(|answer| {
        let packets = answer?.packets.value()?;
        Some(Packets { sent: packets.sent.copied()?, again: packets.again.copied()? })
    });
    NodeTest {
        pair,
        is_survey,
        rates: (0..from.len().max(to.len())).map(rail).collect(),
        busbw,
        bytes,
        packets,
        failure,
        culprit,
        ..NodeTest::default()
    }
}
