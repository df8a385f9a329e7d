//! Finds the rule files in a user's folder.

use std::ffi::OsStr;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

use model::document::FileError;

/// A file that holds one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleFile {
    /// The id that the rule must have: the folder's name, a slash, and the file's name without its extension.
    pub id: String,
    /// Path of the file.
    pub path: PathBuf,
}

impl RuleFile {
    /// Finds all rules in a folder and below, sorted by path; a file counts as one rule. Finding no rule is an error.
    pub fn find(place: &Path) -> Result<Vec<Self>, FileError> {
        let mut paths = if place.is_file() { vec![place.to_owned()] } else { below(place)? };
        if paths.is_empty() {
            return Err(failed(place, &"it contains no rule: no file AREA/NAME.yaml"));
        }
        paths.sort();
        paths.into_iter().map(Self::new).collect()
    }

    fn new(path: PathBuf) -> Result<Self, FileError> {
        let whole = path.canonicalize().map_err(|error| failed(&path, &error))?;
        let name = |part: Option<&OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let area = name(whole.parent().and_then(Path::file_name));
        Ok(Self { id: format!("{area}/{}", name(whole.file_stem())), path })
    }
}

fn below(place: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    let mut folders = vec![place.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
            let entry = entry.map_err(|error| failed(&folder, &error))?;
            let path = entry.path();
            // A symlink to a folder is not followed, because it may form a loop.
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                folders.push(path);
            } else if path.is_file()
                && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
            {
                found.push(path);
            }
        }
    }
    Ok(found)
}

fn failed(path: &Path, why: &dyn Display) -> FileError {
    FileError { path: path.to_owned(), why: why.to_string() }
}
