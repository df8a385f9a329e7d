//! Facts: typed values and the sites where they were read. A fact can be unknown.

mod form;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ImagePath, Version, conceal};

/// A property of an image or a host. No default replaces a missing value: a fact that could not be determined is
/// [`Fact::Unknown`], with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fact<T = Value> {
    /// The value was read.
    Seen {
        /// The value.
        value: T,
        /// Sites where the value was read.
        at: Vec<Site>,
    },
    /// The value does not exist: every place where it could be was searched.
    Absent,
    /// The value could not be determined.
    Unknown(Gap),
}

impl<T> Fact<T> {
    /// Creates a fact that was read at these sites.
    pub fn seen(value: T, at: impl IntoIterator<Item = Site>) -> Self {
        Self::Seen { value, at: at.into_iter().collect() }
    }

    /// Creates a fact without a site in an image: a property of a machine, or a user's description.
    pub const fn known(value: T) -> Self {
        Self::Seen { value, at: Vec::new() }
    }

    /// Creates a fact that could not be determined, with the reason.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::Unknown(Gap::new(why))
    }

    /// Returns the value, if known.
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Seen { value, .. } => Some(value),
            Self::Absent | Self::Unknown(_) => None,
        }
    }

    /// Borrows the value.
    pub fn as_ref(&self) -> Fact<&T> {
        match self {
            Self::Seen { value, at } => Fact::Seen { value, at: at.clone() },
            Self::Absent => Fact::Absent,
            Self::Unknown(gap) => Fact::Unknown(gap.clone()),
        }
    }

    /// Returns the sites where the value was read.
    pub fn sites(&self) -> &[Site] {
        match self {
            Self::Seen { at, .. } => at,
            Self::Absent | Self::Unknown(_) => &[],
        }
    }

    /// Maps the value, if known.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Fact<U> {
        match self {
            Self::Seen { value, at } => Fact::Seen { value: change(value), at },
            Self::Absent => Fact::Absent,
            Self::Unknown(gap) => Fact::Unknown(gap),
        }
    }

    /// Maps a known value and its sites to a fact, which may be absent or unknown.
    pub fn and_then<U>(self, change: impl FnOnce(T, Vec<Site>) -> Fact<U>) -> Fact<U> {
        match self {
            Self::Seen { value, at } => change(value, at),
            Self::Absent => Fact::Absent,
            Self::Unknown(gap) => Fact::Unknown(gap),
        }
    }

    /// Returns this fact, or another one if this one is absent.
    #[must_use]
    pub fn or_else(self, other: impl FnOnce() -> Self) -> Self {
        if matches!(self, Self::Absent) { other() } else { self }
    }
}

/// `Some` is a known value without a site; `None` is absent.
impl<T> From<Option<T>> for Fact<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Absent, Self::known)
    }
}

/// Value of a fact, of the fact's type. Versions are text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Value {
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text, or a version.
    Text(String),
    /// A version, compared component by component.
    #[serde(skip_deserializing)]
    #[schemars(skip)]
    Version(Version),
    /// A list of values.
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

/// Place where a fact was read.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A file of the merged image and the layer that contains it (from 0, counting layers with content).
    File {
        /// Index of the layer.
        layer: usize,
        /// Path in the image.
        path: ImagePath,
        /// Part of the file that was read, if not all of it: `DT_NEEDED`, `USE_NCCL`, `line 12`.
        within: Option<String>,
    },
    /// A key of the image configuration, such as `Env NCCL_DEBUG`.
    Config(String),
    /// A step of a probe, by name.
    Probe(String),
    /// A variable that the job sets outside the image.
    Launch {
        /// Name of the launch file as the user wrote it, or the command-line option.
        file: String,
        /// Line in that file, from 1, if known.
        line: Option<usize>,
        /// Name of the variable.
        variable: String,
    },
    /// A line of a job's log.
    Log {
        /// Name of the log as the user wrote it.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The entry of the fact that it shows.
        entry: String,
    },
}

impl Site {
    /// Index of the layer that provides the site's file, from 0; `None` for a site that is not a file of the image.
    pub const fn layer(&self) -> Option<usize> {
        match self {
            Self::File { layer, .. } => Some(*layer),
            Self::Config(_) | Self::Probe(_) | Self::Launch { .. } | Self::Log { .. } => None,
        }
    }
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
            Self::Log { file, line, .. } => write!(f, "{file}:{line}"),
        }
    }
}

/// Reason why a fact could not be determined, and the action that would determine it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// The operation that failed, on which object, and why.
    pub why: String,
    /// Action that would determine the fact.
    pub settle: Option<String>,
    /// True if the reason lies with this machine or this run and not with the image: another run may succeed, so the
    /// result must not be cached.
    pub is_transient: bool,
}

impl Gap {
    /// Creates a gap with its reason, in which secrets are concealed: it may quote a command of the image.
    pub fn new(why: impl Into<String>) -> Self {
        let why = why.into();
        let why = match conceal(&why) {
            Cow::Borrowed(_) => why,
            Cow::Owned(shown) => shown,
        };
        Self { why, settle: None, is_transient: false }
    }

    /// Names the file at fault before the reason.
    #[must_use]
    pub fn about(self, file: impl fmt::Display) -> Self {
        Self { why: format!("{file}: {}", self.why), ..self }
    }

    /// Adds the action that would determine the fact.
    #[must_use]
    pub fn settled_by(mut self, how: impl Into<String>) -> Self {
        self.settle = Some(how.into());
        self
    }

    /// Marks the gap as specific to this machine or this run.
    #[must_use]
    pub const fn of_this_run(mut self) -> Self {
        self.is_transient = true;
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
