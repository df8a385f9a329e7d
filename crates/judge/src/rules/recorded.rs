//! Rules as stored reports have them: the texts without the conditions.

use model::document::{Document, DocumentError};
use model::{Owner, Severity};

use super::Rule;

/// A rule without anything of its own.
const EMPTY: &str = "id: recorded/rule\ntitle: title\nseverity: info\ncheck: 'true'\nmessage: none\nwhy: none\nfix: none\n\
                     references: []\nexamples: {pass: [], fail: []}\n";

/// The texts of a rule in a report.
#[derive(Clone, Debug)]
pub struct RecordedRule {
    /// Id of the rule.
    pub id: String,
    /// The problem that the rule detects.
    pub title: String,
    /// Severity of a failure.
    pub severity: Severity,
    /// The party that has to fix a failure.
    pub owner: Owner,
    /// Explanation of why the problem matters.
    pub why: String,
    /// How to fix it.
    pub fix: String,
    /// URLs of the sources.
    pub references: Vec<String>,
}

impl RecordedRule {
    /// The rule with these texts. It judges nothing: an image that it is asked about passes.
    pub fn rule(self) -> Result<Rule, DocumentError> {
        let empty = Rule::parse("recorded/rule", Document { name: "a recorded rule", text: EMPTY })?;
        let Self { id, title, severity, owner, why, fix, references } = self;
        Ok(Rule { id, title, severity, owner, why, fix, references, ..empty })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recorded_rule_has_its_texts() {
        let recorded = RecordedRule {
            id: "my/{rule}".to_owned(),
            title: "a title: {braces}".to_owned(),
            severity: Severity::Error,
            owner: Owner::Host,
            why: "why".to_owned(),
            fix: "set {x}".to_owned(),
            references: vec!["https://example.org".to_owned()],
        };
        let rule = recorded.rule().unwrap();
        assert_eq!((&*rule.id, &*rule.title, &*rule.fix), ("my/{rule}", "a title: {braces}", "set {x}"));
        assert_eq!((rule.severity, rule.owner), (Severity::Error, Owner::Host));
    }
}
