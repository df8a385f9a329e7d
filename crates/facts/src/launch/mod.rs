//! What a job sets for its processes, and the containers that it starts, read from its launch files. Nothing in them is
//! executed.
//!
//! The name and the content determine the kind of file: a YAML or JSON document, a file of `NAME=VALUE` lines, or otherwise a
//! shell script, such as a Slurm batch script. A value that a shell would compute is unknown.

mod arrangement;
mod command;
mod compose;
mod container;
mod details;
mod edit;
mod given;
mod kubernetes;
mod launched;
mod lines;
mod manifest;
mod ranks;
mod settings;
mod shell;
mod step;
mod workload;

use model::document::{Document, DocumentError};
use model::{Site, conceal};

pub use command::script;
pub use container::LaunchContainer;
pub use edit::{secret_lines, with_keys, with_options, with_replaced, with_variable};
pub use given::{Starter, is_computed};
pub use launched::Launched;
pub use lines::lines;

/// What a launch file sets and starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LaunchFile {
    /// Its name, as the user wrote it.
    pub name: String,
    /// Its content.
    pub text: String,
    /// The variables that every process of the job gets, in file order: the last assignment of a variable counts.
    pub settings: Vec<Setting>,
    /// The containers that it starts.
    pub containers: Vec<LaunchContainer>,
    /// Variables that it sets and that none of its containers gets.
    pub unpassed: Vec<Setting>,
    /// Notes for the reader about variables that the file does not hold.
    pub notes: Vec<String>,
}

impl LaunchFile {
    /// Keeps the variables that may be shown, and no options: others may be secrets.
    #[must_use]
    pub fn with_shown(mut self) -> Self {
        self.containers.iter_mut().for_each(|container| container.options.clear());
        let lists = self.containers.iter_mut().map(|container| &mut container.settings);
        for settings in lists.chain([&mut self.settings, &mut self.unpassed]) {
            settings.retain(|setting| crate::is_shown(&setting.name));
        }
        self
    }
}

/// What a script or a document sets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Launch {
    /// The variables, in file order.
    assignments: Vec<Assignment>,
    /// Those that options of a container engine pass on.
    passed: Vec<Assignment>,
    notes: Vec<String>,
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
        let value = self.value.filter(|value| !given::is_template(value));
        Setting { name: self.name, value, site }
    }
}

/// Reads a launch file. `name` is its name, which errors have too.
///
/// # Errors
///
/// Fails if a file is a document by its name or its keys, but not valid YAML, and if it sets too much.
pub fn read(name: &str, text: &str) -> Result<LaunchFile, DocumentError> {
    let mut file = if !text.starts_with("#!") && manifest::is_manifest(name, text) {
        manifest::read(name, text)?
    } else if lines::is_list(text) {
        LaunchFile { settings: settings(lines(text), name), ..LaunchFile::default() }
    } else if text.contains("<%=") {
        return Err(Document { name, text }.mistake_of("", "a template that is not rendered"));
    } else {
        script_file(name, text).map_err(|why| Document { name, text }.mistake_of("", why))?
    };
    if !file.containers.iter().all(LaunchContainer::is_preflight) {
        file.containers.retain(|container| !container.is_preflight());
    }
    name.clone_into(&mut file.name);
    text.clone_into(&mut file.text);
    for note in &mut file.notes {
        *note = conceal(note).into_owned();
    }
    if file.settings.is_empty() && file.notes.is_empty() && file.containers.is_empty() {
        file.notes.push("it sets no variable".to_owned());
    }
    Ok(file)
}

/// Reads a script. Docker and its like pass a container only the variables that an option names.
fn script_file(name: &str, text: &str) -> Result<LaunchFile, String> {
    let text = given::without_placeholders(text);
    let Launch { assignments, passed, notes } = command::job_script(&text, 1)?;
    let containers = step::containers(&text);
    let is_of_engine = |container: &LaunchContainer| container.given.starter == given::Starter::Docker;
    if containers.is_empty() || !containers.iter().all(is_of_engine) {
        return Ok(LaunchFile { settings: settings(assignments, name), containers, notes, ..LaunchFile::default() });
    }
    let is_unpassed = |given: &Assignment| passed.iter().all(|passed| passed.name != given.name);
    let unpassed = settings(assignments.into_iter().filter(is_unpassed).collect(), name);
    Ok(LaunchFile { settings: settings(passed, name), containers, unpassed, notes, ..LaunchFile::default() })
}

/// The settings of a launch file by this name.
fn settings(assignments: Vec<Assignment>, name: &str) -> Vec<Setting> {
    assignments.into_iter().map(|given| given.in_launch(name)).collect()
}

#[cfg(test)]
mod tests;
