//! Facts: typed answers, where they were read, and honest ignorance.

mod form;

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::{ImagePath, Version};

/// The answer to one question about the image. There is no default in place of an answer: what could not be determined
/// is [`Fact::Unknown`], and says why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T = Value> {
    /// It was read.
    Seen {
        /// The answer.
        value: T,
        /// Where it was read.
        at: Vec<Site>,
    },
    /// It was looked for where it would have to be, and is not there.
    Absent,
    /// It could not be determined.
    Unknown(Gap),
}

impl<T> Fact<T> {
    /// A fact read at one place.
    pub fn seen(value: T, at: impl IntoIterator<Item = Site>) -> Self {
        Self::Seen { value, at: at.into_iter().collect() }
    }

    /// A fact that was read at no place of an image: of a machine, or as a user described it.
    pub const fn known(value: T) -> Self {
        Self::Seen { value, at: Vec::new() }
    }

    /// A fact that could not be determined, for a reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(Gap::new(why))
    }

    /// The answer, if there is one.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Seen { value, .. } => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// The same fact, whose value stays where it is.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Seen { value, at } => Fact::Seen { value, at: at.clone() },
            Self::Absent => Fact::Absent,
            Self::Unknown(gap) => Fact::Unknown(gap.clone()),
        }
    }

    /// Where the answer was read.
    pub fn sites(&self) -> &[Site] {
        match self {
            Self::Seen { at, .. } => at,
            Self::Absent | Self::Unknown(_) => &[],
        }
    }

    /// The same fact with another value, or its absence or gap unchanged.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Seen { value, at } => Fact::Seen { value: change(value), at },
            Self::Absent => Fact::Absent,
            Self::Unknown(gap) => Fact::Unknown(gap),
        }
    }

    /// A fact that may turn out absent or unknown once its value is looked at.
    pub fn and_then<U>(self, change: impl FnOnce(T, Vec<Site>) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Seen { value, at } => change(value, at),
            Self::Absent => Fact::Absent,
            Self::Unknown(gap) => Fact::Unknown(gap),
        }
    }

    /// This fact, or another one if it is absent.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if matches!(self, Self::Absent) { other() } else { self }
    }
}

/// A value without a place, or absent.
impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::known)
    }
}

/// The value of a fact, in the types that rules and JSON know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Yes or no.
    Bool(bool),
    /// A number.
    Int(i64),
    /// Text.
    Text(String),
    /// A version, compared part by part.
    Version(Version),
    /// Several values in a stated order.
    List(Vec<Value>),
    /// Named values.
    Map(BTreeMap<String, Value>),
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Self {
        Self::Text(value)
    }
}

impl From<Version> for Value {
    fn from(value: Version) -> Self {
        Self::Version(value)
    }
}

impl From<&ImagePath> for Value {
    fn from(value: &ImagePath) -> Self {
        Self::Text(value.to_string())
    }
}

impl<T: Into<Self>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Self {
        Self::List(values.into_iter().map(Into::into).collect())
    }
}

impl From<BTreeMap<String, String>> for Value {
    fn from(values: BTreeMap<String, String>) -> Self {
        Self::Map(values.into_iter().map(|(key, value)| (key, value.into())).collect())
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bool(value) => write!(f, "{value}"),
            Self::Int(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
            Self::Version(value) => write!(f, "{value}"),
            Self::List(values) => {
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
            Self::Map(values) => {
                for (index, (key, value)) in values.iter().enumerate() {
                    write!(f, "{}{key}={value}", if index == 0 { "" } else { ", " })?;
                }
                Ok(())
            }
        }
    }
}

/// Where something was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Site {
    /// A file of the merged image, and the layer (from 0, counted over layers with content) that brought it.
    File {
        /// Index of the layer.
        layer: usize,
        /// Path in the image.
        path: ImagePath,
        /// What was read there, if not the whole file: `DT_NEEDED`, `USE_NCCL`, `line 12`.
        within: Option<String>,
    },
    /// A key of the image configuration, such as `Env NCCL_DEBUG`.
    Config(String),
    /// A step of a probe, by its name.
    Probe(String),
    /// Outside the image: where the job that starts it sets a variable.
    Launch {
        /// A launch file as the user named it, or the option of the command line.
        file: String,
        /// Line in that file, from 1, where it is known.
        line: Option<usize>,
        /// Name of the variable.
        variable: String,
    },
}

impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, within: None, .. } => write!(f, "{path}"),
            Self::File { path, within: Some(within), .. } => write!(f, "{path} ({within})"),
            Self::Config(key) => write!(f, "image configuration, {key}"),
            Self::Probe(step) => write!(f, "probe, {step}"),
            Self::Launch { file, line: Some(line), variable } => write!(f, "{file}, line {line} ({variable})"),
            Self::Launch { file, line: None, variable } => write!(f, "{file} ({variable})"),
        }
    }
}

/// Why something could not be determined, and what would settle it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// What could not be done, where and why.
    pub why: String,
    /// What would give the answer.
    pub settle: Option<String>,
    /// Whether the reason lies with this machine or this run, and not with what was looked at: another try may have the
    /// answer, and nothing may be kept of this one.
    pub passing: bool,
}

impl Gap {
    /// A gap with its reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), settle: None, passing: false }
    }

    /// The same gap, with what would settle it.
    #[must_use]
    pub fn settled_by(mut self, how: impl Into<String>) -> Self {
        self.settle = Some(how.into());
        self
    }

    /// The same gap, which has to do with this machine or this run alone.
    #[must_use]
    pub const fn of_this_run(mut self) -> Self {
        self.passing = true;
        self
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.settle {
            None => f.write_str(&self.why),
            Some(how) => write!(f, "{}; {how}", self.why),
        }
    }
}
