//! The table of what is compared between nodes, `rules/tables/cluster.yaml`.

use serde::Deserialize;

use facts::key::{Definition, KEYS};
use model::document::parse_table;
use model::{ReplaceableTable, Severity, Table};

use super::logs::LogPart;
use super::reading::Place;

static ROWS: Table<Vec<Row>> =
    Table::new("cluster", || parse_table("rules/tables/cluster.yaml", include_str!("../tables/cluster.yaml")));

/// The table, to be replaced.
pub fn table() -> &'static dyn ReplaceableTable {
    &ROWS
}

/// A value that nodes of one job should have in common.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Name of the row.
    pub id: String,
    /// The value in words; `{key}` is the device.
    pub value: String,
    /// Where it is read.
    #[serde(flatten)]
    pub(super) source: Source,
    /// A field without which an entry of a list is left out.
    #[serde(default)]
    pub(super) has: Option<String>,
    /// Beginnings of keys that are left out.
    #[serde(default)]
    pub(super) except: Vec<String>,
    /// Unit of a number.
    #[serde(default)]
    pub(super) unit: Unit,
    /// Severity of a difference.
    pub severity: Severity,
    /// Why a difference matters.
    pub why: String,
    /// What to do on a node that differs. `{key}` is the device, `{value}` what most nodes have.
    #[serde(default)]
    pub fix: String,
    /// URLs of the sources.
    pub references: Vec<String>,
}

/// Where a value is read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Source {
    /// A place in what the program writes.
    Read(Place),
    /// A fact of the run.
    Fact(FactName),
    /// A part of NCCL's log of the tests between nodes.
    Log(LogPart),
}

/// A fact that the table names.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct FactName(pub(super) &'static Definition);

impl TryFrom<String> for FactName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let found = KEYS.iter().find(|key| key.name == name && key.is_of_run());
        found.map(|key| Self(key)).ok_or_else(|| format!("'{name}' is not a fact of a run"))
    }
}

/// Unit of a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Unit {
    /// None, or one that the words of the value name.
    #[default]
    None,
    /// Bytes; -1 is unlimited.
    Bytes,
    /// A number of things; -1 is unlimited.
    Limit,
}

/// All rows, in the order in which reports show them.
pub fn rows() -> &'static [Row] {
    &ROWS
}
