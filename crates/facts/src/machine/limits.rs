//! Resource limits of this process, which its children inherit.

use serde::{Deserialize, Serialize};

use model::Fact;

use super::HostTree;

/// Resource limits of a process (getrlimit(2)).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ResourceLimits {
    /// Bytes of locked memory.
    pub memlock: Fact<Limit>,
    /// Open files.
    pub nofile: Fact<Limit>,
    /// Bytes of stack.
    pub stack: Fact<Limit>,
}

/// A resource limit; -1 is unlimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Limit {
    /// The enforced limit.
    pub soft: i64,
    /// The ceiling up to which the process may raise the soft limit.
    pub hard: i64,
}

impl ResourceLimits {
    pub(super) fn collect(tree: &HostTree) -> Self {
        Self::of(tree, "self")
    }

    /// Reads the limits of a process by its ID.
    pub(super) fn of(tree: &HostTree, process: &str) -> Self {
        let table = tree.text(&format!("/proc/{process}/limits"));
        let limit = |name: &str| table.as_ref().and_then(|text, _| limit(text, name).into());
        Self { memlock: limit("Max locked memory"), nofile: limit("Max open files"), stack: limit("Max stack size") }
    }
}

/// Parses `Max locked memory         8388608              unlimited            bytes`.
fn limit(table: &str, name: &str) -> Option<Limit> {
    let mut words = table.lines().find_map(|line| line.strip_prefix(name))?.split_whitespace();
    let mut next = || match words.next()? {
        "unlimited" => Some(-1),
        number => number.parse().ok(),
    };
    Some(Limit { soft: next()?, hard: next()? })
}
