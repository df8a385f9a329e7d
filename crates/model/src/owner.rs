//! Owners of findings.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::suggestion_or_all;

/// The party that must fix a finding. A bad image must not drain a node, and bad flags must not cause an image rebuild.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// The author of the image.
    #[default]
    Image,
    /// The operator of the machine.
    Host,
    /// The user who starts the container: flags, limits, variables.
    Arrangement,
}

impl Owner {
    /// All owners.
    pub const ALL: [Self; 3] = [Self::Image, Self::Host, Self::Arrangement];

    /// Returns the lower-case name, as rules and reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Host => "host",
            Self::Arrangement => "arrangement",
        }
    }
}

impl FromStr for Owner {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|owner| owner.name() == text);
        found.ok_or_else(|| format!("unknown owner '{text}'; {}", suggestion_or_all(text, Self::ALL.map(Self::name))))
    }
}
