//! Severity of findings.

use serde::{Deserialize, Serialize};

/// Severity of a finding, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Informational.
    Info,
    /// Causes failures or slow training on some hosts or at scale.
    Warning,
    /// Training fails, or silently runs without NCCL or RDMA.
    Error,
}

impl Severity {
    /// Returns the lower-case name, as rules and reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Lowest severity of a finding that makes a verdict a failure, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FailOn {
    /// Every finding.
    Info,
    /// Warnings and errors.
    Warning,
    /// Errors.
    #[default]
    Error,
    /// No finding.
    Never,
}

impl FailOn {
    /// All values.
    pub const ALL: [Self; 4] = [Self::Never, Self::Info, Self::Warning, Self::Error];

    /// Returns the lower-case name, as options and policies write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
            Self::Never => "never",
        }
    }

    /// Returns true if findings of this severity make a verdict a failure.
    pub const fn includes(self, severity: Severity) -> bool {
        match self {
            Self::Info => true,
            Self::Warning => matches!(severity, Severity::Warning | Severity::Error),
            Self::Error => matches!(severity, Severity::Error),
            Self::Never => false,
        }
    }
}
