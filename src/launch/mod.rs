//! Variables that a job sets for its processes, read from its launch files. Nothing in them is executed.
//!
//! The content determines the kind of file: a Kubernetes or Compose document, a file of `NAME=VALUE` lines, or
//! otherwise a shell script, such as a Slurm batch script. A value that a shell would compute is unknown.

mod command;
mod lines;
mod manifest;
mod shell;

use crate::document::DocumentError;
use crate::model::Site;

pub use command::script;
pub use lines::lines;

/// A variable that a launch file sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Name of the variable.
    pub name: String,
    /// Its value; `None` if it is computed when the job starts, or inherited from the environment that starts the job.
    pub value: Option<String>,
    /// Line of the file, from 1, if known.
    pub line: Option<usize>,
}

/// A variable and the site that sets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Name of the variable.
    pub name: String,
    /// Its value, if known before the job starts.
    pub value: Option<String>,
    /// The site that sets it.
    pub site: Site,
}

impl Assignment {
    /// Turns the assignment into a setting of a launch file, with the file's name as the user wrote it.
    pub fn in_launch(self, file: &str) -> Setting {
        let site = Site::Launch { file: file.to_owned(), line: self.line, variable: self.name.clone() };
        Setting { name: self.name, value: self.value, site }
    }
}

/// Returns the variables that a launch file sets, in file order. `name` is the file's name in errors.
///
/// # Errors
///
/// Fails if a file looks like a manifest but is not valid YAML.
pub fn read(name: &str, text: &str) -> Result<Vec<Assignment>, DocumentError> {
    if !text.starts_with("#!") && manifest::is_manifest(text) {
        manifest::read(name, text)
    } else if lines::is_list(text) {
        Ok(lines(text))
    } else {
        Ok(script(text))
    }
}

#[cfg(test)]
mod tests;
