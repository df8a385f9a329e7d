//! Compares what nodes have, and names those that differ from most.

use std::collections::{BTreeMap, BTreeSet};

use probe::recording::Recording;

use super::reading::{self, Reading, Readings};
use super::table::{Row, rows};

/// A node, and what it reported.
#[derive(Debug)]
pub struct NodeRecord {
    /// Name of the node.
    pub name: String,
    /// What it reported.
    pub recording: Recording,
    /// True if its program ran to its end. Otherwise a value that it did not report is unknown.
    pub is_whole: bool,
}

/// A value on all nodes that have it.
#[derive(Debug, PartialEq, Eq)]
pub struct Comparison<'r> {
    /// The row of the table.
    pub row: &'r Row,
    /// The devices, all with these groups; empty for a value of the node itself.
    pub keys: Vec<String>,
    /// Nodes by value, the most first.
    pub groups: Vec<Group>,
    /// Nodes by the reason why their value is not known.
    pub unknown: Vec<Group>,
    /// What the groups mean.
    pub agreement: Agreement,
}

/// Nodes with something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The value, or the reason.
    pub value: String,
    /// Names of the nodes, in the order of the run.
    pub nodes: Vec<String>,
}

/// What groups of nodes mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// Every known value is the same.
    Same,
    /// More than half of the nodes have the value of the first group: the others are odd.
    Odd,
    /// The values differ, and none has a majority.
    Split,
}

impl PartialEq for Row {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Row {}

impl Comparison<'_> {
    /// The value in words, with the devices.
    pub fn value(&self) -> String {
        if self.keys.is_empty() {
            self.row.value.replace(" {key}", "")
        } else {
            self.row.value.replace("{key}", &self.keys.join(", "))
        }
    }

    /// What to do on a node that differs; empty if that is not known.
    pub fn fix(&self) -> String {
        let Some(most) = self.groups.first().filter(|_| self.agreement == Agreement::Odd) else { return String::new() };
        let line = |line: &str| {
            let line = line.replace("{value}", &most.value);
            let keys = || self.keys.iter().map(|key| line.replace("{key}", key)).collect();
            if line.contains("{key}") { keys() } else { vec![line] }
        };
        self.row.fix.lines().flat_map(line).collect::<Vec<_>>().join("\n")
    }

    /// Nodes that differ from most.
    pub fn odd(&self) -> impl Iterator<Item = &str> {
        let groups = if self.agreement == Agreement::Odd { self.groups.get(1..) } else { None };
        groups.unwrap_or_default().iter().flat_map(|group| &group.nodes).map(String::as_str)
    }
}

/// Compares all values of the table. Devices of one row with the same groups are one comparison. A row that no node's program
/// reports has none: records can be older than the row.
pub fn compare(nodes: &[NodeRecord]) -> Vec<Comparison<'static>> {
    let facts: Vec<_> = nodes.iter().map(|node| reading::facts(&node.recording)).collect();
    let mut found: Vec<Comparison<'static>> = Vec::new();
    for row in rows() {
        let readings =
            nodes.iter().zip(&facts).map(|(node, facts)| (node.name.as_str(), reading::read(row, node, facts)));
        let readings = readings.collect::<Vec<_>>();
        if readings.iter().all(|(_, readings)| reading::is_unreported(readings)) {
            continue;
        }
        for comparison in compared(row, &readings) {
            let is_same = |other: &&mut Comparison<'_>| {
                (other.row, &other.groups, &other.unknown) == (comparison.row, &comparison.groups, &comparison.unknown)
            };
            match found.iter_mut().find(is_same) {
                Some(same) => same.keys.extend(comparison.keys),
                None => found.push(comparison),
            }
        }
    }
    found
}

/// Compares the values of one row, each device by itself.
fn compared<'r>(row: &'r Row, nodes: &[(&str, Readings)]) -> Vec<Comparison<'r>> {
    let mut keys: BTreeSet<&str> = nodes.iter().flat_map(|(_, readings)| readings.keys().map(String::as_str)).collect();
    if keys.len() > 1 {
        keys.remove("");
    }
    let of_key = |key: &str| {
        let reading = |readings: &'_ Readings| readings.get(key).or_else(|| readings.get("")).cloned();
        let values = nodes.iter().filter_map(|(name, readings)| Some((*name, reading(readings)?)));
        let (groups, unknown) = grouped(values);
        let all: usize = groups.iter().chain(&unknown).map(|group| group.nodes.len()).sum();
        let most = groups.first().map_or(0, |group| group.nodes.len());
        let agreement = match groups.len() {
            0 | 1 => Agreement::Same,
            _ if most * 2 > all => Agreement::Odd,
            _ => Agreement::Split,
        };
        let keys = Some(key.to_owned()).filter(|key| !key.is_empty()).into_iter().collect();
        Comparison { row, keys, groups, unknown, agreement }
    };
    keys.into_iter().map(of_key).collect()
}

/// Nodes by their value, the most first, and by the reason why it is not known.
fn grouped<'n>(values: impl Iterator<Item = (&'n str, Reading)>) -> (Vec<Group>, Vec<Group>) {
    let mut known: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut unknown: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (node, reading) in values {
        let nodes = match reading {
            Ok(value) => known.entry(value).or_default(),
            Err(why) => unknown.entry(why).or_default(),
        };
        nodes.push(node.to_owned());
    }
    let groups = |map: BTreeMap<String, Vec<String>>| {
        let mut groups: Vec<_> = map.into_iter().map(|(value, nodes)| Group { value, nodes }).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.nodes.len()));
        groups
    };
    (groups(known), groups(unknown))
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
