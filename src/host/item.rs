//! One item of a record.

use serde::{Deserialize, Serialize};

/// An answer, the knowledge that there is none, or why it is not known. In JSON and YAML: the value, `null`, or
/// `{unknown: reason}`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Item<T> {
    // Tried first when a record is read: serde takes a list of one text for a reason too.
    /// It was read.
    Known(T),
    /// It was looked for where it would be, and is not there.
    Absent,
    /// It could not be determined.
    Unknown(Why),
}

/// Why something is not known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    /// The reason.
    pub unknown: String,
}

/// What a record leaves out was not looked for by who wrote it.
impl<T> Default for Item<T> {
    fn default() -> Self {
        Self::unknown("the record does not tell")
    }
}

impl<T> Item<T> {
    /// Not known, for a reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(Why { unknown: why.into() })
    }

    /// The answer, if there is one.
    pub const fn known(&self) -> Option<&T> {
        match self {
            Self::Known(value) => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// The same with another answer.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Item<U> {
        self.and_then(|value| Item::Known(change(value)))
    }

    /// An answer that may turn out to be none once it is looked at.
    pub fn and_then<U>(self, change: impl FnOnce(T) -> Item<U>) -> Item<U> {
        match self {
            Self::Known(value) => change(value),
            Self::Absent => Item::Absent,
            Self::Unknown(why) => Item::Unknown(why),
        }
    }

    /// This, or another where there is none.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if matches!(self, Self::Absent) { other() } else { self }
    }

    /// The same with a reference to the answer.
    pub fn as_ref(&self) -> Item<&T> {
        match self {
            Self::Known(value) => Item::Known(value),
            Self::Absent => Item::Absent,
            Self::Unknown(why) => Item::Unknown(why.clone()),
        }
    }
}

impl<T> From<Option<T>> for Item<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::Known)
    }
}
