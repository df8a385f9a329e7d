//! How bad a finding is.

use serde::{Deserialize, Serialize};

/// How bad a finding is, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Will hurt on some hosts or at scale.
    Warning,
    /// Training fails, or silently loses NCCL or RDMA.
    Error,
}

impl Severity {
    /// Lower-case name, as rules and reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}
