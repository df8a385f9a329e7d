//! What PyTorch's watchdog says about the collectives in which ranks wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// The first collective that did not finish, of each rank in each group.
#[derive(Debug, Default)]
pub(super) struct Watchdogs {
    waits: BTreeMap<String, BTreeMap<u32, Wait>>,
}

/// A collective in which a rank waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    sequence: u64,
    operation: String,
    elements_in: String,
    elements_out: String,
}

#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
static TIMEOUT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\[(?:PG (?:ID )?(?P<group>\w+) .*?)?[Rr]ank (?P<rank>\d+)\].*WorkNCCL\((?:SeqNum|OpType)=(?P<first>\w+), (?:OpType|SeqNum)=(?P<second>\w+),(?: NumelIn=(?P<in>\d+), NumelOut=(?P<out>\d+),)?";
    Regex::new(pattern).expect("a pattern that parses")
});

impl Watchdogs {
    /// Adds the collective of a line that reports a timeout.
    pub(super) fn add(&mut self, text: &str, origin: Option<u32>) {
        if !text.contains("WorkNCCL(") {
            return;
        }
        let Some(captures) = TIMEOUT.captures(text) else { return };
        let group = |name| captures.name(name).map_or("", |found| found.as_str());
        let Some(rank) = origin.or_else(|| group("rank").parse().ok()) else { return };
        let (first, second) = (group("first"), group("second"));
        let (sequence, operation) =
            if first.starts_with(|byte: char| byte.is_ascii_digit()) { (first, second) } else { (second, first) };
        let wait = Wait {
            sequence: sequence.parse().unwrap_or_default(),
            operation: operation.to_owned(),
            elements_in: group("in").to_owned(),
            elements_out: group("out").to_owned(),
        };
        self.waits.entry(group("group").to_owned()).or_default().entry(rank).or_insert(wait);
    }

    /// Ranks of the group that waits for different collectives, each with its collective; empty if all wait in the same one.
    pub(super) fn different(&self) -> Option<String> {
        self.waits.iter().filter(|(group, _)| is_of_all(group)).find_map(|(_, waits)| {
            let distinct: BTreeSet<&Wait> = waits.values().collect();
            (distinct.len() > 1).then(|| {
                let of = |wait: &&Wait| {
                    let ranks: Vec<u32> = waits.iter().filter(|(_, own)| own == wait).map(|(rank, _)| *rank).collect();
                    let elements = if wait.elements_in.is_empty() {
                        String::new()
                    } else {
                        format!(" of {} elements", wait.elements_in)
                    };
                    format!("{} in {} {}{elements}", super::ranks(&ranks), wait.operation, wait.sequence)
                };
                distinct.iter().map(of).collect::<Vec<_>>().join("; ")
            })
        })
    }
}

impl Watchdogs {
    /// Ranks of these that wait in no collective, although others do.
    pub(super) fn silent(&self, ranks: &[u32]) -> Vec<u32> {
        let waiting: BTreeSet<u32> = self.waits.values().flat_map(BTreeMap::keys).copied().collect();
        let silent = ranks.iter().copied().filter(|rank| !waiting.is_empty() && !waiting.contains(rank));
        silent.collect()
    }
}

/// Returns true for the group of all ranks; releases before 2.4 do not name the group.
fn is_of_all(group: &str) -> bool {
    group.is_empty() || group == "0"
}
