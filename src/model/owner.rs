//! Whose a finding is.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Who has to mend what is wrong. A node must not be drained for a bad image, nor an image be rebuilt for bad flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Owner {
    /// Who builds the image.
    #[default]
    Image,
    /// Who runs the machine.
    Host,
    /// Who starts the container: flags, limits, variables.
    Arrangement,
}

impl Owner {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Image, Self::Host, Self::Arrangement];

    /// Lower-case name, as rules and reports write it.
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
        found.ok_or_else(|| format!("there is no '{text}'; there are {}", Self::ALL.map(Self::name).join(", ")))
    }
}
