//! What a job sets for its processes, and the containers that it starts, read from its launch files. Nothing in them is
//! executed.
//!
//! The name and the content determine the kind of file: a YAML or JSON document, a file of `NAME=VALUE` lines, or otherwise a
//! shell script, such as a Slurm batch script. A value that a shell would compute is unknown.

mod command;
mod container;
mod lines;
mod manifest;
mod shell;
mod step;
mod workload;

use model::document::{Document, DocumentError};
use model::{Site, conceal};

pub use command::script;
pub use container::{LaunchContainer, choose};
pub use lines::lines;

/// What a launch file sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// The variables, in file order: the last assignment of a variable counts.
    pub assignments: Vec<Assignment>,
    /// Notes for the reader about variables that the file does not hold.
    pub notes: Vec<String>,
    /// The containers that the file starts.
    pub containers: Vec<LaunchContainer>,
}

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

/// Reads a launch file. `name` is its name, which errors have too.
///
/// # Errors
///
/// Fails if a file is a document by its name or its keys, but not valid YAML, and if it sets too much.
pub fn read(name: &str, text: &str) -> Result<Launch, DocumentError> {
    let mut launch = if !text.starts_with("#!") && manifest::is_manifest(name, text) {
        manifest::read(name, text)?
    } else if lines::is_list(text) {
        Launch { assignments: lines(text), ..Launch::default() }
    } else {
        let launch = command::job_script(text).map_err(|why| Document { name, text }.mistake_of("", why))?;
        Launch { containers: step::containers(text), ..launch }
    };
    for note in &mut launch.notes {
        *note = conceal(note).into_owned();
    }
    if launch.assignments.is_empty() && launch.notes.is_empty() && launch.containers.is_empty() {
        launch.notes.push("it sets no variable".to_owned());
    }
    Ok(launch)
}

#[cfg(test)]
mod tests;
