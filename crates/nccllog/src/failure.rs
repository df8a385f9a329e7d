//! What ends a job: the table `failures.yaml`.

use std::sync::LazyLock;

use regex::RegexSet;
use serde::Deserialize;

use super::table::Table;

/// The kind of a connection to an address that only the host of the address reaches.
pub(super) const ADDRESS: &str = "address";
/// The kind of an exception that no row of the table has.
pub(super) const EXCEPTION: &str = "python";
/// The kind of a warning of NCCL that no row of the table has.
pub(super) const WARNING: &str = "warning";

/// What a failure says of its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// An error of the process itself, which no other process causes.
    Own,
    /// A launcher's report of a process that was killed, which is printed after what followed from it.
    Reported,
    /// A connection between two processes fails.
    Network,
    /// The process waits for another one, or loses it.
    Waiting,
    /// Matters only where something failed: a warning, or a connection that is tried again.
    Doubtful,
    /// Says that something failed, and not what.
    Summary,
    /// A warning that does not end a job.
    Harmless,
}

/// A failure in a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The kind, as in the table, or `python` for an exception and `warning` for a warning of NCCL that the table lacks.
    pub kind: String,
    /// The message, without prefixes.
    pub message: String,
    /// The rank, if the log says it.
    pub rank: Option<u32>,
    /// The host, if the log says it.
    pub host: Option<String>,
    /// The log, and the number of the line in it, from 1; `None` if several lines show the failure together.
    pub at: Option<(String, u64)>,
    /// Ranks that report a failure of the same kind.
    pub more_ranks: Vec<u32>,
}

/// A row of the table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailureRow {
    pub(super) kind: String,
    pub(super) role: Role,
    regex: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    examples: Vec<String>,
    #[expect(dead_code, reason = "for readers of the table")]
    source: String,
}

pub(super) static ROWS: Table<Vec<FailureRow>> =
    Table::new(include_str!("../tables/failures.yaml"), |rows| compile(rows).map(drop));

#[expect(clippy::expect_used, reason = "a test compiles those of the crate, and Table those of other tables")]
static SET: LazyLock<RegexSet> = LazyLock::new(|| compile(&ROWS).expect("patterns that parse"));

fn compile(rows: &[FailureRow]) -> Result<RegexSet, regex::Error> {
    RegexSet::new(rows.iter().map(|row| &row.regex))
}

/// The row of a message.
pub(super) fn failure_of(message: &str) -> Option<&'static FailureRow> {
    ROWS.get(SET.matches(message).iter().next()?)
}

/// The kinds of failures that can be causes.
pub fn failure_kinds() -> impl Iterator<Item = &'static str> {
    let rows = ROWS.iter().filter(|row| row.role != Role::Harmless).map(|row| &*row.kind);
    rows.chain([ADDRESS, EXCEPTION, WARNING])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_finds_its_examples() {
        for row in &*ROWS {
            for example in &row.examples {
                let found = failure_of(example).map(|row| &row.kind);
                assert_eq!(found, Some(&row.kind), "{example}");
            }
        }
    }
}
