//! The step `between-nodes`: what a node answers to orders. `payload/between_nodes.py` describes them.

use super::Field;
use super::collectives::LeftOut;
use super::events::RankState;

/// Name of the step.
pub const BETWEEN_NODES: &str = "between-nodes";

objects! {
    /// A node takes tests.
    #[derive(serde::Serialize)]
    pub struct ReadyNode is part "ready" {
        /// The name of the node in orders.
        pub id: Field<String>,
        pub backend: Field<String>,
        pub ranks: Field<usize>,
        pub addresses: Field<Vec<String>>,
        pub port: Field<u16>,
    }

    /// What came of a test on one node.
    pub struct TestAnswer is part "test" {
        pub test: Field<usize>,
        pub seconds: Field<f64>,
        /// Bytes per second that each local rank received from its peer.
        pub received: Field<Vec<Option<f64>>>,
        /// Size of the all_reduce.
        pub bytes: Field<u64>,
        pub busbw_bytes_per_second: Field<f64>,
        /// Number of wrong elements on all ranks.
        pub wrong: Field<usize>,
        pub failed: Field<TestFailure>,
        /// Sizes that all nodes together left out, and why.
        pub left_out: Field<Vec<LeftOut>>,
        pub packets: Field<SentPackets>,
        pub writes: Field<Vec<PortWrites>>,
    }

    /// RDMA WRITEs between a port of each node.
    pub struct PortWrites {
        /// That of rank 0 first.
        pub ports: Field<Vec<String>>,
        pub rate_gbits_per_s: Field<f64>,
        pub received_bytes_per_second: Field<f64>,
        /// True if both ends were ready to connect, so that a missing rate is a failure of the writes.
        pub tried: Field<bool>,
    }

    /// Packets that a node sent in a test.
    pub struct SentPackets {
        pub sent: Field<u64>,
        /// Those of them that it sent again.
        pub again: Field<u64>,
    }

    /// Why a test failed on a node.
    pub struct TestFailure {
        pub how: Field<String>,
        pub message: Field<String>,
        /// How far the ranks of the node came.
        pub ranks: Field<Vec<RankState>>,
    }
}
