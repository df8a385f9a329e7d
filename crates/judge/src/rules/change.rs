//! The mechanical part of a fix, as a change of a Dockerfile.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;

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
