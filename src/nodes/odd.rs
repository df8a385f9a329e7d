//! Which nodes differ from most, and in what.

use std::cmp::Reverse;

use cluster::{Comparison, Fate};
use model::Severity;
use report::{NetworkReport, NodeFinding, OddNode};

use super::makes_odd;
use super::merge::nodes_of;

/// The nodes that differ from most, the worst first: those that did not come to the end, those with another value than most, and
/// those with a problem that most do not have. `judged` is the number of nodes that rules judged.
pub(super) fn nodes(
    nodes: &[(String, Fate)],
    comparisons: &[Comparison<'_>],
    findings: &[NodeFinding],
    judged: usize,
) -> Vec<OddNode> {
    let of_node = |(name, fate): &(String, Fate)| {
        let mut reasons: Vec<(Severity, String)> = Vec::new();
        reasons.extend(of_fate(fate, nodes).map(|reason| (Severity::Error, reason)));
        reasons.extend(comparisons.iter().filter_map(|one| Some((one.row.severity, of_value(name, one)?))));
        reasons.extend(findings.iter().filter_map(|one| Some((one.severity, of_finding(name, one, judged)?))));
        reasons.retain(|(severity, _)| makes_odd(*severity));
        reasons.sort_by_key(|(severity, _)| Reverse(*severity));
        let severity = reasons.first()?.0;
        let reasons = reasons.into_iter().map(|(_, reason)| reason).collect();
        Some(OddNode { kind: "node", name: name.clone(), severity, reasons })
    };
    let mut odd: Vec<_> = nodes.iter().filter_map(of_node).collect();
    odd.sort_by_key(|node| Reverse(node.severity));
    odd
}

/// Adds the slow parts of the network in front: nodes, uplinks and links. How the program of a node ended is the cause of its failed
/// tests, so it comes before them.
pub(super) fn add_slow(odd: &mut Vec<OddNode>, network: Option<&NetworkReport>, nodes: &[(String, Fate)]) {
    let slow = network.iter().flat_map(|network| &network.parts).filter(|part| part.state == "bad").rev();
    for part in slow {
        let name = part.title();
        let known = odd.iter().position(|node| node.name == name).map(|place| odd.remove(place));
        let is_lost = nodes.iter().any(|(node, fate)| *node == name && *fate != Fate::Ended);
        let mut reasons = known.map(|node| node.reasons).unwrap_or_default();
        let place = usize::from(is_lost && !reasons.is_empty());
        reasons.insert(place, part.text.clone());
        odd.insert(0, OddNode { kind: part.kind, name, severity: Severity::Error, reasons });
    }
}

/// Why a node's program did not come to its end, unless that of none did.
fn of_fate(fate: &Fate, nodes: &[(String, Fate)]) -> Option<String> {
    let has_ended = nodes.iter().any(|(_, fate)| *fate == Fate::Ended);
    match fate {
        Fate::Failed(why) if has_ended => Some(format!("failed: {why}")),
        Fate::Absent(why) if has_ended => Some(format!("absent: {why}")),
        Fate::Ended | Fate::Failed(_) | Fate::Absent(_) => None,
    }
}

/// The value of a node that is odd in it.
fn of_value(name: &str, comparison: &Comparison<'_>) -> Option<String> {
    comparison.odd().find(|node| *node == name)?;
    let most = comparison.groups.first()?;
    let own = comparison.groups.iter().find(|group| group.nodes.iter().any(|node| node == name))?;
    let all: usize = comparison.groups.iter().chain(&comparison.unknown).map(|group| group.nodes.len()).sum();
    let value = comparison.value();
    Some(format!("{value} is {}, and {} on {} of {all} nodes", own.value, most.value, most.nodes.len()))
}

/// The problem of a node that most nodes do not have.
fn of_finding(name: &str, finding: &NodeFinding, judged: usize) -> Option<String> {
    let group = finding.groups.iter().find(|group| group.nodes.iter().any(|node| node == name))?;
    (nodes_of(finding).len() * 2 < judged).then(|| format!("{} ({})", group.text, finding.rule))
}
