//! The variables of a process, as its own code changes them.

use std::collections::BTreeMap;

use model::{Fact, Gap, ImagePath, Site};

use super::super::image::is_of_library;
use super::super::launch;
use super::environment::VariableEffect;
use super::site::SitePath;

/// What the code of a process does to its variables.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChangedVariables {
    /// The value of each, `None` for one that is removed, or why it is unknown, and the place.
    pub(crate) values: BTreeMap<String, (Result<Option<String>, Gap>, Site)>,
    /// Why any other may have another value.
    pub(crate) gap: Option<Gap>,
}

/// Beginnings of the names of other variables that a job gets from nowhere but its image and its launch.
const OF_IMAGE: &[&str] = &["CONDA", "PATH", "PYTHON", "VIRTUAL_ENV"];

/// Most variables that a program sets.
const MOST: usize = 1_000;

impl SitePath<'_> {
    /// A variable of the process, or why it is unknown.
    pub(super) fn variable(&self, name: &str) -> Result<Option<String>, Gap> {
        if let Some((value, _)) = self.changed.values.get(name) {
            return value.clone();
        }
        let state = &self.call.state;
        let gap = self.changed.gap.as_ref().or(state.gap.as_ref());
        match (state.variables.get(name), gap) {
            (_, Some(gap)) => Err(gap.clone()),
            (Some(value), None) => value.clone().map(Some),
            (None, None) if is_of_library(name) || OF_IMAGE.iter().any(|own| name.starts_with(own)) => Ok(None),
            (None, None) => Err(Gap::new(format!("the job may set {name}"))),
        }
    }

    /// Changes variables. In doubt, whether the code runs is unknown.
    pub(super) fn change_variable(&mut self, effect: VariableEffect) {
        let place = self.place();
        match effect {
            VariableEffect::Set(name, value) => self.set_variable(name, value, place),
            VariableEffect::Unset(name) => self.keep_variable(name, Ok(None), place),
            // What the job may set stays as it is.
            VariableEffect::Default(name, value) => {
                if self.variable(&name) == Ok(None) {
                    self.set_variable(name, value, place);
                }
            }
            VariableEffect::Load(file, replaces) => self.load(file.as_deref(), replaces),
            VariableEffect::Unknown => {
                let why = format!("{place} sets variables whose names are not known");
                self.changed.gap.get_or_insert(Gap::new(why));
            }
        }
    }

    fn set_variable(&mut self, name: String, value: Option<String>, place: Site) {
        let value = value.map(Some).ok_or_else(|| Gap::new(format!("{place} computes {name}")));
        self.keep_variable(name, value, place);
    }

    fn keep_variable(&mut self, name: String, value: Result<Option<String>, Gap>, place: Site) {
        let is_same = value.is_ok() && self.variable(&name) == value;
        if (self.is_doubtful && is_same) || !self.files.budget.spend_on_text(name.len()) {
            return;
        }
        if self.changed.values.len() >= MOST {
            let why = format!("the program sets more than {MOST} variables");
            self.changed.gap.get_or_insert(Gap::new(why));
            return;
        }
        let value = value.and_then(|value| {
            let why = || format!("{place} changes {name}, and whether it runs before NCCL starts is unknown");
            if self.is_doubtful { Err(Gap::new(why())) } else { Ok(value) }
        });
        self.changed.values.insert(name, (value, place));
    }

    /// `dotenv.load_dotenv`.
    fn load(&mut self, file: Option<&str>, replaces: bool) {
        let own = self.at.0.as_ref().map_or_else(|| self.files.directory().clone(), ImagePath::parent);
        let file = match file {
            Some(file) => Some(self.files.absolute(file.as_bytes())),
            None => std::iter::successors(Some(own), |folder| (!folder.is_root()).then(|| folder.parent()))
                .map(|folder| folder.join(b".env"))
                .find(|file| self.files.is_file(file)),
        };
        let Some(file) = file else { return };
        match self.files.text(&file) {
            Fact::Seen { value, .. } => {
                let text = String::from_utf8_lossy(value);
                let before = self.at.clone();
                for given in launch::lines(&text) {
                    // References, escapes and comments are not followed.
                    let value = given.value.filter(|value| !value.contains(['$', '#', '\\']));
                    self.at = (Some(file.clone()), given.line.unwrap_or(1));
                    let set = if replaces { VariableEffect::Set } else { VariableEffect::Default };
                    self.change_variable(set(given.name, value));
                }
                self.at = before;
            }
            Fact::Absent => {}
            Fact::Unknown(gap) => _ = self.changed.gap.get_or_insert(gap),
        }
    }

    /// The place of the statement that runs.
    fn place(&self) -> Site {
        let (file, line) = &self.at;
        let found = file.as_ref().and_then(|file| self.files.rootfs.open(file).ok());
        match found {
            Some((real, file)) => file.site(&real, Some(&format!("line {line}"))),
            None => Site::Config(format!("the code behind -c, line {line}")),
        }
    }
}
