//! Messages of rules: text with the names of facts in braces.

use crate::document::suggestion;
use crate::facts::Facts;
use crate::facts::key::{self, Definition, KEYS, Type};
use crate::model::{Fact, Value};

use super::condition::ConditionError;

/// A parsed message.
#[derive(Debug)]
pub(super) struct Message(Vec<MessagePart>);

#[derive(Debug)]
enum MessagePart {
    Text(String),
    /// A fact, or one entry of a map fact: `{image.env.NCCL_DEBUG}`.
    Fact(&'static Definition, Option<String>),
}

impl Message {
    /// Parses a message and checks that every fact in it exists.
    pub(super) fn parse(text: &str) -> Result<Self, ConditionError> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, place)) = rest.split_once('{') {
            let start = text.len() - place.len() - 1;
            let wrong =
                |length: usize, what: String, help| ConditionError { part: start..start + length + 1, what, help };
            let (name, after) = place.split_once('}').ok_or_else(|| {
                wrong(1, "this brace is not closed".to_owned(), Some("write {name.of.a.fact}".to_owned()))
            })?;
            parts.push(MessagePart::Text(before.to_owned()));
            let (key, entry) = named(name).ok_or_else(|| {
                let help = suggestion(name, KEYS.iter().map(|key| key.name));
                wrong(name.len().max(1), format!("there is no fact '{name}'"), help)
            })?;
            parts.push(MessagePart::Fact(key, entry));
            rest = after;
        }
        parts.push(MessagePart::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    /// Appends text literally, including any braces.
    pub(super) fn and_text(mut self, text: &str) -> Self {
        self.0.push(MessagePart::Text(text.to_owned()));
        self
    }

    pub(super) fn fill(&self, facts: &Facts) -> String {
        self.0
            .iter()
            .map(|part| match part {
                MessagePart::Text(text) => text.clone(),
                MessagePart::Fact(key, entry) => match (facts.view(key), entry) {
                    (Fact::Seen { value: Value::Map(map), .. }, Some(entry)) => {
                        map.get(entry).map_or("nothing".to_owned(), ToString::to_string)
                    }
                    (Fact::Seen { value, .. }, _) => value.to_string(),
                    (Fact::Absent, _) => "nothing".to_owned(),
                    (Fact::Unknown(_), _) => "unknown".to_owned(),
                },
            })
            .collect()
    }
}

/// Finds a fact by its name, or a map fact and the name of one of its entries.
pub(super) fn named(name: &str) -> Option<(&'static Definition, Option<String>)> {
    if let Some(key) = key::find(name) {
        return Some((key, None));
    }
    let (name, entry) = name.rsplit_once('.')?;
    let key = key::find(name).filter(|key| key.kind == Type::Map)?;
    Some((key, Some(entry.to_owned())))
}
