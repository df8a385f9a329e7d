//! What tests between nodes show, in words.

use std::collections::{BTreeMap, BTreeSet};

use blame::{Common, Direction, Doubt, Fault, Part, Scope, State, Verdict, Why};
use cluster::{
    Cause, ClusterRun, Fate, Loss, NodeRecord, NodeRun, NodeTest, PortRates, SlowPort, TogetherRun, WritesTest,
};
use probe::recording::StepOutcome;
use probe::wire::between_nodes::BETWEEN_NODES;
use report::{
    NetworkCause, NetworkPart, NetworkPort, NetworkReport, NetworkTest, NetworkTogether, NetworkWrites, NodeGroup,
    SlowRail, TogetherBusbw, rate,
};

/// What the tests of a run show; none if it was not asked for tests.
pub(super) fn network(run: &ClusterRun, records: &[NodeRecord]) -> Option<NetworkReport> {
    let is_asked = run.steps.iter().any(|step| step == BETWEEN_NODES);
    let runs: Vec<_> = run.nodes.iter().map(|node| node.fate == Fate::Ended).collect();
    let verdict = run.between.verdict(&run.network, &runs).ok().filter(|_| is_asked)?;
    let words = Words { run, records, verdict: &verdict };
    let bad = verdict.bad().into_iter().map(|(part, fault)| words.fault(part, fault));
    let losses = run.between.losses().into_iter().map(|loss| words.loss(&loss));
    let common = verdict.common.iter().map(|common| words.common(common));
    Some(NetworkReport {
        parts: bad
            .chain(words.failures())
            .chain(losses)
            .chain(common)
            .chain(run.between.together.iter().filter_map(|one| words.slow_together(one)))
            .chain(words.untested())
            .chain(words.doubts())
            .collect(),
        references: verdict.references.iter().map(|rate| rate.map(whole)).collect(),
        noise: verdict.noise,
        unseen_loss: verdict.unseen_loss,
        tests: run.between.tests.iter().map(|test| words.test(test)).collect(),
        writes: run.between.writes.iter().map(|test| words.writes(test)).collect(),
        together: run.between.together.iter().map(|one| words.together(one)).collect(),
        nccl: logs(records),
        leaves: run.network.leaves.clone(),
    })
}

/// Kinds and texts of the cause where RDMA writes are as fast as sound ones: of a slow part, of failed tests, of lost packets.
const ABOVE_SLOW: [&str; 2] = [
    "above-nic",
    "above the NICs, each of which carries RDMA writes alone as fast as sound ones: GPU, PCIe between GPU and NIC, or settings",
];
const ABOVE_FAILED: [&str; 2] = [
    "above-nic",
    "above the NICs, each of which carries RDMA writes alone as fast as sound ones: GPU, NCCL, its settings, or the sockets by which ranks meet",
];
const BESIDE_LOSS: [&str; 2] = [
    "unknown",
    "unknown: each NIC carries RDMA writes alone as fast as sound ones, which does not show where packets are lost",
];

/// What the parts of a verdict are called.
struct Words<'a> {
    run: &'a ClusterRun,
    records: &'a [NodeRecord],
    verdict: &'a Verdict,
}

