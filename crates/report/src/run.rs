//! What a run was asked for, as reports have it.

use model::SandboxState;

/// A run of ncclcheck.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReportRun {
    /// The command, such as `check`.
    pub command: String,
    /// Time when the run began, in UTC: `2026-01-31T12:00:00Z`.
    pub time: String,
    /// The platform: `host`, `all`, or os/arch[/variant].
    pub platform: String,
    /// Names of the variables that the job sets.
    pub variables: Vec<String>,
    /// Whether the process was in a sandbox; `None` if a library made the report.
    pub sandbox: Option<SandboxState>,
}

/// An image that could not be opened.
#[derive(Clone, Debug)]
pub struct Unopened {
    /// The reference as the user wrote it.
    pub reference: String,
    /// The reason.
    pub why: String,
    /// What was asked for.
    pub run: Option<ReportRun>,
}
