//! The mechanical part of a fix, as a change of a Dockerfile or of a launch file.

use std::collections::BTreeMap;

use facts::Facts;
use model::Value;
use regex::Regex;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value as Json};

use super::message::named;

/// What a Dockerfile needs so that a rule no longer fails.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RuleChange {
    /// True to remove the variables whose settings the finding shows.
    #[serde(default)]
    pub unset: bool,
    /// Variables with the values that they get.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// A variable that lists folders, from which the folder goes that causes the finding.
    pub folder_of: Option<String>,
    /// True to add the first RUN instruction of the fix, or to give a build argument the default of its first ARG instruction.
    #[serde(default)]
    pub run: bool,
}

/// What a launch file needs so that a rule no longer fails, in each form of such files. A form without it has no edit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleEdit {
    /// Options of `docker run`. One with {name.of.a.fact} stands for as many as the fact has values.
    #[serde(default)]
    pub docker: Vec<String>,
    /// Options of `srun`.
    #[serde(default)]
    pub scheduler: Vec<String>,
    /// Keys of the service in a Compose file; null stands for a key that must be absent.
    #[serde(default)]
    pub compose: Map<String, Json>,
    /// Keys of the container in Kubernetes.
    #[serde(default)]
    pub container: Map<String, Json>,
    /// Keys of the pod in Kubernetes.
    #[serde(default)]
    pub pod: Map<String, Json>,
    /// What is replaced in the part of any file that starts the container.
    pub replace: Option<RuleReplacement>,
}

/// A text that is replaced. The name of a fact in braces, one in each text, stands for its value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleReplacement {
    /// A regular expression, whose first group is replaced wherever it matches.
    pub find: String,
    /// What replaces it.
    pub by: String,
}

impl RuleEdit {
    /// Checks that its facts exist, and that its regular expression is one.
    pub(super) fn check(&self) -> Result<(), String> {
        let replaced = self.replace.iter().flat_map(|replace| [&replace.find, &replace.by]);
        for (_, name, _) in self.docker.iter().chain(replaced).filter_map(|text| place(text)) {
            named(name).ok_or_else(|| format!("unknown fact '{name}'"))?;
        }
        let find = self.replace.as_ref().map(|replace| match place(&replace.find) {
            Some((before, _, after)) => format!("{before}0{after}"),
            None => replace.find.clone(),
        });
        find.map_or(Ok(()), |find| Regex::new(&find).map(|_| ()).map_err(|error| error.to_string()))
    }

    /// The edit with the values of facts. What names a fact without a value is left out.
    #[must_use]
    pub fn filled(&self, facts: &Facts) -> Self {
        let single = |text: &str| filled(text, facts).into_iter().next();
        let replace = self
            .replace
            .as_ref()
            .and_then(|replace| Some(RuleReplacement { find: single(&replace.find)?, by: single(&replace.by)? }));
        Self { docker: self.docker.iter().flat_map(|option| filled(option, facts)).collect(), replace, ..self.clone() }
    }
}

/// The name of a fact in a text, with what is before and behind it.
fn place(text: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = text.split_once('{')?;
    let (name, after) = rest.split_once('}')?;
    Some((before, name, after))
}

/// A text with the value of the fact that it names, once for each value of a list.
fn filled(text: &str, facts: &Facts) -> Vec<String> {
    let Some((before, name, after)) = place(text) else { return vec![text.to_owned()] };
    let values = match named(name).and_then(|(key, _)| facts.certain(key).value().cloned()) {
        Some(Value::List(values)) => values,
        value => value.into_iter().collect(),
    };
    values.iter().map(|value| format!("{before}{value}{after}")).collect()
}
