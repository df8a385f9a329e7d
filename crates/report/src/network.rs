//! What tests between nodes show, as a part of the report on them.

use schemars::JsonSchema;
use serde::Serialize;

use super::cluster::NodeGroup;
use model::size;

/// What tests between nodes show.
#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
pub struct NetworkReport {
    /// Parts that are slow or in doubt; the slow ones first.
    pub parts: Vec<NetworkPart>,
    /// What a sound rail carries in one direction, in bytes per second, by rail. Null if no test shows it.
    pub references: Vec<Option<u64>>,
    /// Standard deviation of the tests, as a fraction of their rate.
    pub noise: f64,
    /// A loss below this fraction is not seen.
    pub unseen_loss: f64,
    /// The tests, in the order in which they began.
    pub tests: Vec<NetworkTest>,
    /// RDMA writes of suspects, in the order in which they began.
    pub writes: Vec<NetworkWrites>,
    /// Runs of all sound nodes together.
    pub together: Vec<NetworkTogether>,
    /// What NCCL's logs of the tests show: the network, plugins, warnings. Each is a text with its nodes.
    pub nccl: Vec<NodeGroup>,
    /// Names of the leaf switches, if they are known.
    pub leaves: Vec<String>,
}

/// A part of the network that is slow or in doubt.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkPart {
    /// `node`, `uplink` of a leaf switch, `link` of two nodes, or `all` nodes alike.
    #[schemars(extend("enum" = ["node", "uplink", "link", "all"]))]
    pub kind: &'static str,
    /// Name of the node or of the leaf switch; names of both nodes of a link; empty for all nodes.
    pub name: String,
    /// `bad`, `common` if it concerns all nodes and none alone, or `undecided`.
    #[schemars(extend("enum" = ["bad", "common", "undecided"]))]
    pub state: &'static str,
    /// What is wrong with it, or why it is undecided.
    pub text: String,
    /// Where its trouble comes from, by RDMA writes without GPU and NCCL. Null if they were not tried.
    pub cause: Option<NetworkCause>,
    /// What is left of a slow node, uplink or link, as a fraction of a sound one; null for others.
    pub capacity: Option<f64>,
    /// Its rails and directions that are slow.
    pub slow: Vec<SlowRail>,
    /// Indices of the slow tests that nothing else explains.
    pub evidence: Vec<usize>,
    /// By how many nats the tests are more probable with this fault than without it; null if none was found.
    pub margin: Option<f64>,
}

/// Where the trouble of a part comes from.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkCause {
    /// `nic`, its cable, switch port or slot; `path` of a link's ports; `below-nccl` where RDMA writes fail, too;
    /// `above-nic`; or `unknown`.
    #[schemars(extend("enum" = ["nic", "path", "below-nccl", "above-nic", "unknown"]))]
    pub kind: &'static str,
    /// The cause with its figures, or why it is unknown.
    pub text: String,
    /// Indices of the RDMA writes that show it: those of the part, then those between sound nodes.
    pub writes: Vec<usize>,
}

/// A rail that is slow in one direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SlowRail {
    /// Number of the rail: the local rank whose GPU uses it.
    pub rail: usize,
    /// `sends` or `receives`, seen from the node, from the leaf, or from the first node of a link.
    #[schemars(extend("enum" = ["sends", "receives"]))]
    pub direction: &'static str,
    /// What is left, as a fraction of a sound rail.
    pub capacity: f64,
}

/// A test of two nodes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkTest {
    /// Names of the nodes.
    pub nodes: [String; 2],
    /// Number of its round, from 1: the tests of a round run at once. Null if it was not recorded.
    pub round: Option<usize>,
    /// Bytes per second of each rail, from the first node to the second and back. Null if it was not measured.
    pub rates: Vec<[Option<u64>; 2]>,
    /// Why it failed. Null if it did not.
    pub failure: Option<String>,
}

/// RDMA writes between two nodes by verbs, without GPU and NCCL: each pair of ports alone.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkWrites {
    /// Names of the nodes.
    pub nodes: [String; 2],
    /// The pairs of ports.
    pub ports: Vec<NetworkPort>,
    /// Why there are none. Null if there are.
    pub failure: Option<String>,
}