impl Words<'_> {
    fn node(&self, node: usize) -> String {
        self.run.nodes.get(node).map(|node| node.name.clone()).unwrap_or_default()
    }

    fn record(&self, node: usize) -> Option<&NodeRecord> {
        let name = self.node(node);
        self.records.iter().find(|record| record.name == name)
    }

    /// The part, whose trouble RDMA writes may explain. `above` has the kind and the text of a cause above its ports.
    fn suspect(&self, part: Part, state: &'static str, text: String, above: [&'static str; 2]) -> NetworkPart {
        NetworkPart { cause: self.cause(part, above), ..self.part(part, state, text) }
    }

    /// The part, with nothing said of it so far.
    fn part(&self, part: Part, state: &'static str, text: String) -> NetworkPart {
        let (kind, name) = match part {
            Part::Node(node) => ("node", self.node(node)),
            Part::Uplink(leaf) => ("uplink", self.run.network.leaves.get(leaf).cloned().unwrap_or_default()),
            Part::Link(a, b) => ("link", format!("{} - {}", self.node(a), self.node(b))),
        };
        NetworkPart { kind, name, ..of_all(state, text) }
    }

    /// Where the trouble of a part comes from, by RDMA writes.
    fn cause(&self, part: Part, [above, what_above]: [&'static str; 2]) -> Option<NetworkCause> {
        let (cause, writes) = cluster::cause(part, &self.run.between, self.verdict, &|node| self.used_ports(node))?;
        let is_link = matches!(part, Part::Link(..));
        let (kind, text) = match cause {
            Cause::Unknown(why) => ("unknown", format!("unknown: {why}")),
            Cause::AbovePorts => (above, what_above.to_owned()),
            Cause::Failing(why) => (
                "below-nccl",
                format!(
                    "below NCCL: RDMA writes without GPU and NCCL fail, too, and do not between sound nodes: the NIC, its cable, \
                     switch port, or settings of RDMA: {why}"
                ),
            ),
            Cause::Ports(slow) => {
                let port = |port: &SlowPort| {
                    let SlowPort { name, direction, rate: found, reference } = port;
                    let [found, reference] = [found, reference].map(|bytes| rate(*bytes));
                    format!("{name} {} {found}, and sound ones {reference}", verb(*direction))
                };
                let ports: Vec<_> = slow.iter().map(port).collect();
                let (kind, what) = if is_link {
                    ("path", "the path between both NICs")
                } else {
                    ("nic", "the NIC, its cable, switch port or slot")
                };
                (kind, format!("{what}: by RDMA writes without GPU and NCCL, {}", ports.join("; ")))
            }
        };
        Some(NetworkCause { kind, text, writes })
    }

    /// The RDMA ports that NCCL uses on a node, such as `mlx5_0:1`. None if it uses no RDMA, or if its log does not show that.
    fn used_ports(&self, node: usize) -> Option<BTreeSet<String>> {
        let log = self.record(node)?.log_between(false)?;
        let ports = log.ib_devices.iter().filter_map(|device| Some(device.split_once('/')?.0.to_owned()));
        let ports: BTreeSet<_> = ports.collect();
        let is_rdma = log.network.iter().any(|network| network.starts_with("IB"));
        (is_rdma && !ports.is_empty()).then_some(ports)
    }

    fn fault(&self, part: Part, fault: &Fault) -> NetworkPart {
        let slow = fault.scope.slow.iter().map(|((rail, direction), capacity)| SlowRail {
            rail: *rail,
            direction: verb(*direction),
            capacity: *capacity,
        });
        NetworkPart {
            capacity: Some(fault.capacity),
            slow: slow.collect(),
            evidence: fault.evidence.clone(),
            margin: Some(fault.margin),
            ..self.suspect(
                part,
                "bad",
                self.slowness(fault),
                if fault.capacity == 0.0 { ABOVE_FAILED } else { ABOVE_SLOW },
            )
        }
    }

    /// What a slow part does.
    fn slowness(&self, fault: &Fault) -> String {
        let failures = fault.evidence.iter().filter_map(|test| self.run.between.tests.get(*test)?.failure.as_deref());
        if fault.capacity == 0.0 {
            let failure = failures.into_iter().next().map(|why| format!(": {why}"));
            return format!("{} fail{}", tested(fault), failure.unwrap_or_default());
        }
        let Scope { slow, .. } = &fault.scope;
        let rail = slow.keys().next().map_or(0, |(rail, _)| *rail);
        let rails = fault.scope.rails().map(|rails| {
            let numbers: Vec<_> = rails.iter().map(ToString::to_string).collect();
            format!(" on rail {}", numbers.join(", "))
        });
        let does = fault.scope.direction().map_or("sends and receives", verb);
        let reference = self.verdict.references.get(rail).copied().flatten();
        let rates = reference.map(|reference| {
            format!(": {}, and sound ones {}", rate(whole(reference * fault.capacity)), rate(whole(reference)))
        });
        let percent = 100.0 * fault.capacity;
        format!("{does} at {percent:.0} %{}{}", rails.unwrap_or_default(), rates.unwrap_or_default())
    }

    /// Nodes and links of tests that failed.
    fn failures(&self) -> Vec<NetworkPart> {
        let failed = |(part, evidence): (Part, Vec<usize>)| {
            let why = self.run.between.tests.get(*evidence.first()?)?.failure.as_ref()?;
            let state = if matches!(part, Part::Node(_)) { "bad" } else { "undecided" };
            let text = format!("a test failed: {why}");
            Some(NetworkPart { evidence, ..self.suspect(part, state, text, ABOVE_FAILED) })
        };
        self.run.between.failures(self.verdict).into_iter().filter_map(failed).collect()
    }

    /// A node at which packets are lost.
    fn loss(&self, loss: &Loss) -> NetworkPart {
        let [share, of_all] = [loss.share, loss.of_all].map(|share| 100.0 * share);
        let text = match loss.direction {
            Direction::Sends => format!("sends {share:.1} % of its packets again, and all nodes {of_all:.1} %"),
            Direction::Receives => {
                format!("{share:.1} % of the packets to it are sent again, and {of_all:.1} % to all nodes")
            }
        };
        NetworkPart { evidence: loss.tests.clone(), ..self.suspect(Part::Node(loss.node), "bad", text, BESIDE_LOSS) }
    }

    /// A rail that is slow on all nodes. Without an expected rate, others are faster.
    fn common(&self, common: &Common) -> NetworkPart {
        let Common { rail, rate: found, expected } = common;
        let [found, expected] = [found, expected].map(|bytes| rate(whole(*bytes)));
        match self.run.network.expected {
            Some(_) => of_all("bad", format!("rail {rail} carries {found} on all nodes, and {expected} was expected")),
            None => of_all("common", format!("rail {rail} carries {found} on all nodes, and other rails {expected}")),
        }
    }

    /// A run of all sound nodes that failed, or that is slow though their pairs are sound.
    fn slow_together(&self, run: &TogetherRun) -> Option<NetworkPart> {
        let nodes = run.nodes.len();
        let is_lost = |node: &usize| self.run.nodes.get(*node).is_some_and(|node| node.fate != Fate::Ended);
        match &run.failure {
            // Networks for RDMA alone carry no sockets.
            _ if run.over_sockets => return None,
            // The lost node has a finding of its own.
            Some(_) if run.nodes.iter().any(is_lost) => return None,
            Some(why) => {
                return Some(of_all("undecided", format!("a run of {nodes} sound nodes together failed: {why}")));
            }
            None => {}
        }
        let (size, of_pairs) = self.busbw_of_pairs()?;
        // Larger messages hide the time of more steps.
        let best = run.busbw.iter().filter(|(bytes, _)| *bytes >= size).map(|(_, busbw)| *busbw).max()?;
        let [best_rate, rate_of_pairs] = [best, of_pairs].map(cluster::rate);
        let is_slow = nodes > 2 && self.verdict.is_slow_together(best_rate, rate_of_pairs);
        let [best, of_pairs] = [best, of_pairs].map(rate);
        let text = format!(
            "{nodes} sound nodes together reach {best} in an all_reduce, and pairs of them {of_pairs}: the loss is in what only \
             many nodes use, such as uplinks, switches or the algorithm, and in no single node"
        );
        is_slow.then(|| of_all("common", text))
    }

    /// The size of the all_reduce of pairs, and its bus bandwidth between sound nodes.
    fn busbw_of_pairs(&self) -> Option<(u64, u64)> {
        let is_sound = |node: usize| matches!(self.verdict.nodes.get(node), Some(State::Sound { .. }));
        let of_sound = self.run.between.tests.iter().filter(|test| is_sound(test.pair.0) && is_sound(test.pair.1));
        let mut rates: Vec<_> = of_sound.filter_map(|test| Some((test.busbw?, test.bytes))).collect();
        rates.sort_unstable();
        let (busbw, bytes) = rates.get(rates.len() / 2).copied()?;
        Some((bytes.unwrap_or(u64::MAX), busbw))
    }

    fn together(&self, run: &TogetherRun) -> NetworkTogether {
        let record = |node: &usize| self.record(*node).ok_or_else(|| format!("{} has no record", self.node(*node)));
        let rates = run.nodes.iter().map(|node| record(node)?.port_rate(run.over_sockets));
        let least_rate: Result<f64, String> = rates.reduce(|one, other| Ok(one?.min(other?))).unwrap_or(Ok(0.0));
        let bytes = run.busbw.last().map_or(0, |(bytes, _)| *bytes);
        NetworkTogether {
            nodes: run.nodes.iter().collect::<BTreeSet<_>>().len(),
            over_sockets: run.over_sockets,
            busbw: run.busbw.iter().map(|(bytes, busbw)| TogetherBusbw { bytes: *bytes, busbw: *busbw }).collect(),
            seconds: run.seconds,
            least_seconds: least_rate.as_ref().ok().map(|rate| cluster::rate(bytes) / rate),
            least_unknown: least_rate.err(),
            of_pairs: self.busbw_of_pairs().map(|(_, busbw)| busbw),
            failure: run.failure.clone(),
        }
    }

    /// Nodes that no test has though their program ran to its end.
    fn untested(&self) -> Vec<NetworkPart> {
        let is_untested =
            |node: usize| !self.run.between.tests.iter().any(|test| test.pair.0 == node || test.pair.1 == node);
        let nodes = self.run.nodes.iter().enumerate();
        let nodes = nodes.filter(|(number, node)| node.fate == Fate::Ended && is_untested(*number));
        let part = |(number, node): (usize, &NodeRun)| {
            let left_out = self.run.between.left_out.iter().find(|(left_out, _)| *left_out == number);
            let record = self.records.iter().find(|record| record.name == node.name);
            let outcome = record.and_then(|record| Some(&record.recording.find(BETWEEN_NODES)?.outcome));
            let why = match (left_out, outcome) {
                (Some((_, why)), _) | (None, Some(StepOutcome::Skipped(why))) => why,
                (None, Some(StepOutcome::Failed(failure))) => &failure.message,
                (None, _) => "no other node could be tested with it",
            };
            self.part(Part::Node(number), "undecided", format!("it was not tested: {why}"))
        };
        nodes.map(part).collect()
    }

    /// What is undecided. A doubt about all nodes is one.
    fn doubts(&self) -> Vec<NetworkPart> {
        let mut parts = BTreeMap::new();
        for (part, Doubt { why, .. }) in self.verdict.undecided() {
            match why {
                // What is slow is said by the rail.
                Why::AllSlow => {}
                // So are nodes without a test.
                Why::NoRate if self.run.between.tests.is_empty() => {}
                Why::NoMajority | Why::NoRate => {
                    parts.entry((0, self.why(*why))).or_insert_with_key(|(_, text)| of_all("undecided", text.clone()));
                }
                Why::FewTests | Why::WeakEvidence | Why::NotRepeated | Why::Rival(_) => {
                    let text = self.why(*why);
                    parts.insert((1 + parts.len(), text.clone()), self.suspect(part, "undecided", text, ABOVE_SLOW));
                }
            }
        }
        parts.into_values().collect()
    }

    fn why(&self, why: Why) -> String {
        match why {
            Why::FewTests => "too few tests show how fast it is".to_owned(),
            Why::WeakEvidence => "some tests were slow, but too few or too little to blame it".to_owned(),
            Why::NotRepeated => "its only unusual test was not repeated".to_owned(),
            Why::Rival(part) => {
                format!("{} explains the same tests as well", self.part(part, "", String::new()).title())
            }
            Why::NoMajority => {
                "no clear majority is equally fast, so that it is unknown which nodes are sound: --expect decides"
                    .to_owned()
            }
            Why::AllSlow => String::new(),
            Why::NoRate => "no test has a rate".to_owned(),
        }
    }

    fn test(&self, test: &NodeTest) -> NetworkTest {
        let (a, b) = test.pair;
        NetworkTest {
            nodes: [self.node(a), self.node(b)],
            round: test.round,
            rates: test.rates.clone(),
            failure: test.failure.clone(),
        }
    }

    fn writes(&self, test: &WritesTest) -> NetworkWrites {
        let (a, b) = test.pair;
        let port =
            |port: &PortRates| NetworkPort { names: port.names.clone(), rates: port.rates, why: port.why.clone() };
        NetworkWrites {
            nodes: [self.node(a), self.node(b)],
            ports: test.ports.iter().map(port).collect(),
            failure: test.failure.clone(),
        }
    }
}

