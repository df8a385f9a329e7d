//! What a caller gets: what is bad, sound or undecided, and why.

use std::collections::BTreeMap;

use crate::fleet::{Pair, Part};
use crate::rails::Scope;

/// Below this fraction of a pair's rate a run of all nodes is slow. More nodes take more steps, so that the loss that is not seen in
/// pairs is too little.
const SLOW_TOGETHER: f64 = 0.5;

/// What the tests of a fleet show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    /// The state of each node.
    pub nodes: Vec<State>,
    /// The state of each leaf's uplink, where there are two leaves or more.
    pub uplinks: BTreeMap<usize, State>,
    /// The links that are not sound; the lower node first.
    pub links: BTreeMap<Pair, State>,
    /// The rate of a sound pair in one direction, by rail, in the unit of the tests. It is zero where the rail works in no test, and
    /// none where no test of a survey measured it.
    pub references: Vec<Option<f64>>,
    /// The noise of the tests: the standard deviation of the slowest rail of a test, as a fraction of its rate.
    pub noise: f64,
    /// Losses smaller than this fraction are not seen: 0.1, or about three times the noise if that is more.
    pub unseen_loss: f64,
    /// Rails that are slow on all nodes alike. They blame no node.
    pub common: Vec<Common>,
}

/// The state of a part.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// As fast as the reference, within the loss that is not seen.
    Sound {
        /// How many tests were fast.
        fast: usize,
    },
    /// Slow, or without any rate.
    Bad(Fault),
    /// The tests do not decide it.
    Undecided(Doubt),
    /// The node does not answer.
    Absent,
}

/// Why a part is bad.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// What is left, as a fraction of a sound part; zero if its tests fail.
    pub capacity: f64,
    /// The rails and directions that are slow.
    pub scope: Scope,
    /// The slow tests that nothing else explains, by index.
    pub evidence: Vec<usize>,
    /// How much more probable the tests are with this fault than without it, in nats.
    pub margin: f64,
}

/// Why a part is undecided, and what settles it.
#[derive(Clone, Debug, PartialEq)]
pub struct Doubt {
    /// Why.
    pub why: Why,
    /// The pairs to test next; none where no pair settles it, or where they are used for another part in the next round.
    pub pairs: Vec<Pair>,
}

/// Why a part is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was seen fast in too few tests.
    FewTests,
    /// Tests were slow, but too few or too little to blame it.
    WeakEvidence,
    /// Its only unusual test was not repeated.
    NotRepeated,
    /// This other part explains the same tests as well.
    Rival(Part),
    /// No clear majority of parts of its kind is equally fast, so it is unknown which of them are sound. [`Fleet::expected`](crate::Fleet::expected)
    /// decides it.
    NoMajority,
    /// It is as fast as the others, and all of them are slower than [`Fleet::expected`](crate::Fleet::expected).
    AllSlow,
    /// No test of a survey has a rate.
    NoRate,
}

/// A rail that is slow on all nodes alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Common {
    /// The rail.
    pub rail: usize,
    /// Its rate, in the unit of the tests.
    pub rate: f64,
    /// [`Fleet::expected`](crate::Fleet::expected), or without it the median of all rails.
    pub expected: f64,
}

impl Verdict {
    /// The state of a part. A link that is not listed is sound, as far as its nodes are.
    pub fn state(&self, part: Part) -> Option<&State> {
        match part {
            Part::Node(node) => self.nodes.get(node),
            Part::Uplink(leaf) => self.uplinks.get(&leaf),
            Part::Link(a, b) => self.links.get(&(a, b)),
        }
    }

    /// The parts that are bad.
    pub fn bad(&self) -> BTreeMap<Part, &Fault> {
        let states = self.states();
        states
            .filter_map(|(part, state)| if let State::Bad(fault) = state { Some((part, fault)) } else { None })
            .collect()
    }

    /// The parts that are undecided.
    pub fn undecided(&self) -> BTreeMap<Part, &Doubt> {
        let states = self.states();
        states
            .filter_map(|(part, state)| if let State::Undecided(doubt) = state { Some((part, doubt)) } else { None })
            .collect()
    }

    /// The pairs that settle what is undecided, as one round: no node is in two of them. It is empty where no pair helps.
    pub fn next_round(&self) -> Vec<Pair> {
        self.undecided().values().flat_map(|doubt| &doubt.pairs).copied().collect()
    }

    /// True if a run of all sound nodes together is slow and no part of the verdict explains that: its rate is below half of what
    /// is expected, in the same unit, and no uplink or link is bad. Bad nodes take no part in it. It blames no node: look for what
    /// only many nodes at once use.
    pub fn is_slow_together(&self, rate: f64, expected: f64) -> bool {
        rate < SLOW_TOGETHER * expected && self.bad().keys().all(|part| matches!(part, Part::Node(_)))
    }

    fn states(&self) -> impl Iterator<Item = (Part, &State)> {
        let nodes = self.nodes.iter().enumerate().map(|(node, state)| (Part::Node(node), state));
        let uplinks = self.uplinks.iter().map(|(leaf, state)| (Part::Uplink(*leaf), state));
        let links = self.links.iter().map(|((a, b), state)| (Part::Link(*a, *b), state));
        nodes.chain(uplinks).chain(links)
    }
}
