//! Facts and sites of a stored report.

use serde::Deserialize;
use serde_json::Value as Json;

use super::StoredError;
use facts::Facts;
use facts::key::{self, Type};
use model::{Fact, Gap, ImagePath, Site, Value, Version};

/// A fact.
#[derive(Debug, Deserialize)]
#[serde(tag = "state", rename_all = "lowercase")]
pub(super) enum StoredFact {
    Seen { value: Json, at: Vec<StoredSite> },
    Absent,
    Unknown { gap: String },
}

/// A site; the keys that it has decide its kind.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(super) enum StoredSite {
    File { layer: usize, path: String, within: Option<String> },
    Config { config: String, step: Option<String> },
    Probe { probe: String },
    Launch { launch: String, line: Option<usize>, variable: String },
}

impl From<StoredSite> for Site {
    fn from(site: StoredSite) -> Self {
        match site {
            StoredSite::File { layer, path, within } => Self::File { layer, path: ImagePath::printed(&path), within },
            StoredSite::Config { config, .. } => Self::Config(config),
            StoredSite::Probe { probe } => Self::Probe(probe),
            StoredSite::Launch { launch, line, variable } => Self::Launch { file: launch, line, variable },
        }
    }
}

/// Adds a fact. A name that this version does not know is left out: a later version may have added it.
pub(super) fn add(name: &str, stored: StoredFact, facts: &mut Facts) -> Result<(), StoredError> {
    let Some(key) = key::find(name) else { return Ok(()) };
    let fact = match stored {
        StoredFact::Absent => Fact::Absent,
        StoredFact::Unknown { gap } => Fact::Unknown(Gap::new(gap)),
        StoredFact::Seen { value, at } => {
            let value = value_of(value, key.kind).filter(|value| key.admits(value));
            let wrong = || StoredError::Value(format!("facts.{name} is not {}", key.expected()));
            Fact::seen(value.ok_or_else(wrong)?, at.into_iter().map(Site::from))
        }
    };
    facts.insert_value(key, fact);
    Ok(())
}

fn value_of(value: Json, kind: Type) -> Option<Value> {
    match (value, kind) {
        (Json::String(text), Type::Version) => Version::parse(&text).map(Value::Version),
        (Json::String(text), _) => Some(Value::Text(text)),
        (Json::Bool(value), _) => Some(Value::Bool(value)),
        (Json::Number(number), _) => number.as_i64().map(Value::Int),
        (Json::Array(values), _) => {
            values.into_iter().map(|value| value_of(value, Type::Text)).collect::<Option<_>>().map(Value::List)
        }
        (Json::Object(entries), _) => {
            let entries = entries.into_iter().map(|(name, value)| Some((name, value_of(value, Type::Text)?)));
            entries.collect::<Option<_>>().map(Value::Map)
        }
        (Json::Null, _) => None,
    }
}
