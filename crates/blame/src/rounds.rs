//! The pairs to test: those of the survey, and those that settle what is undecided.

use std::collections::BTreeSet;

use fastrand::Rng;

use crate::fleet::{Fleet, Pair, Part};

/// How many rounds after the survey are worth running: what is undecided then stays so.
pub const SETTLING_ROUNDS: usize = 11;

/// Up to this number of nodes, the survey is a round robin.
const SMALL: usize = 16;
/// How many tests and rounds a survey has at least; and of a round robin, how often a pair is tested at most.
const TESTS: usize = 24;
const ROUNDS: usize = 3;
const REPEATS: usize = 8;
/// How many random matchings are tried for a round; the largest is taken.
const TRIES: usize = 8;
/// How many pairs of one round test an uplink.
const CROSSINGS: usize = 4;

/// Chooses the pairs of the first rounds. Tests of a round may run at once: no node is in two of them.
///
/// A fleet of at most 16 nodes gets a round robin of 24 tests or more, in which a pair is tested at most 8 times; a larger one three
/// random matchings, which repeat no pair. Where the number of nodes is odd, another node rests in each round.
pub fn survey(fleet: &Fleet) -> Vec<Vec<Pair>> {
    let mut nodes = fleet.present();
    let mut random = Rng::with_seed(fleet.seed);
    random.shuffle(&mut nodes);
    if nodes.len() < 2 {
        return Vec::new();
    }
    if nodes.len() > SMALL {
        return matchings(&nodes, ROUNDS, &mut random);
    }
    let turn = nodes.len() - 1 + nodes.len() % 2;
    let rounds = TESTS.div_ceil(nodes.len() / 2).clamp(ROUNDS, REPEATS * turn);
    round_robin(nodes.into_iter().map(Some).collect(), rounds)
}

/// The circle method: one node stays, the others turn around it. An odd number gets one empty place.
fn round_robin(mut circle: Vec<Option<usize>>, rounds: usize) -> Vec<Vec<Pair>> {
    if circle.len() % 2 == 1 {
        circle.push(None);
    }
    let mut round = || {
        let opposite = circle.iter().zip(circle.iter().rev()).take(circle.len() / 2);
        let pairs = opposite.filter_map(|(a, b)| a.zip(*b)).collect();
        if let Some((_, turning)) = circle.split_first_mut() {
            turning.rotate_right(1);
        }
        pairs
    };
    (0..rounds).map(|_| round()).collect()
}

/// Random matchings that repeat no pair. Who rested once does not rest again.
fn matchings(nodes: &[usize], rounds: usize, random: &mut Rng) -> Vec<Vec<Pair>> {
    let mut met = BTreeSet::new();
    let mut rested = BTreeSet::new();
    let mut round = || {
        let tries = (0..TRIES).map(|_| matching(nodes, &met, &rested, random)).collect::<Vec<_>>();
        let pairs = tries.into_iter().max_by_key(Vec::len).unwrap_or_default();
        met.extend(pairs.iter().copied().map(ordered));
        let paired = pairs.iter().flat_map(|(a, b)| [*a, *b]).collect::<BTreeSet<_>>();
        rested.extend(nodes.iter().copied().filter(|node| !paired.contains(node)));
        pairs
    };
    (0..rounds).map(|_| round()).collect()
}

/// Random pairs that have not met. The last nodes may find none.
fn matching(nodes: &[usize], met: &BTreeSet<Pair>, rested: &BTreeSet<usize>, random: &mut Rng) -> Vec<Pair> {
    let mut open = nodes.to_vec();
    random.shuffle(&mut open);
    // Taken from the end: who rested is paired first.
    open.sort_by_key(|node| rested.contains(node));
    let mut pairs = Vec::new();
    while let Some(a) = open.pop() {
        if let Some(place) = open.iter().rposition(|b| !met.contains(&ordered((a, *b)))) {
            pairs.push((a, open.remove(place)));
        }
    }
    pairs
}

fn ordered((a, b): Pair) -> Pair {
    (a.min(b), a.max(b))
}

