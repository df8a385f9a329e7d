//! The form of a rule's file.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::facts::Facts;
use crate::facts::key::{self, Type};
use crate::model::{Fact, Gap, Owner, Severity, Value, Version};

use super::expression::Expression;
use super::message::Message;
use super::{Evidence, Rule};

/// A rule's file that is no rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("rule {file}: {what}")]
pub struct RuleError {
    /// The file, by its path below the rules folder.
    pub file: String,
    /// What is wrong in it, where.
    pub what: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    id: String,
    title: String,
    severity: Severity,
    /// Whose a finding is; the image's if not said.
    #[serde(default)]
    owner: Owner,
    since: String,
    /// CEL: when false, the rule does not apply.
    applies: Option<String>,
    /// CEL: true is a pass, false is a finding.
    check: String,
    message: String,
    /// Facts whose sites a finding shows.
    #[serde(default)]
    evidence: Vec<String>,
    why: String,
    fix: String,
    references: Vec<String>,
    examples: Examples,
}

/// Facts for which a rule's answer is known. They are its documentation and its tests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Examples {
    /// The rule passes.
    pub pass: Vec<Example>,
    /// The rule fails.
    pub fail: Vec<Example>,
    /// The rule does not apply.
    #[serde(default)]
    pub not_applicable: Vec<Example>,
    /// The rule cannot tell.
    #[serde(default)]
    pub unknown: Vec<Example>,
}

/// The facts of one example; those that are not named are absent.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Example {
    #[serde(default)]
    facts: BTreeMap<String, serde_json::Value>,
    /// Facts that could not be determined.
    #[serde(default)]
    unknown: Vec<String>,
    /// The message that the finding shows.
    pub message: Option<String>,
}

impl Example {
    /// The facts, typed by the contract.
    pub fn facts(&self) -> Result<Facts, String> {
        let mut facts = Facts::default();
        for (name, value) in &self.facts {
            let key = key::find(name).ok_or_else(|| format!("there is no fact '{name}'"))?;
            let value =
                typed(key.kind, value).ok_or_else(|| format!("{name}: {value} is not of its type, {:?}", key.kind))?;
            facts.insert(key, Fact::seen(value, []));
        }
        for name in &self.unknown {
            let key = key::find(name).ok_or_else(|| format!("there is no fact '{name}'"))?;
            facts.insert::<Value>(key, Fact::Unknown(Gap::new(format!("{name} was not determined"))));
        }
        Ok(facts)
    }
}

fn typed(kind: Type, value: &serde_json::Value) -> Option<Value> {
    use serde_json::Value as Json;
    let plain = |value: &Json| match value {
        Json::Bool(value) => Some(Value::Bool(*value)),
        Json::Number(value) => value.as_i64().map(Value::Int),
        Json::String(value) => Some(Value::Text(value.clone())),
        _ => None,
    };
    let map = |value: &Json| -> Option<Value> {
        let entries = value.as_object()?.iter().map(|(name, value)| Some((name.clone(), plain(value)?)));
        entries.collect::<Option<BTreeMap<_, _>>>().map(Value::Map)
    };
    let texts = |value: &Json| value.as_array()?.iter().map(plain).collect::<Option<Vec<_>>>().map(Value::List);
    let group = |value: &Json| -> Option<Value> {
        let lists = value.as_object()?.iter().map(|(name, value)| Some((name.clone(), texts(value)?)));
        lists.collect::<Option<BTreeMap<_, _>>>().map(Value::Map)
    };
    let groups = || -> Option<Value> {
        let groups = value.as_object()?.iter().map(|(name, value)| Some((name.clone(), group(value)?)));
        groups.collect::<Option<BTreeMap<_, _>>>().map(Value::Map)
    };
    let list = |each: &dyn Fn(&Json) -> Option<Value>| {
        value.as_array()?.iter().map(each).collect::<Option<Vec<_>>>().map(Value::List)
    };
    let value = match kind {
        Type::Version => Value::Version(Version::parse(value.as_str()?)?),
        Type::Bool | Type::Text | Type::Number => plain(value)?,
        Type::Texts | Type::Numbers => list(&plain)?,
        Type::Map => map(value)?,
        Type::Records => list(&map)?,
        Type::Groups => groups()?,
    };
    kind.admits(&value).then_some(value)
}

/// Reads one rule. `id` is what its file's name says it must be.
pub(super) fn parse(id: &str, text: &str) -> Result<Rule, RuleError> {
    let error = |what: String| RuleError { file: format!("{id}.yaml"), what };
    let document: Document = serde_yaml::from_str(text).map_err(|what| error(what.to_string()))?;
    if document.id != id {
        return Err(error(format!("its id is {}, its file's name says {id}", document.id)));
    }
    let compile =
        |name: &str, source: &str| Expression::compile(source).map_err(|what| error(format!("{name}: {what}")));
    let evidence = document
        .evidence
        .iter()
        .map(|name| Evidence::parse(name).ok_or_else(|| error(format!("evidence: there is no fact '{name}'"))));
    Ok(Rule {
        applies: document.applies.as_deref().map(|source| compile("applies", source)).transpose()?,
        check: compile("check", &document.check)?,
        message: Message::parse(document.message.trim_end()).map_err(|what| error(format!("message: {what}")))?,
        evidence: evidence.collect::<Result<_, _>>()?,
        id: document.id,
        title: document.title,
        severity: document.severity,
        owner: document.owner,
        since: document.since,
        why: document.why.trim_end().to_owned(),
        fix: document.fix.trim_end().to_owned(),
        references: document.references,
        examples: document.examples,
    })
}
