//! Messages of rules: text with facts in braces.

use crate::facts::Facts;
use crate::facts::key::{self, Key};
use crate::model::{Fact, Value};

/// A message with its places.
#[derive(Debug)]
pub(super) struct Message(Vec<Part>);

#[derive(Debug)]
enum Part {
    Text(String),
    /// A fact, or one entry of a fact that is a map: `{image.env.NCCL_DEBUG}`.
    Fact(&'static Key, Option<String>),
}

impl Message {
    /// Takes a message apart, and makes sure that every fact in it exists.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some((before, place)) = rest.split_once('{') {
            let (name, after) = place.split_once('}').ok_or("a brace is not closed")?;
            parts.push(Part::Text(before.to_owned()));
            let entry = || {
                let (name, entry) = name.rsplit_once('.')?;
                Some((key::find(name)?, Some(entry.to_owned())))
            };
            let (key, entry) = key::find(name)
                .map(|key| (key, None))
                .or_else(entry)
                .ok_or_else(|| format!("there is no fact '{name}'"))?;
            parts.push(Part::Fact(key, entry));
            rest = after;
        }
        parts.push(Part::Text(rest.to_owned()));
        Ok(Self(parts))
    }

    pub(super) fn fill(&self, facts: &Facts) -> String {
        self.0
            .iter()
            .map(|part| match part {
                Part::Text(text) => text.clone(),
                Part::Fact(key, entry) => match (facts.get(key.name), entry) {
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
