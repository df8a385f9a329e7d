//! Variables that a job sets for its processes: read from the files that start it, none of which is executed.
//!
//! A file is known by its content: a Kubernetes or Compose document, a file of `NAME=VALUE` lines, or else a shell script
//! (also one for Slurm). A value that a shell would have to compute is not guessed.

mod command;
mod lines;
mod manifest;
mod shell;

use crate::model::Site;

pub use command::script;
pub use lines::lines;

/// A variable that a file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// Its value; `None` where it is computed when the job starts, or taken over from whoever starts it.
    pub value: Option<String>,
    /// Line of the file, from 1, where it is known.
    pub line: Option<usize>,
}

/// A variable, and where it is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the variable.
    pub name: String,
    /// Its value, if it can be known before the job starts.
    pub value: Option<String>,
    /// Where it is set.
    pub site: Site,
}

impl Assignment {
    /// The same, as one of a launch file that the user named so.
    pub fn in_launch(self, file: &str) -> Setting {
        let site = Site::Launch { file: file.to_owned(), line: self.line, variable: self.name.clone() };
        Setting { name: self.name, value: self.value, site }
    }
}

/// The variables that a launch file sets, in its order.
///
/// # Errors
///
/// What is wrong with a document that begins like a manifest and is none.
pub fn read(text: &str) -> Result<Vec<Assignment>, String> {
    if !text.starts_with("#!") && manifest::is_manifest(text) {
        manifest::read(text)
    } else if lines::is_list(text) {
        Ok(lines(text))
    } else {
        Ok(script(text))
    }
}

#[cfg(test)]
mod tests;
