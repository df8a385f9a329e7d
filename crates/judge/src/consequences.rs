//! Consequences: findings and missing answers that follow from a finding of another rule, which names them in
//! `explains`. Each is shown below its cause, because repairing the cause settles it.

use super::policy::is_rule;
use super::rules::{Consequence, Judgement, Outcome, Problem};

/// Turns every problem that another failed rule explains into a consequence of that rule. If the cause is itself a
/// consequence, both belong to the first cause.
pub fn fold(judgements: &mut [Judgement<'_>]) {
    let roots: Vec<Option<String>> = (0..judgements.len()).map(|index| root(index, judgements)).collect();
    for (judgement, cause) in judgements.iter_mut().zip(roots) {
        let Some(cause) = cause else { continue };
        let problem = match &judgement.outcome {
            Outcome::Fail(finding) => Problem::Failure(finding.clone()),
            Outcome::Unknown(gaps) => Problem::Unknown(gaps.clone()),
            _ => continue,
        };
        judgement.outcome = Outcome::Consequence(Consequence { problem, cause });
    }
}

/// Id of the rule at the beginning of the chain of causes of this judgement; `None` if no rule explains it.
fn root(index: usize, judgements: &[Judgement<'_>]) -> Option<String> {
    let mut chain = vec![index];
    while let Some(cause) = chain.last().and_then(|last| cause(*last, judgements)) {
        // Two rules that explain each other have no cause.
        if chain.contains(&cause) {
            return None;
        }
        chain.push(cause);
    }
    let first = chain.last().filter(|first| **first != index)?;
    Some(judgements.get(*first)?.rule.id.clone())
}

/// Index of the first failed rule that explains this problem.
fn cause(index: usize, judgements: &[Judgement<'_>]) -> Option<usize> {
    let problem = judgements.get(index).filter(|judgement| is_problem(&judgement.outcome))?;
    judgements.iter().enumerate().position(|(other, judgement)| {
        other != index
            && matches!(judgement.outcome, Outcome::Fail(_))
            && judgement.rule.explains.iter().any(|pattern| is_rule(pattern, &problem.rule.id))
    })
}

const fn is_problem(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fail(_) | Outcome::Unknown(_))
}

#[cfg(test)]
mod tests {
    use crate::shipped::shipped;

    use super::*;
    use crate::rules::{Finding, ImageNames, RuleSet, judge};
    use facts::Facts;
    use model::Gap;

    fn rules(explains: &[(&str, &str)]) -> RuleSet {
        let text = |(id, explains): &(&str, &str)| {
            let text = format!(
                "id: {id}\ntitle: t\nseverity: error\nsince: '0.1'\ncheck: 'true'\nmessage: m\nwhy: w\nfix: f\n\
                 explains: [{explains}]\nreferences: [https://example.org]\nexamples: {{pass: [], fail: []}}\n"
            );
            (id.to_string(), text)
        };
        let documents: Vec<_> = explains.iter().map(text).collect();
        let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
        RuleSet::from_yaml(&documents).unwrap()
    }

    /// The cause of each rule's problem, if it has one; `failed` lists the rules that fail, the others are unknown.
    fn causes(explains: &[(&str, &str)], failed: &[&str]) -> Vec<Option<String>> {
        let rules = rules(explains);
        let mut judgements = judge(&rules, &Facts::default(), &ImageNames::default());
        for judgement in &mut judgements {
            let finding = Finding { message: "m".to_owned(), at: vec![], fix: String::new(), note: None };
            judgement.outcome = if failed.contains(&&*judgement.rule.id) {
                Outcome::Fail(finding)
            } else {
                Outcome::Unknown(vec![Gap::new("why")])
            };
        }
        fold(&mut judgements);
        let cause = |judgement: &Judgement<'_>| match &judgement.outcome {
            Outcome::Consequence(consequence) => Some(consequence.cause.clone()),
            _ => None,
        };
        judgements.iter().map(cause).collect()
    }

    #[test]
    fn a_consequence_belongs_to_the_first_cause() {
        let rules = [("a/first", "b/second"), ("b/second", "c/*"), ("c/third", ""), ("d/other", "")];
        let first = Some("a/first".to_owned());
        assert_eq!(causes(&rules, &["a/first", "b/second", "c/third"]), [None, first.clone(), first.clone(), None]);
        let second = Some("b/second".to_owned());
        assert_eq!(causes(&rules, &["b/second"]), [None, None, second, None], "missing answers follow as well");
        assert_eq!(causes(&rules, &["c/third"]), [None, None, None, None], "only a failed rule explains others");
    }

    #[test]
    fn rules_that_explain_each_other_stay_findings() {
        let rules = [("a/first", "b/second"), ("b/second", "a/first")];
        assert_eq!(causes(&rules, &["a/first", "b/second"]), [None, None]);
    }

    /// An id that no rule has would never match.
    #[test]
    fn shipped_rules_explain_shipped_rules() {
        let rules = RuleSet::builtin(shipped()).unwrap();
        for rule in rules.iter() {
            for pattern in &rule.explains {
                let is_known = rules.iter().any(|other| is_rule(pattern, &other.id));
                assert!(is_known && *pattern != rule.id, "{}: explains {pattern}", rule.id);
            }
        }
    }
}
