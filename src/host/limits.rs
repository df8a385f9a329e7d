//! Limits of this process, which what it starts inherits.

use serde::{Deserialize, Serialize};

use crate::model::Fact;

use super::HostTree;

/// Limits of a process (getrlimit(2)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct ResourceLimits {
    /// Bytes of locked memory.
    pub memlock: Fact<Limit>,
    /// Open files.
    pub nofile: Fact<Limit>,
    /// Bytes of the stack.
    pub stack: Fact<Limit>,
}

/// A limit; -1 is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Limit {
    /// The one that counts.
    pub soft: i64,
    /// Up to where the process may raise it.
    pub hard: i64,
}

impl ResourceLimits {
    pub(super) fn collect(tree: &HostTree) -> Self {
        Self::of(tree, "self")
    }

    /// Those of a process by its number.
    pub(super) fn of(tree: &HostTree, process: &str) -> Self {
        let table = tree.text(&format!("/proc/{process}/limits"));
        let limit = |name: &str| table.as_ref().and_then(|text, _| limit(text, name).into());
        Self { memlock: limit("Max locked memory"), nofile: limit("Max open files"), stack: limit("Max stack size") }
    }
}

/// `Max locked memory         8388608              unlimited            bytes`
fn limit(table: &str, name: &str) -> Option<Limit> {
    let mut words = table.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut next = || match words.next()? {
        "unlimited" => Some(-1),
        number => number.parse().ok(),
    };
    Some(Limit { soft: next()?, hard: next()? })
}
