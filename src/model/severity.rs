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
