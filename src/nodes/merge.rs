//! Findings of the rules on several nodes, each once.

use std::collections::{BTreeMap, BTreeSet};

use cluster::Comparison;
use judge::rules::{Finding, Judgement, Outcome};
use report::{NodeFinding, NodeGap, NodeGroup};

use crate::check::Assessment;

/// The judgements of several nodes.
#[derive(Debug, Default)]
pub(super) struct Merged {
    findings: Vec<NodeFinding>,
    gaps: Gaps,
}

/// What is not known, by the reason.
type Gaps = BTreeMap<String, NodeGap>;

impl Merged {
    /// Adds the judgements of a node. What follows from another finding is not repeated.
    pub(super) fn add(&mut self, node: &str, assessment: &Assessment<'_>) {
        for judgement in assessment.judgements.iter().flatten() {
            match &judgement.outcome {
                Outcome::Fail(finding) => self.add_finding(node, judgement, finding),
                Outcome::Unknown(gaps) => {
                    for why in gaps.iter().map(|gap| &gap.why) {
                        let gap = gap(&mut self.gaps, why, [node]);
                        push_new(&mut gap.rules, &judgement.rule.id);
                    }
                }
                Outcome::Pass | Outcome::NotApplicable | Outcome::Waived(_) | Outcome::Consequence(_) => {}
            }
        }
    }

    fn add_finding(&mut self, node: &str, judgement: &Judgement<'_>, finding: &Finding) {
        let rule = judgement.rule;
        let place =
            |all: &[NodeFinding]| all.iter().position(|one| (&one.rule, one.owner) == (&rule.id, judgement.owner));
        let index = place(&self.findings).unwrap_or_else(|| {
            self.findings.push(NodeFinding {
                rule: rule.id.clone(),
                severity: rule.severity,
                owner: judgement.owner,
                is_everywhere: false,
                groups: Vec::new(),
                why: rule.why.clone(),
                fixes: Vec::new(),
            });
            self.findings.len() - 1
        });
        let Some(merged) = self.findings.get_mut(index) else { return };
        push_new(&mut merged.fixes, &finding.fix);
        match merged.groups.iter_mut().find(|group| group.text == finding.message) {
            Some(group) => group.nodes.push(node.to_owned()),
            None => merged.groups.push(NodeGroup { text: finding.message.clone(), nodes: vec![node.to_owned()] }),
        }
    }

    /// The findings, the worst first, and of those with one severity the most common.
    pub(super) fn findings(&self, judged: usize) -> Vec<NodeFinding> {
        let mut findings = self.findings.clone();
        for finding in &mut findings {
            finding.is_everywhere = nodes_of(finding).len() == judged;
        }
        let order = |finding: &NodeFinding| (finding.severity, nodes_of(finding).len());
        findings.sort_by_key(|finding| std::cmp::Reverse(order(finding)));
        findings
    }

    /// What is not known: rules without an answer, and values that could not be compared.
    pub(super) fn gaps(mut self, comparisons: &[Comparison<'_>]) -> Vec<NodeGap> {
        for comparison in comparisons {
            for group in &comparison.unknown {
                let gap = gap(&mut self.gaps, &group.value, group.nodes.iter().map(String::as_str));
                push_new(&mut gap.values, &comparison.value());
            }
        }
        self.gaps.into_values().collect()
    }
}

/// Names of the nodes that have a problem.
pub(super) fn nodes_of(finding: &NodeFinding) -> BTreeSet<&str> {
    finding.groups.iter().flat_map(|group| &group.nodes).map(String::as_str).collect()
}

/// The entry of a reason, with these nodes.
fn gap<'g, 'n>(gaps: &'g mut Gaps, why: &str, nodes: impl IntoIterator<Item = &'n str>) -> &'g mut NodeGap {
    let empty = || NodeGap { why: why.to_owned(), nodes: Vec::new(), values: Vec::new(), rules: Vec::new() };
    let gap = gaps.entry(why.to_owned()).or_insert_with(empty);
    nodes.into_iter().for_each(|node| push_new(&mut gap.nodes, node));
    gap
}

fn push_new(texts: &mut Vec<String>, text: &str) {
    if !texts.iter().any(|other| other == text) {
        texts.push(text.to_owned());
    }
}
