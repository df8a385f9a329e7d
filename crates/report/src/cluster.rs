//! The report on the nodes of a job. The structs define the published format, which changes only by additions while [`FORM`]
//! stays.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use super::network::NetworkReport;
use super::{Style, html, human, json, prometheus};
use judge::Verdict;
use model::{Owner, Severity};

/// Name and major version of the format.
const FORM: &str = "ncclcheck-cluster/1";

/// What was found on the nodes of a job, and which of them differ from most.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[schemars(title = "ncclcheck cluster")]
pub struct ClusterReport {
    /// Name and major version of the format.
    #[schemars(extend("const" = FORM))]
    schema: &'static str,
    /// `pass`, `fail` or `incomplete`.
    #[schemars(extend("enum" = ["pass", "fail", "incomplete"]))]
    verdict: &'static str,
    /// All nodes, in the order in which they were named.
    pub nodes: Vec<ClusterNode>,
    /// Nodes that differ from most and parts of the network that are slow, the worst first.
    pub odd: Vec<OddNode>,
    /// Values that the nodes do not have in common.
    pub differences: Vec<NodeDifference>,
    /// Problems that rules found, each once, the worst first.
    pub findings: Vec<NodeFinding>,
    /// What is not known, by the reason.
    pub unknown: Vec<NodeGap>,
    /// What tests between nodes show. Null if there were none.
    pub network: Option<NetworkReport>,
    /// Number of values that were compared.
    pub compared: usize,
    /// Number of those that all nodes have in common.
    pub equal: usize,
    #[serde(skip)]
    outcome: Verdict,
}

/// A node.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ClusterNode {
    /// Name of the node.
    pub name: String,
    /// `ended`, `failed`, or `absent` if the program did not start.
    #[schemars(extend("enum" = ["ended", "failed", "absent"]))]
    pub end: &'static str,
    /// Why the program did not come to its end. Null if it did.
    pub why: Option<String>,
}

/// A node that differs from most, or a part of the network that is slow.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct OddNode {
    /// `node`, `uplink` of a leaf switch, `link` of two nodes, or `all` nodes alike.
    #[schemars(extend("enum" = ["node", "uplink", "link", "all"]))]
    pub kind: &'static str,
    /// Name of the node, `uplink of SWITCH`, `link NODE - NODE`, or `all nodes`.
    pub name: String,
    /// Severity of the worst reason.
    pub severity: Severity,
    /// In what it differs, the worst first.
    pub reasons: Vec<String>,
}

/// Nodes with something in common.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeGroup {
    /// The value or the message; of a value that is not known, the reason.
    pub text: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
}

/// A value that the nodes do not have in common.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeDifference {
    /// Name of the row in the table, with `cluster/` before it.
    pub id: String,
    /// Severity of the difference.
    pub severity: Severity,
    /// The value in words.
    pub value: String,
    /// True if more than half of the nodes have the value of the first group.
    pub has_majority: bool,
    /// Nodes by value, the most first.
    pub groups: Vec<NodeGroup>,
    /// Why it matters.
    pub why: String,
    /// What to do on a node that differs; empty if that is not known.
    pub fix: String,
}

/// A problem that a rule found on nodes.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeFinding {
    /// Id of the rule.
    pub rule: String,
    /// Severity of the problem.
    pub severity: Severity,
    /// The party that has to settle it.
    pub owner: Owner,
    /// True if all nodes that ended have it: then it is no matter of single nodes.
    pub is_everywhere: bool,
    /// Nodes by message.
    pub groups: Vec<NodeGroup>,
    /// Why it matters.
    pub why: String,
    /// What to do, once for each way.
    pub fixes: Vec<String>,
}

/// A reason why something is not known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NodeGap {
    /// The reason.
    pub why: String,
    /// Names of the nodes.
    pub nodes: Vec<String>,
    /// Values that could not be compared.
    pub values: Vec<String>,
    /// Ids of rules that have no answer.
    pub rules: Vec<String>,
}

impl ClusterReport {
    /// A report on these nodes with this verdict, and nothing found so far.
    pub fn new(nodes: Vec<ClusterNode>, outcome: Verdict) -> Self {
        Self {
            schema: FORM,
            verdict: outcome.name(),
            nodes,
            odd: Vec::new(),
            differences: Vec::new(),
            findings: Vec::new(),
            unknown: Vec::new(),
            network: None,
            compared: 0,
            equal: 0,
            outcome,
        }
    }

    /// The verdict on all nodes.
    pub const fn outcome(&self) -> Verdict {
        self.outcome
    }

    /// Writes the report for people.
    pub fn write_human(&self, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        human::cluster::write(self, style, out)
    }

    /// Writes the report as an HTML page.
    pub fn write_html(&self, out: &mut dyn Write) -> io::Result<()> {
        html::write_cluster(self, out)
    }

    /// Writes metrics in Prometheus' text format.
    pub fn write_metrics(&self, out: &mut dyn Write) -> io::Result<()> {
        prometheus::write_cluster(self, out)
    }

    /// Names of the nodes on which a job should not run, comma-separated.
    pub fn excluded(&self) -> String {
        let is_excluded = |odd: &&OddNode| odd.kind == "node" && odd.severity == Severity::Error;
        self.odd.iter().filter(is_excluded).map(|odd| odd.name.as_str()).collect::<Vec<_>>().join(",")
    }

    /// Writes the report as JSON on one line.
    pub fn write_json(&self, out: &mut dyn Write) -> io::Result<()> {
        json::write_value(self, out)
    }
}

/// The JSON schema of the report, which a test verifies.
pub const CLUSTER_SCHEMA: &str = include_str!("../schema/cluster.schema.json");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cluster_schema_in_the_repository_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/cluster.schema.json");
        let settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
        let schema = settings.into_generator().into_root_schema_for::<ClusterReport>();
        let schema = format!("{:#}\n", schema.as_value());
        if std::env::var_os("NCCLCHECK_BLESS").is_some_and(|value| value == "1") {
            std::fs::write(path, &schema).unwrap();
        }
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(kept == schema, "this is not the schema: NCCLCHECK_BLESS=1 cargo test --workspace --lib schema");
    }
}
