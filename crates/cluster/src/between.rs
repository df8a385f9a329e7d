//! What nodes did with each other.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use blame::{Fleet, InputError, Node, Outcome, Pair, PairTest, Part, Purpose, Verdict, decide};

use super::losses::{Loss, Packets, losses};
use super::suspects::WritesTest;

/// The tests of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BetweenNodes {
    /// Tests of pairs, in the order in which they began.
    pub tests: Vec<NodeTest>,
    /// Runs of all sound nodes.
    pub together: Vec<TogetherRun>,
    /// Nodes that took no part though their program ran, and why.
    pub left_out: Vec<(usize, String)>,
    /// RDMA WRITEs between suspects and sound nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<WritesTest>,
}

/// A test of two nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeTest {
    /// Numbers of the nodes.
    pub pair: Pair,
    /// Number of its round, from 1; none in records without rounds.
    pub round: Option<usize>,
    /// True if it is of a round that all nodes take part in.
    pub is_survey: bool,
    /// Bytes per second of each rail, from the first node to the second and back.
    pub rates: Vec<[Option<u64>; 2]>,
    /// Bus bandwidth of an all_reduce in bytes per second.
    pub busbw: Option<u64>,
    /// Size of that all_reduce.
    pub bytes: Option<u64>,
    /// What each of the nodes sent.
    pub packets: [Option<Packets>; 2],
    /// Why it failed.
    pub failure: Option<String>,
    /// The node whose fault that is, if it is known.
    pub culprit: Option<usize>,
}

/// A run of all sound nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TogetherRun {
    /// Numbers of the nodes.
    pub nodes: Vec<usize>,
    /// True if NCCL was confined to sockets.
    pub over_sockets: bool,
    /// Bus bandwidth of an all_reduce in bytes per second, by size in bytes.
    pub busbw: Vec<(u64, u64)>,
    /// Seconds of the last of them.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Why it failed.
    pub failure: Option<String>,
}

/// What is known of the network beside the tests.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Network {
    /// Names of the leaves.
    pub leaves: Vec<String>,
    /// The leaf of each node, by number; empty if they are not known.
    pub leaf_of: Vec<usize>,
    /// What a rail carries in one direction, in bytes per second, if the user knows it.
    pub expected: Option<u64>,
}

/// A number of bytes, or of bytes per second, as the decoder takes it.
#[expect(clippy::cast_precision_loss, reason = "rates are far below 2^52")]
pub const fn rate(bytes: u64) -> f64 {
    bytes as f64
}

impl BetweenNodes {
    /// What the tests show. `runs` is true for the nodes whose program did not fail; others are absent, and so are those that
    /// no test has.
    ///
    /// # Errors
    /// A test names a node that the run does not have.
    pub fn verdict(&self, network: &Network, runs: &[bool]) -> Result<Verdict, InputError> {
        let tested = |node| self.tests.iter().any(|test| test.pair.0 == node || test.pair.1 == node);
        let present: Vec<_> = runs.iter().enumerate().map(|(node, runs)| *runs && tested(node)).collect();
        decide(&network.fleet(&present), &self.tests.iter().map(NodeTest::as_pair_test).collect::<Vec<_>>())
    }
}

impl BetweenNodes {
    /// The nodes at which packets are lost.
    pub fn losses(&self) -> Vec<Loss> {
        losses(&self.tests)
    }

    /// Tests that failed, by index, but for those that a slow part explains: by the node that is at fault, or else by the link.
    pub fn failures(&self, verdict: &Verdict) -> BTreeMap<Part, Vec<usize>> {
        let explained: BTreeSet<_> = verdict.bad().into_values().flat_map(|fault| fault.evidence.clone()).collect();
        let mut failures: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (number, test) in self.tests.iter().enumerate() {
            if test.failure.is_some() && !explained.contains(&number) {
                let (a, b) = test.pair;
                let part = test.culprit.map_or(Part::Link(a.min(b), a.max(b)), Part::Node);
                failures.entry(part).or_default().push(number);
            }
        }
        failures
    }

    /// The nodes and links that RDMA writes are to explain: those that are slow, those of failed tests, nodes at which packets
    /// are lost, and those that are undecided.
    pub(super) fn suspects(&self, verdict: &Verdict) -> Vec<Part> {
        let lossy = self.losses().into_iter().map(|loss| Part::Node(loss.node));
        let slow = verdict.bad().into_keys();
        let parts = slow.chain(self.failures(verdict).into_keys()).chain(lossy).chain(verdict.undecided().into_keys());
        let mut seen = BTreeSet::new();
        parts.filter(|part| !matches!(part, Part::Uplink(_)) && seen.insert(*part)).collect()
    }
}

impl Network {
    /// The fleet with these nodes.
    pub(crate) fn fleet(&self, present: &[bool]) -> Fleet {
        let node = |(node, present): (usize, &bool)| Node { leaf: self.leaf_of.get(node).copied(), present: *present };
        Fleet { nodes: present.iter().enumerate().map(node).collect(), expected: self.expected.map(rate), seed: SEED }
    }
}

/// Determines which pairs are tested: the same ones in each run, so that two runs can be compared.
pub(crate) const SEED: u64 = 1;

impl NodeTest {
    fn as_pair_test(&self) -> PairTest {
        let outcome = match self.failure {
            Some(_) => Outcome::Failed,
            None => Outcome::Rates(self.rates.iter().map(|rail| rail.map(|bytes| bytes.map(rate))).collect()),
        };
        PairTest { pair: self.pair, purpose: if self.is_survey { Purpose::Survey } else { Purpose::Settle }, outcome }
    }
}
