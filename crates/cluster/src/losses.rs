//! Nodes at which packets are lost, by the counters that nodes read around each test. A link that loses few packets is nearly as fast
//! as others, until many nodes use it.

use std::collections::BTreeMap;

use blame::{Direction, median};
use serde::{Deserialize, Serialize};

use super::between::{NodeTest, rate};

/// Packets that a node sent in a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Number of packets.
    pub sent: u64,
    /// Number of those that were sent again.
    pub again: u64,
}

/// A direction of a node in which packets are lost.
#[derive(Clone, Debug, PartialEq)]
pub struct Loss {
    /// Number of the node.
    pub node: usize,
    /// The direction, seen from the node.
    pub direction: Direction,
    /// The fraction of the packets that had to be sent again, in the median of its tests.
    pub share: f64,
    /// The same, of all nodes.
    pub of_all: f64,
    /// Its tests, by index.
    pub tests: Vec<usize>,
}

/// The smallest share that is a loss, and how much more it must be than that of all nodes. On busy hosts TCP sent up to 0.2 % of a
/// sound node's packets again.
const LEAST: f64 = 0.005;
const FACTOR: f64 = 10.0;
/// How many tests show a loss.
const TESTS: usize = 3;

/// The nodes at which packets are lost.
pub(super) fn losses(tests: &[NodeTest]) -> Vec<Loss> {
    let mut seen: BTreeMap<(usize, Direction), Vec<(f64, usize)>> = BTreeMap::new();
    for (number, test) in tests.iter().enumerate() {
        let ends = [test.pair.0, test.pair.1];
        for ((from, to), packets) in ends.into_iter().zip(ends.into_iter().rev()).zip(test.packets) {
            let Some(Packets { sent, again }) = packets.filter(|packets| packets.sent > 0) else { continue };
            let share = rate(again) / rate(sent);
            for part in [(from, Direction::Sends), (to, Direction::Receives)] {
                seen.entry(part).or_default().push((share, number));
            }
        }
    }
    let of_all = median(seen.values().flatten().map(|(share, _)| *share).collect()).unwrap_or_default();
    let loss = |((node, direction), shares): ((usize, Direction), Vec<(f64, usize)>)| {
        let share = median(shares.iter().map(|(share, _)| *share).collect())?;
        let is_lossy = shares.len() >= TESTS && share >= LEAST.max(FACTOR * of_all);
        let tests = shares.into_iter().map(|(_, test)| test).collect();
        is_lossy.then_some(Loss { node, direction, share, of_all, tests })
    };
    seen.into_iter().filter_map(loss).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A round robin of four nodes. `again` is how many packets of 1,000 from one node to another are sent again.
    fn found(again: impl Fn(usize, usize) -> u64) -> Vec<(usize, Direction)> {
        let pairs = [(0, 1), (2, 3), (0, 2), (1, 3), (0, 3), (1, 2)];
        let packets = |from, to| Some(Packets { sent: 1000, again: again(from, to) });
        let test = |(a, b)| NodeTest { pair: (a, b), packets: [packets(a, b), packets(b, a)], ..NodeTest::default() };
        losses(&pairs.map(test)).into_iter().map(|loss| (loss.node, loss.direction)).collect()
    }

    #[test]
    fn a_loss_has_a_node_and_a_direction() {
        assert_eq!(found(|_, _| 0), []);
        assert_eq!(found(|from, _| if from == 2 { 10 } else { 0 }), [(2, Direction::Sends)]);
        assert_eq!(found(|_, to| if to == 1 { 10 } else { 0 }), [(1, Direction::Receives)]);
    }

    #[test]
    fn what_all_nodes_lose_is_of_none() {
        assert_eq!(found(|_, _| 10), []);
        assert_eq!(found(|from, _| if from == 2 { 90 } else { 10 }), []);
        assert_eq!(found(|from, _| if from == 2 { 4 } else { 0 }), [], "four in a thousand are few");
    }
}
