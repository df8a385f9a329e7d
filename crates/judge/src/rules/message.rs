//! Messages of rules: text with the names of facts in braces.

use facts::Facts;
use facts::key::{self, Definition, KEYS, Type};
use model::{Fact, Value, size, suggestion};

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
                MessagePart::Fact(key, entry) => match (facts.certain(key), entry) {
                    (Fact::Seen { value: Value::Map(map), .. }, Some(entry)) => {
                        map.get(entry).map_or("unset".to_owned(), ToString::to_string)
                    }
                    (Fact::Seen { value: Value::Int(number), .. }, _) => quantity(key.name, *number),
                    (Fact::Seen { value, .. }, _) => value.to_string(),
                    (Fact::Absent, Some(_)) => "unset".to_owned(),
                    (Fact::Absent, None) => "none".to_owned(),
                    (Fact::Unknown(_), _) => "unknown".to_owned(),
                },
            })
            .collect()
    }
}

/// Formats a number in the unit that reports use: GB/s, seconds, or one that fits the size. The end of a fact's name is
/// the unit of its values.
fn quantity(name: &str, number: i64) -> String {
    let in_thousands = |unit: &str| {
        let tenths = number.saturating_add(50) / 100;
        format!("{}.{} {unit}", tenths / 10, tenths % 10)
    };
    if name.ends_with("_bytes") {
        u64::try_from(number).map_or_else(|_negative| "unlimited".to_owned(), size)
    } else if name.ends_with("_ms") {
        in_thousands("s")
    } else if name.ends_with("_mb_s") {
        in_thousands("GB/s")
    } else if name.ends_with("_gb_s") {
        format!("{number} GB/s")
    } else {
        number.to_string()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_unit_of_reports() {
        for (name, number, expected) in [
            ("run.memlock_bytes", 8 << 20, "8 MiB"),
            ("run.memlock_bytes", -1, "unlimited"),
            ("run.nccl.first_call_ms", 31_316, "31.3 s"),
            ("run.nccl.all_reduce_mb_s", 90_210, "90.2 GB/s"),
            ("run.topology.nvlink_gb_s", 478, "478 GB/s"),
            ("run.nccl.ranks", 1024, "1024"),
        ] {
            assert!(named(name).is_some(), "{name}");
            assert_eq!(quantity(name, number), expected, "{name}");
        }
    }

    #[test]
    fn missing_values_have_a_word() {
        let facts = Facts::default();
        for (message, expected) in [("{torch.path}", "none"), ("{image.env.RANK}", "unset")] {
            assert_eq!(Message::parse(message).unwrap().fill(&facts), expected);
        }
    }
}
