//! What PyTorch's watchdog says about the collectives in which ranks wait.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::Regex;

/// The first collective that did not finish, of each rank in each group.
#[derive(Debug, Default)]
pub(super) struct Watchdogs {
    waits: BTreeMap<String, BTreeMap<u32, Wait>>,
    /// The groups that any line names.
    groups: BTreeSet<String>,
}

/// The group of all ranks. Lines of a timeout do not always name their group.
const ALL: &str = "0";

/// A collective in which a rank waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wait {
    sequence: u64,
    operation: String,
    elements_in: String,
    elements_out: String,
}

#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
static NAMED_GROUP: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"\[PG (?:ID )?(\w+) ").expect("a pattern that parses"));

#[expect(clippy::expect_used, reason = "a constant pattern, which a test compiles")]
static TIMEOUT: LazyLock<Regex> = LazyLock::new(|| {
    let pattern = r"\[(?:PG (?:ID )?(?P<group>\w+) .*?)?[Rr]ank (?P<rank>\d+)\].*WorkNCCL\((?:SeqNum=(?P<sequence>\d+), )?OpType=(?P<operation>\w+),(?: NumelIn=(?P<in>\d+), NumelOut=(?P<out>\d+),)?";
    Regex::new(pattern).expect("a pattern that parses")
});

impl Watchdogs {
    /// Adds the collective of a line that reports a timeout.
    pub(super) fn add(&mut self, text: &str, origin: Option<u32>) {
        if let Some(named) = NAMED_GROUP.captures(text) {
            self.groups.insert(named[1].to_owned());
        }
        if !text.contains("collective operation timeout: WorkNCCL(") {
            return;
        }
        let Some(captures) = TIMEOUT.captures(text) else { return };
        let group = |name| captures.name(name).map_or("", |found| found.as_str());
        let Some(rank) = origin.or_else(|| group("rank").parse().ok()) else { return };
        let wait = Wait {
            sequence: group("sequence").parse().unwrap_or_default(),
            operation: group("operation").to_owned(),
            elements_in: group("in").to_owned(),
            elements_out: group("out").to_owned(),
        };
        self.waits.entry(group("group").to_owned()).or_default().entry(rank).or_insert(wait);
    }

    /// The ranks of the job that wait in different collectives, with their collectives. Ranks of different groups may do so: only
    /// where the group of all ranks is the only one that the log names, the difference is a fault.
    pub(super) fn different(&self) -> Option<String> {
        if self.groups.iter().ne([ALL]) {
            return None;
        }
        self.waits.values().find_map(|waits| {
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

    /// Ranks of these that wait in no collective, although others do.
    pub(super) fn silent(&self, ranks: &[u32]) -> Vec<u32> {
        let waiting: BTreeSet<u32> = self.waits.values().flat_map(BTreeMap::keys).copied().collect();
        let silent = ranks.iter().copied().filter(|rank| !waiting.is_empty() && !waiting.contains(rank));
        silent.collect()
    }
}
