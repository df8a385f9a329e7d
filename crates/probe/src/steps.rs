//! The table of steps, `steps.yaml`: the source of the plan, the help and the program in the container.

use std::sync::LazyLock;

use serde::Deserialize;

use model::document::Document;

/// Text of the table, which the program in the container includes.
pub(super) const TEXT: &str = include_str!("steps.yaml");

/// A step that a probe can run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepRow {
    /// Name of the step.
    pub name: String,
    /// Python module with the step's function.
    pub module: String,
    /// Time limit in seconds.
    pub deadline: u64,
    /// True if the step runs by default.
    pub default: bool,
    /// Description of the step's result, in one line.
    pub help: String,
}

#[expect(clippy::expect_used, reason = "the table is compiled in, and a test reads it")]
static ROWS: LazyLock<Vec<StepRow>> =
    LazyLock::new(|| Document { name: "steps.yaml", text: TEXT }.parse().expect("a valid table"));

/// All steps, in the order in which they run.
pub fn rows() -> &'static [StepRow] {
    &ROWS
}

/// One line of help for each step.
pub fn help() -> String {
    let width = ROWS.iter().map(|row| row.name.len()).max().unwrap_or_default();
    let line = |row: &StepRow| {
        let on_request = if row.default { "" } else { " (on request)" };
        format!("  {:width$}  {}{on_request}", row.name, row.help)
    };
    ROWS.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The program reads the table line by line with a JSON parser, and includes it in a raw string.
    #[test]
    fn the_program_can_read_the_table() {
        let lines: Vec<serde_json::Value> = TEXT
            .lines()
            .filter_map(|line| line.strip_prefix("- "))
            .map(|row| serde_json::from_str(row).unwrap())
            .collect();
        let names: Vec<_> = lines.iter().map(|row| row["name"].as_str().unwrap()).collect();
        assert_eq!(names, rows().iter().map(|row| row.name.as_str()).collect::<Vec<_>>());
        assert!(TEXT.is_ascii() && !TEXT.contains("\"\"\""));
    }

    #[test]
    fn help_has_a_line_for_each_step() {
        let help = help();
        assert_eq!(help.lines().count(), rows().len());
        assert!(help.contains("\n  gpus            driver and GPUs, "), "{help}");
        assert!(help.contains("\n  forced-network  collectives over the network only (on request)\n"), "{help}");
    }
}
