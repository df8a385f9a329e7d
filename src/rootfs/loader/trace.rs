//! What a search looked at: the words in which it is explained.

use std::fmt;

use crate::model::ImagePath;

/// The rule of the loader by which a place is looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// An object that is already there has this name.
    Loaded,
    /// What is asked for is a path.
    Path,
    /// `DT_RPATH` of the object that asks.
    Rpath(String),
    /// `DT_RPATH` of an object that brought the one that asks, or of the program.
    InheritedRpath(String, ImagePath),
    /// The variable `LD_LIBRARY_PATH`.
    LibraryPath(String),
    /// `DT_RUNPATH` of the object that asks.
    Runpath(String),
    /// `/etc/ld.so.cache`.
    Cache,
    /// A default directory.
    Default(String),
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loaded => f.write_str("already loaded"),
            Self::Path => f.write_str("by its path"),
            Self::Rpath(entry) => write!(f, "DT_RPATH {entry}"),
            Self::InheritedRpath(entry, of) => write!(f, "DT_RPATH {entry} of {of}"),
            Self::LibraryPath(entry) => write!(f, "LD_LIBRARY_PATH {entry}"),
            Self::Runpath(entry) => write!(f, "DT_RUNPATH {entry}"),
            Self::Cache => f.write_str("/etc/ld.so.cache"),
            Self::Default(directory) => write!(f, "default directory {directory}"),
        }
    }
}

/// How a look at one place ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// This file is mapped.
    Taken(ImagePath),
    /// This file is an object that is already there, under another name.
    SameFile(ImagePath),
    /// There is nothing of this name.
    Missing,
    /// It is a symbolic link that leads to nothing.
    Dangling,
    /// Its symbolic links go round in a circle.
    Loop,
    /// It is of another class or machine, and passed over.
    Foreign(String),
    /// The loader gives up here.
    Refused(String),
    /// This image alone does not tell.
    Undecided(String),
}

impl SearchEnd {
    /// Whether the search ended with this file.
    pub const fn is_found(&self) -> bool {
        matches!(self, Self::Taken(_) | Self::SameFile(_))
    }
}

impl fmt::Display for SearchEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(path) => write!(f, "taken: {path}"),
            Self::SameFile(path) => write!(f, "taken: the same file is already loaded, {path}"),
            Self::Missing => f.write_str("not there"),
            Self::Dangling => f.write_str("passed over: a symbolic link to nothing"),
            Self::Loop => f.write_str("passed over: symbolic links in a circle"),
            Self::Foreign(why) => write!(f, "passed over: {why}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Undecided(why) => write!(f, "undecided: {why}"),
        }
    }
}

/// A look at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SearchStep {
    /// The rule that leads there.
    pub route: Route,
    /// The path that is tried, as the loader spells it.
    pub path: String,
    /// What came of it.
    pub end: SearchEnd,
}

/// The search for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoaderSearch {
    /// The name, as it was asked for.
    pub name: String,
    /// Who asks, and how.
    pub by: String,
    /// Every place looked at, in order.
    pub steps: Vec<SearchStep>,
    /// The file that it ended with.
    pub found: Option<ImagePath>,
}
