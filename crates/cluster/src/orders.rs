//! What nodes are ordered to do between them. `payload/between_nodes.py` follows the orders.

use std::collections::BTreeMap;

use serde::Serialize;

use probe::wire::between_nodes::ReadyNode;

/// An order to a node.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Order {
    /// Take part in a test.
    Test(TestOrder),
    /// Give up the test of this number.
    Stop { stop: usize },
    /// Restart the ranks with these variables.
    Renew { renew: BTreeMap<&'static str, &'static str> },
    /// End.
    End { end: bool },
}

/// The part of a node in a test.
#[derive(Clone, Debug, Serialize)]
pub(super) struct TestOrder {
    /// Number of the test.
    test: usize,
    kind: TestKind,
    /// The node's first rank.
    rank: usize,
    /// Number of all ranks.
    size: usize,
    /// Number of the node's ranks.
    local: usize,
    /// Where rank 0 is reached.
    addresses: Vec<String>,
    port: u16,
    /// Sizes of messages in bytes, for [`TestKind::Together`].
    sizes: &'static [u64],
    /// The time for all of them.
    seconds: u64,
}

/// What nodes do together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum TestKind {
    /// Two nodes send to each other.
    Pair,
    /// All nodes reduce.
    Together,
    /// The first ranks of two nodes write to each other by verbs.
    Writes,
}

/// Sizes for the backend, and the seconds for all of them.
const NCCL_SIZES: (&[u64], u64) = (&[1 << 20, 64 << 20, 1 << 30], 30);
const GLOO_SIZES: (&[u64], u64) = (&[1 << 20, 4 << 20, 16 << 20], 5);
/// The seconds for the writes of all ports.
const WRITES_SECONDS: u64 = 20;

/// The orders that make these nodes do a test together: the first has rank 0.
pub(super) fn test(number: usize, kind: TestKind, nodes: &[(usize, &ReadyNode)]) -> BTreeMap<usize, Order> {
    let ranks = |node: &ReadyNode| node.ranks.copied().unwrap_or_default();
    // Nodes with more GPUs than the others leave some out.
    let most = if kind == TestKind::Writes { 1 } else { usize::MAX };
    let local = nodes.iter().map(|(_, node)| ranks(node)).min().unwrap_or_default().min(most);
    let first = nodes.first().map(|(_, node)| *node).cloned().unwrap_or_default();
    let (sizes, seconds) = match kind {
        TestKind::Writes => (&[][..], WRITES_SECONDS),
        TestKind::Pair | TestKind::Together if first.backend.text() == Some("gloo") => GLOO_SIZES,
        TestKind::Pair | TestKind::Together => NCCL_SIZES,
    };
    let order = |(place, (node, _)): (usize, &(usize, &ReadyNode))| {
        let order = TestOrder {
            test: number,
            kind,
            rank: place * local,
            size: nodes.len() * local,
            local,
            addresses: first.addresses.list().to_vec(),
            port: first.port.copied().unwrap_or_default(),
            sizes,
            seconds,
        };
        (*node, Order::Test(order))
    };
    nodes.iter().enumerate().map(order).collect()
}
