//! Whether a run was in a sandbox.

use serde::{Deserialize, Serialize};

/// Whether the process that read an image had restricted itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "Sandbox")]
pub struct SandboxState {
    /// What was restricted.
    pub state: SandboxExtent,
    /// Version of Landlock's interface that restricts files. Null if none does.
    pub landlock: Option<u32>,
    /// Why it was restricted in part, or not. Null if it was in full.
    pub why: Option<String>,
}

/// How much of a sandbox was in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[schemars(rename = "SandboxExtent")]
#[serde(rename_all = "lowercase")]
pub enum SandboxExtent {
    /// Files, system calls, and new privileges.
    On,
    /// A part of these.
    Partial,
    /// Nothing.
    Off,
}

impl SandboxState {
    /// No sandbox, for a reason.
    pub fn off(why: impl Into<String>) -> Self {
        Self { state: SandboxExtent::Off, landlock: None, why: Some(why.into()) }
    }
}

impl std::fmt::Display for SandboxState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.state {
            SandboxExtent::On => "on",
            SandboxExtent::Partial => "in part",
            SandboxExtent::Off => "off",
        })?;
        if let Some(version) = self.landlock {
            write!(f, ", Landlock {version}")?;
        }
        self.why.as_ref().map_or(Ok(()), |why| write!(f, ": {why}"))
    }
}
