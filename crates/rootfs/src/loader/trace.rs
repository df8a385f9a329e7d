//! Record of a search, with the words that explain it.

use std::fmt;

use model::ImagePath;

use super::super::Denied;

/// The loader's rule for looking at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Route {
    /// A mapped object already has this name.
    Loaded,
    /// The requested name is a path.
    Path,
    /// `DT_RPATH` of the requesting object.
    Rpath(String),
    /// `DT_RPATH` of an object that loaded the requesting one, or of the program.
    InheritedRpath(String, ImagePath),
    /// The variable `LD_LIBRARY_PATH`.
    LibraryPath(String),
    /// `DT_RUNPATH` of the requesting object.
    Runpath(String),
    /// `/etc/ld.so.cache`.
    Cache,
    /// The same as ldconfig writes it when it runs as the container starts, by this file of `/etc/ld.so.conf`.
    Configured(ImagePath),
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
            Self::Configured(file) => write!(f, "ldconfig at the start, by {file}"),
            Self::Default(directory) => write!(f, "default directory {directory}"),
        }
    }
}

/// Result of looking at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SearchEnd {
    /// This file is mapped.
    Taken(ImagePath),
    /// This file is already mapped, under another name.
    SameFile(ImagePath),
    /// No entry has this name.
    Missing,
    /// A dangling symlink.
    Dangling,
    /// A symlink loop.
    Loop,
    /// Skipped: a file of another class, with this number of bits.
    OtherClass(u8),
    /// Skipped: wrong machine, or a forbidden directory.
    Foreign(String),
    /// Skipped: the user of the process cannot read it.
    Denied(Denied),
    /// The loader gives up with this message.
    Refused(String),
    /// The image alone does not determine the result.
    Undecided(String),
}

impl SearchEnd {
    /// Returns true when the search ended with this file.
    pub const fn is_found(&self) -> bool {
        matches!(self, Self::Taken(_) | Self::SameFile(_))
    }
}

impl fmt::Display for SearchEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(path) => write!(f, "taken: {path}"),
            Self::SameFile(path) => write!(f, "taken: the same file is already loaded as {path}"),
            Self::Missing => f.write_str("not found"),
            Self::Dangling => f.write_str("skipped: dangling symbolic link"),
            Self::Loop => f.write_str("skipped: symbolic link loop"),
            Self::OtherClass(bits) => write!(f, "skipped: it is of class ELF{bits}"),
            Self::Foreign(why) => write!(f, "skipped: {why}"),
            Self::Denied(denied) => write!(f, "skipped: no permission for {denied}"),
            Self::Refused(why) => write!(f, "refused: {why}"),
            Self::Undecided(why) => write!(f, "undecided: {why}"),
        }
    }
}

/// One place that the loader looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchStep {
    /// The rule that leads there.
    pub route: Route,
    /// The path, as the loader spells it.
    pub path: String,
    /// The result.
    pub end: SearchEnd,
}

/// The search for one name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoaderSearch {
    /// The requested name.
    pub name: String,
    /// The origin of the request.
    pub by: String,
    /// Every place, in order.
    pub steps: Vec<SearchStep>,
    /// The resulting file.
    pub found: Option<ImagePath>,
}