/// Chooses the pairs that settle doubts.
#[derive(Debug)]
pub(crate) struct Settling<'f> {
    fleet: &'f Fleet,
    /// The pairs that were tested.
    met: BTreeSet<Pair>,
    /// The nodes that are in a pair of this round.
    busy: BTreeSet<usize>,
    /// The nodes that answer, in random order.
    nodes: Vec<usize>,
    /// Those of them without fault or doubt.
    clean: Vec<usize>,
    /// Leaves whose uplinks are bad or in doubt.
    doubtful: BTreeSet<usize>,
}

impl<'f> Settling<'f> {
    /// `suspects` are the parts that are bad or in doubt.
    pub(crate) fn new(fleet: &'f Fleet, tested: &[Pair], suspects: &BTreeSet<Part>) -> Self {
        let mut nodes = fleet.present();
        Rng::with_seed(fleet.seed.wrapping_add(tested.len() as u64)).shuffle(&mut nodes);
        let clean = nodes.iter().copied().filter(|node| !suspects.contains(&Part::Node(*node))).collect();
        let leaf = |part: &Part| if let Part::Uplink(leaf) = part { Some(*leaf) } else { None };
        let doubtful = suspects.iter().filter_map(leaf).collect();
        let met = tested.iter().copied().map(ordered).collect();
        Self { fleet, met, busy: BTreeSet::new(), nodes, clean, doubtful }
    }

    /// The pairs of the next round that settle a doubt about the part; none if all that could are in use.
    pub(crate) fn pairs(&mut self, part: Part) -> Vec<Pair> {
        match part {
            Part::Link(a, b) => self.book(a, Some(b)).into_iter().collect(),
            Part::Node(node) => self.book(node, self.partner(node)).into_iter().collect(),
            Part::Uplink(leaf) => {
                let inside = self.clean.iter().copied().filter(|node| self.fleet.leaf(*node) == Some(leaf));
                let inside = inside.take(CROSSINGS).collect::<Vec<_>>();
                inside.into_iter().filter_map(|node| self.book(node, self.crossing(leaf, node))).collect()
            }
        }
    }

    /// A clean partner, beyond no uplink in doubt if possible. Behind such an uplink, and where no node is clean, any serves.
    fn partner(&self, node: usize) -> Option<usize> {
        let own = self.fleet.leaf(node);
        let is_near = |other: usize| self.fleet.leaf(other) == own;
        if self.is_doubtful(node) {
            return self.free(&self.clean, node, is_near).or_else(|| self.free(&self.nodes, node, is_near));
        }
        let others = if self.clean.is_empty() { &self.nodes } else { &self.clean };
        self.free(others, node, |other| !self.is_doubtful(other)).or_else(|| self.free(others, node, |_| true))
    }

    /// A clean node of another leaf, whose uplink is in no doubt if possible.
    fn crossing(&self, leaf: usize, node: usize) -> Option<usize> {
        let is_outside = |other: usize| self.fleet.leaf(other).is_some_and(|other| other != leaf);
        let safe = self.free(&self.clean, node, |other| is_outside(other) && !self.is_doubtful(other));
        safe.or_else(|| self.free(&self.clean, node, is_outside))
    }

    /// The uplink of the node's leaf is bad or in doubt.
    fn is_doubtful(&self, node: usize) -> bool {
        self.fleet.leaf(node).is_some_and(|leaf| self.doubtful.contains(&leaf))
    }

    /// One of the nodes that fits and is in no pair of this round, one that the node has not met if possible.
    fn free(&self, nodes: &[usize], node: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
        let free = nodes.iter().copied().filter(|other| *other != node && !self.busy.contains(other) && fits(*other));
        free.min_by_key(|other| self.met.contains(&ordered((node, *other))))
    }

    /// Puts the pair into this round, if both nodes are free.
    fn book(&mut self, node: usize, partner: Option<usize>) -> Option<Pair> {
        let partner = partner.filter(|partner| !self.busy.contains(&node) && !self.busy.contains(partner))?;
        self.busy.extend([node, partner]);
        Some((node, partner))
    }
}

#[cfg(test)]
mod tests;