/// All nodes, in this state for this reason.
fn of_all(state: &'static str, text: String) -> NetworkPart {
    let name = String::new();
    NetworkPart {
        kind: "all",
        name,
        state,
        text,
        cause: None,
        capacity: None,
        slow: Vec::new(),
        evidence: Vec::new(),
        margin: None,
    }
}

const fn verb(direction: Direction) -> &'static str {
    match direction {
        Direction::Sends => "sends",
        Direction::Receives => "receives",
    }
}

fn tested(fault: &Fault) -> String {
    model::counted(fault.evidence.len(), "test", "tests")
}

/// What NCCL's logs of the tests between nodes show, each text once.
fn logs(records: &[NodeRecord]) -> Vec<NodeGroup> {
    let mut groups: Vec<NodeGroup> = Vec::new();
    for record in records {
        let log = record.log_between(false).unwrap_or_default();
        let warning = |(text, meaning): (&String, &Option<String>)| match meaning {
            Some(meaning) => format!("warns: {text} ({meaning})"),
            None => format!("warns: {text}"),
        };
        let networks = log.network.iter().map(|network| format!("uses the network {network}"));
        let plugins = log.plugins.iter().map(|plugin| format!("loads the plugin {plugin}"));
        let errors = log.plugin_errors.iter().map(|error| format!("cannot use a plugin: {error}"));
        let left_out = (log.left_out > 0).then(|| format!("wrote {} lines more than are kept", log.left_out));
        for text in networks.chain(plugins).chain(errors).chain(log.warnings.iter().map(warning)).chain(left_out) {
            match groups.iter_mut().find(|group| group.text == text) {
                Some(group) => group.nodes.push(record.name.clone()),
                None => groups.push(NodeGroup { text, nodes: vec![record.name.clone()] }),
            }
        }
    }
    groups
}

/// A rate in whole bytes per second.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "rates were whole numbers")]
fn whole(rate: f64) -> u64 {
    rate.round() as u64
}
