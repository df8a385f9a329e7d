//! Groups the judgements of one image on several hosts: hosts with the same answer share one entry.

use super::rules::Judgement;

/// A rule's answer, and the hosts on which the rule gives it.
#[derive(Debug)]
pub struct SharedJudgement<'a> {
    /// The judgement for the first of these hosts; the others have the same outcome and owner.
    pub judgement: &'a Judgement<'a>,
    /// Indexes of the hosts, ascending. Empty if the answer is the same on every host.
    pub hosts: Vec<usize>,
}

/// Groups judgements by their outcome, in the order of the rules. `judged` holds the judgements for each host; all
/// hosts must have been judged by the same rules.
pub fn across_hosts<'a>(judged: &[&'a [Judgement<'a>]]) -> Vec<SharedJudgement<'a>> {
    let rules = judged.iter().map(|judgements| judgements.len()).max().unwrap_or(0);
    (0..rules).flat_map(|rule| answers(rule, judged)).collect()
}

fn answers<'a>(rule: usize, judged: &[&'a [Judgement<'a>]]) -> Vec<SharedJudgement<'a>> {
    let mut groups: Vec<SharedJudgement<'a>> = Vec::new();
    for (host, judgements) in judged.iter().enumerate() {
        let Some(judgement) = judgements.get(rule) else { continue };
        let parts = |judgement: &'a Judgement<'a>| (&judgement.outcome, judgement.owner);
        match groups.iter_mut().find(|group| parts(group.judgement) == parts(judgement)) {
            Some(group) => group.hosts.push(host),
            None => groups.push(SharedJudgement { judgement, hosts: vec![host] }),
        }
    }
    if let [everywhere] = groups.as_mut_slice() {
        everywhere.hosts.clear();
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{ImageNames, Outcome, RuleSet, judge};
    use facts::Facts;

    #[test]
    fn hosts_with_one_outcome_share_an_entry() {
        let rule = |id: &str| {
            format!(
                "id: {id}\ntitle: t\nseverity: error\nowner: image\nsince: '0.1'\ncheck: 'true'\nmessage: m\nwhy: w\nfix: f\n\
                 references: [https://example.org]\nexamples: {{pass: [], fail: []}}\n"
            )
        };
        let first = rule("a/first");
        let second = rule("a/second");
        let rules = RuleSet::from_yaml(&[("a/first", &first), ("a/second", &second)]).unwrap();
        let facts = Facts::default();
        let passed = judge(&rules, &facts, &ImageNames::default());
        let mut other = judge(&rules, &facts, &ImageNames::default());
        other[1].outcome = Outcome::NotApplicable;

        let shared = across_hosts(&[&passed, &other, &passed]);
        let entries: Vec<_> = shared
            .iter()
            .map(|shared| (&*shared.judgement.rule.id, &shared.judgement.outcome, &*shared.hosts))
            .collect();
        assert_eq!(
            entries,
            [
                ("a/first", &Outcome::Pass, &[][..]),
                ("a/second", &Outcome::Pass, &[0, 2]),
                ("a/second", &Outcome::NotApplicable, &[1]),
            ]
        );
        assert!(across_hosts(&[]).is_empty());
    }
}
