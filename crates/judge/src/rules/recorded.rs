//! Rules as stored reports have them: the texts without the conditions.

use model::document::{Document, DocumentError};

use super::Rule;

/// A rule without anything of its own.
const EMPTY: &str = "id: recorded/rule\ntitle: title\nseverity: info\ncheck: 'true'\nmessage: none\nwhy: none\nfix: none\n\
                     references: []\nexamples: {pass: [], fail: []}\n";

impl Rule {
    /// A rule whose texts a report gives. It judges nothing: an image that it is asked about passes.
    pub fn without_conditions() -> Result<Self, DocumentError> {
        Self::parse("recorded/rule", Document { name: "a recorded rule", text: EMPTY })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_without_conditions_can_be_made() {
        assert_eq!(Rule::without_conditions().unwrap().id, "recorded/rule");
    }
}