/// RDMA writes between a port of each node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkPort {
    /// Name and number of the port on each node, such as `mlx5_0:1`.
    pub names: [String; 2],
    /// Bytes per second from the first node to the second and back. Null if it was not measured.
    pub rates: [Option<u64>; 2],
    /// Why a rate is missing. Null if none is, or if the reason is not known.
    pub why: Option<String>,
}

/// A run of all sound nodes together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetworkTogether {
    /// Number of the nodes.
    pub nodes: usize,
    /// True if NCCL was confined to sockets.
    pub over_sockets: bool,
    /// Bus bandwidth of an all_reduce by size.
    pub busbw: Vec<TogetherBusbw>,
    /// Seconds of an all_reduce of the last size. Null if they were not recorded.
    pub seconds: Option<f64>,
    /// The least seconds in which each node sends its message once through its ports. Null if their rates are not known.
    pub least_seconds: Option<f64>,
    /// Why that is not known. Null if it is.
    pub least_unknown: Option<String>,
    /// Bus bandwidth of the same in a sound pair, in bytes per second. Null if no test shows it.
    pub of_pairs: Option<u64>,
    /// Why it failed. Null if it did not.
    pub failure: Option<String>,
}

/// Bus bandwidth of all nodes together.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct TogetherBusbw {
    /// Size of the message.
    pub bytes: u64,
    /// Bus bandwidth in bytes per second.
    pub busbw: u64,
}

impl NetworkPart {
    /// The part for people: `n5`, `uplink of leaf1`, `link n1 - n2`.
    pub fn title(&self) -> String {
        match self.kind {
            "uplink" => format!("uplink of {}", self.name),
            "link" => format!("link {}", self.name),
            "all" => "all nodes".to_owned(),
            _ => self.name.clone(),
        }
    }
}

/// A rate in words: `48.2 MB/s`.
pub fn rate(bytes_per_second: u64) -> String {
    let (unit, name) = match bytes_per_second {
        0..1_000_000 => (1_000, "kB/s"),
        1_000_000..1_000_000_000 => (1_000_000, "MB/s"),
        1_000_000_000.. => (1_000_000_000, "GB/s"),
    };
    format!("{}.{} {name}", bytes_per_second / unit, bytes_per_second % unit * 10 / unit)
}

impl NetworkReport {
    /// The RDMA writes that show a cause, in words.
    pub(crate) fn writes_of(&self, cause: &NetworkCause) -> impl Iterator<Item = String> {
        cause.writes.iter().filter_map(|test| self.writes.get(*test)).flat_map(NetworkWrites::measured)
    }
}

impl NetworkWrites {
    /// The rates of each pair of ports in words: `n1 mlx5_0:1 > n4 mlx5_0:1: 48.2 GB/s; back: 24.0 GB/s`.
    pub(crate) fn measured(&self) -> Vec<String> {
        let [a, b] = &self.nodes;
        let port = |NetworkPort { names: [first, second], rates, why }: &NetworkPort| {
            let [there, back] = rates.map(|bytes| bytes.map_or_else(|| "?".to_owned(), rate));
            let why = why.as_ref().map(|why| format!("; {why}")).unwrap_or_default();
            format!("{a} {first} > {b} {second}: {there}; back: {back}{why}")
        };
        self.ports.iter().map(port).collect()
    }
}

/// A duration in words: `43.0 ms`.
fn duration(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.1} ms", seconds * 1e3) } else { format!("{seconds:.1} s") }
}

impl NetworkTogether {
    /// Its time beside the least that the ports allow; none if it was not recorded.
    pub(crate) fn time(&self) -> Option<String> {
        let took = format!("{} in {}", size(self.busbw.last()?.bytes), duration(self.seconds?));
        Some(match (self.least_seconds, &self.least_unknown) {
            (Some(least), _) => format!("{took}, and the ports allow {} at least", duration(least)),
            (None, Some(why)) => format!("{took}; the least time of the ports is unknown: {why}"),
            (None, None) => took,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_a_decimal_unit() {
        let rates = [0, 9_990, 48_260_000, 999_999_999, 24_000_000_000].map(rate);
        assert_eq!(rates, ["0.0 kB/s", "9.9 kB/s", "48.2 MB/s", "999.9 MB/s", "24.0 GB/s"]);
    }
}
