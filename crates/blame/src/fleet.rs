//! What is given: the nodes of a fleet and the tests of their pairs.

/// The nodes of a fleet. A node is called by its index.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fleet {
    /// The nodes.
    pub nodes: Vec<Node>,
    /// The rate of a sound rail in one direction, in the unit of the tests, if the caller knows it: from the NIC's speed or from
    /// an earlier run. Without it, a loss that all nodes share cannot be seen.
    pub expected: Option<f64>,
    /// Determines which pairs are tested.
    pub seed: u64,
}

/// A node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// The number of the switch that the node is on, if known. Give it for all nodes or for none: a test counts as one within a leaf
    /// where one is unknown.
    pub leaf: Option<usize>,
    /// The node answers. An absent node is named in the verdict, and its tests are not read.
    pub present: bool,
}

/// Two different nodes.
pub type Pair = (usize, usize);

/// A part of a fleet that can make tests slow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The node of this index, with all its NICs.
    Node(usize),
    /// What leads out of the leaf of this number.
    Uplink(usize),
    /// What only this pair uses; the lower node first.
    Link(usize, usize),
}

/// A test of a pair.
#[derive(Clone, Debug, PartialEq)]
pub struct PairTest {
    /// The nodes, in the order that gives [`Outcome::Rates`] its directions.
    pub pair: Pair,
    /// Why the pair was chosen.
    pub purpose: Purpose,
    /// What was measured.
    pub outcome: Outcome,
}

/// Why a pair was tested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// A round of [`survey`](crate::survey). Only these tests give the rate of sound pairs, because later ones dwell on suspects.
    Survey,
    /// A round that settles what is undecided.
    Settle,
}

/// What a test measured.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The test failed: it ended with an error, or not at all.
    Failed,
    /// The rates of each rail, in any unit: from the first node to the second, and back. Zero is a failure of the rail, and so is
    /// what no rate can be (negative, infinite, not a number). `None` was not measured.
    Rates(Vec<[Option<f64>; 2]>),
}

/// A test that cannot be one of the fleet's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// The fleet lacks a node of a test.
    #[error("test {test} is of node {node}, which the fleet does not have")]
    NoSuchNode {
        /// The index of the test.
        test: usize,
        /// The node.
        node: usize,
    },
    /// Both nodes of a test are the same.
    #[error("test {test} is of node {node} with itself")]
    SameNode {
        /// The index of the test.
        test: usize,
        /// The node.
        node: usize,
    },
}

impl Fleet {
    /// Indices of the nodes that answer.
    pub(crate) fn present(&self) -> Vec<usize> {
        self.nodes.iter().enumerate().filter(|(_, node)| node.present).map(|(index, _)| index).collect()
    }

    pub(crate) fn leaf(&self, node: usize) -> Option<usize> {
        self.nodes.get(node)?.leaf
    }

    /// The parts that a test of the pair uses.
    pub(crate) fn parts(&self, (a, b): Pair) -> Vec<Part> {
        let mut parts = vec![Part::Node(a), Part::Node(b), Part::link((a, b))];
        if let Some((from, to)) = self.leaf(a).zip(self.leaf(b)).filter(|(from, to)| from != to) {
            parts.extend([Part::Uplink(from), Part::Uplink(to)]);
        }
        parts
    }

    /// Checks that the fleet has the nodes of every test.
    pub(crate) fn check(&self, tests: &[PairTest]) -> Result<(), InputError> {
        for (test, &PairTest { pair: (a, b), .. }) in tests.iter().enumerate() {
            if let Some(node) = [a, b].into_iter().find(|node| *node >= self.nodes.len()) {
                return Err(InputError::NoSuchNode { test, node });
            }
            if a == b {
                return Err(InputError::SameNode { test, node: a });
            }
        }
        Ok(())
    }
}

impl Part {
    /// The link of a pair.
    pub(crate) fn link((a, b): Pair) -> Self {
        Self::Link(a.min(b), a.max(b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fleet(leaves: &[Option<usize>]) -> Fleet {
        let nodes = leaves.iter().map(|leaf| Node { leaf: *leaf, present: true }).collect();
        Fleet { nodes, ..Fleet::default() }
    }

    #[test]
    fn a_test_uses_nodes_a_link_and_the_uplinks_that_it_crosses() {
        let fleet = fleet(&[Some(3), Some(3), Some(5), None]);
        assert_eq!(fleet.parts((1, 0)), [Part::Node(1), Part::Node(0), Part::Link(0, 1)]);
        assert_eq!(fleet.parts((0, 2))[3..], [Part::Uplink(3), Part::Uplink(5)]);
        assert_eq!(fleet.parts((2, 3)).len(), 3, "nothing is known of the leaf of node 3");
    }

    #[test]
    fn tests_of_other_nodes_are_errors() {
        let fleet = fleet(&[None; 3]);
        let test = |pair| PairTest { pair, purpose: Purpose::Survey, outcome: Outcome::Failed };
        assert_eq!(fleet.check(&[test((0, 1)), test((2, 1))]), Ok(()));
        assert_eq!(fleet.check(&[test((0, 1)), test((0, 3))]), Err(InputError::NoSuchNode { test: 1, node: 3 }));
        assert_eq!(fleet.check(&[test((4, 1))]), Err(InputError::NoSuchNode { test: 0, node: 4 }));
        assert_eq!(fleet.check(&[test((2, 2))]), Err(InputError::SameNode { test: 0, node: 2 }));
    }

    #[test]
    fn absent_nodes_are_left_out() {
        let mut fleet = fleet(&[None; 3]);
        fleet.nodes[1].present = false;
        assert_eq!(fleet.present(), [0, 2]);
    }
}
