//! The nodes of a job: judges each alone by the rules, compares them, and says which differ from most.

mod merge;
mod network;
mod odd;

use cluster::{Agreement, ClusterRun, Comparison, Fate, NodeRecord};
use judge::Verdict;
use model::{FailOn, Severity};
use probe::expect::ExpectedRun;
use probe::recording::Recording;
use report::{ClusterNode, ClusterReport, NetworkPart, NetworkReport, NodeDifference, NodeGroup};

use crate::check::Check;
use crate::check::probed::Probed;
use merge::Merged;

/// Judges what a run on several nodes gave. `fail_on` is the lowest severity that fails.
pub fn judge(run: &ClusterRun, check: &Check<'_>, fail_on: FailOn) -> ClusterReport {
    let mut fates: Vec<Fate> = run.nodes.iter().map(|node| node.fate.clone()).collect();
    let mut records = Vec::new();
    for (node, fate) in run.nodes.iter().zip(&mut fates) {
        match Recording::replay_of(&node.text, run.steps.clone()) {
            Ok(recording) => {
                records.push(NodeRecord { name: node.name.clone(), recording, is_whole: *fate == Fate::Ended });
            }
            Err(why) if *fate == Fate::Ended => *fate = Fate::Failed(why.to_owned()),
            Err(_) => {}
        }
    }
    let nodes = run.nodes.iter().zip(&fates).map(|(node, fate)| (node.name.clone(), fate.clone())).collect();
    report_on(nodes, &records, network::network(run, &records), check, fail_on)
}

fn report_on(
    nodes: Vec<(String, Fate)>,
    records: &[NodeRecord],
    network: Option<NetworkReport>,
    check: &Check<'_>,
    fail_on: FailOn,
) -> ClusterReport {
    let comparisons = cluster::compare(records);
    let mut merged = Merged::default();
    let mut verdicts: Vec<Verdict> = comparisons.iter().map(|one| verdict_of(one, fail_on)).collect();
    for record in records.iter().filter(|record| record.is_whole) {
        let probed = Probed::of_job(vec![record.recording.clone()], &ExpectedRun::default());
        for probed in probed {
            let assessment = check.assess(probed.facts, None, &probed.image);
            verdicts.extend(assessment.verdict());
            merged.add(&record.name, &assessment);
        }
    }
    if fail_on.includes(Severity::Error) {
        verdicts.extend(nodes.iter().filter(|(_, fate)| *fate != Fate::Ended).map(|_| Verdict::Fail));
    }
    verdicts.extend(network.iter().flat_map(|network| &network.parts).map(|part| verdict_of_part(part, fail_on)));
    let outcome = Verdict::worst(verdicts).unwrap_or(Verdict::Pass);
    let whole = records.iter().filter(|record| record.is_whole).count();
    let findings = merged.findings(whole);
    let mut odd = odd::nodes(&nodes, &comparisons, &findings, whole);
    odd::add_slow(&mut odd, network.as_ref(), &nodes);
    let differs = |comparison: &&Comparison<'_>| comparison.agreement != Agreement::Same;
    let values = |comparisons: &mut dyn Iterator<Item = &Comparison<'_>>| -> usize {
        comparisons.filter(|one| !one.groups.is_empty()).map(|one| one.keys.len().max(1)).sum()
    };
    let mut report = ClusterReport::new(nodes.into_iter().map(node).collect(), outcome);
    report.odd = odd;
    report.network = network;
    report.differences = comparisons.iter().filter(differs).map(difference).collect();
    report.findings = findings;
    report.compared = values(&mut comparisons.iter());
    report.equal = values(&mut comparisons.iter().filter(|one| one.agreement == Agreement::Same));
    report.unknown = merged.gaps(&comparisons);
    report
}

/// What a comparison means for the verdict.
fn verdict_of(comparison: &Comparison<'_>, fail_on: FailOn) -> Verdict {
    match comparison.agreement {
        _ if !fail_on.includes(comparison.row.severity) => Verdict::Pass,
        Agreement::Odd => Verdict::Fail,
        Agreement::Same if comparison.unknown.is_empty() => Verdict::Pass,
        Agreement::Split | Agreement::Same => Verdict::Incomplete,
    }
}

/// What a part of the network means for the verdict.
fn verdict_of_part(part: &NetworkPart, fail_on: FailOn) -> Verdict {
    match part.state {
        "bad" if fail_on.includes(Severity::Error) => Verdict::Fail,
        "common" if fail_on.includes(Severity::Warning) => Verdict::Fail,
        "undecided" if fail_on.includes(Severity::Error) => Verdict::Incomplete,
        _ => Verdict::Pass,
    }
}

fn node((name, fate): (String, Fate)) -> ClusterNode {
    let (end, why) = match fate {
        Fate::Ended => ("ended", None),
        Fate::Failed(why) => ("failed", Some(why)),
        Fate::Absent(why) => ("absent", Some(why)),
    };
    ClusterNode { name, end, why }
}

fn difference(comparison: &Comparison<'_>) -> NodeDifference {
    let group = |group: &cluster::Group| NodeGroup { text: group.value.clone(), nodes: group.nodes.clone() };
    NodeDifference {
        id: format!("cluster/{}", comparison.row.id),
        severity: comparison.row.severity,
        value: comparison.value(),
        has_majority: comparison.agreement == Agreement::Odd,
        groups: comparison.groups.iter().map(group).collect(),
        why: comparison.row.why.clone(),
        fix: comparison.fix(),
    }
}

/// Severities whose problems make a node odd. Information concerns no job.
const fn makes_odd(severity: Severity) -> bool {
    matches!(severity, Severity::Error | Severity::Warning)
}

#[cfg(test)]
mod tests;
