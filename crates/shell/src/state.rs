//! What is known of a shell while it runs a script.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::fault::ScriptFault;
use super::gap::ShellGap;
use super::kind::ShellKind;
use super::syntax::Redirected;

/// Length of a value in bytes from which on it is unknown.
const LONGEST: usize = 1 << 16;

/// The value of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShellValue {
    /// A text.
    Text(String),
    /// An array of bash.
    List(Vec<String>),
}

/// A variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellVariable {
    /// Its value, `None` if it is not set, or why that is unknown.
    pub value: Result<Option<ShellValue>, ShellGap>,
    /// True if programs inherit it.
    pub is_exported: bool,
    /// File and line that set it; `None` for an inherited variable.
    pub at: Option<(Rc<str>, usize)>,
}

/// A word of a command after its expansion.
pub type Field = Result<String, UnknownField>;

/// A word whose end is unknown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownField {
    /// The known beginning.
    pub prefix: String,
    /// Why the rest is unknown.
    pub gap: ShellGap,
}

/// The words as arguments. An unknown word may be none or several, so that not even their number is known.
pub(super) fn counted(fields: &[Field]) -> Result<Vec<Field>, ShellGap> {
    match fields.iter().find_map(|field| field.as_ref().err()) {
        Some(unknown) => Err(unknown.gap.clone()),
        None => Ok(fields.to_vec()),
    }
}

/// A program that was started, by its number in the caller's list; of several, the one of the highest rank counts.
///
/// The mark of a program that could not be started counts only where every branch leads to it, and no command of the
/// script handles its status, which is 127.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StartMark {
    /// How much it counts. Of two branches with different programs of one rank, neither counts more.
    pub rank: u8,
    /// How much it counts among those of its rank that one script starts in turn.
    pub weight: u8,
    /// True if it could not be started.
    pub fails: bool,
    /// Its number in the caller's list.
    pub index: usize,
}

/// Variables, arguments, functions and options of a shell.
#[derive(Clone, Debug)]
pub struct ShellState {
    /// The program that reads the script.
    pub kind: ShellKind,
    /// Variables by name.
    pub variables: BTreeMap<String, ShellVariable>,
    /// Why any other variable may be set.
    pub gap: Option<ShellGap>,
    /// `$0`.
    pub name: String,
    /// `$1` and those after it.
    pub arguments: Result<Vec<Field>, ShellGap>,
    /// The absolute path of the working directory.
    pub directory: Result<String, ShellGap>,
    /// The program that counts among those that were started.
    pub started: Result<Option<StartMark>, ShellGap>,
    /// Why a program may exist that the surroundings do not have: a command before may have added it.
    pub added: Option<ShellGap>,
    /// Functions by name; `None` for one whose body is unknown.
    pub(super) functions: BTreeMap<String, Option<Rc<Redirected>>>,
    /// Why the last command failed.
    pub fault: Option<ScriptFault>,
    /// The exit status of the last command.
    pub(super) status: Option<u8>,
    pub(super) options: ShellOptions,
    /// Variables that `readonly` has closed.
    pub(super) closed: BTreeSet<String>,
    /// Words of programs that may have changed files, and targets of redirections.
    pub(super) touched: BTreeSet<String>,
    /// What was printed, in a command substitution.
    pub(super) output: Option<Result<String, ShellGap>>,
    /// What is left of the standard input: a file, or what the command before in a pipeline printed in a command substitution.
    /// `None` for any other input.
    pub(super) input: Option<Result<String, ShellGap>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ShellOptions {
    /// `set -e`.
    pub(super) exits_on_error: bool,
    /// `set -u`.
    pub(super) refuses_unset: bool,
    /// `set -a`.
    pub(super) exports_all: bool,
    /// `shopt -s nullglob`.
    pub(super) drops_unmatched: bool,
    /// `set -f`.
    pub(super) expands_no_paths: bool,
}

impl ShellState {
    /// A shell without variables and arguments.
    pub fn new(kind: ShellKind, name: &str) -> Self {
        Self {
            kind,
            variables: BTreeMap::new(),
            gap: None,
            name: name.to_owned(),
            arguments: Ok(Vec::new()),
            directory: Ok("/".to_owned()),
            started: Ok(None),
            added: None,
            functions: BTreeMap::new(),
            fault: None,
            status: Some(0),
            options: ShellOptions::default(),
            closed: BTreeSet::new(),
            touched: BTreeSet::new(),
            output: None,
            input: None,
        }
    }

    /// A shell that a program of this state starts: it inherits the exported variables and the working directory.
    #[must_use]
    pub fn child(&self, kind: ShellKind, name: &str) -> Self {
        let exported = self.variables.iter().filter(|(_, variable)| variable.is_exported);
        Self {
            variables: exported.map(|(name, variable)| (name.clone(), variable.clone())).collect(),
            gap: self.gap.clone(),
            directory: self.directory.clone(),
            touched: self.touched.clone(),
            added: self.added.clone(),
            ..Self::new(kind, name)
        }
    }

    /// The value of a variable; `None` if it is not set.
    pub fn variable(&self, name: &str) -> Result<Option<&ShellValue>, &ShellGap> {
        match (self.variables.get(name), &self.gap) {
            (Some(variable), _) => variable.value.as_ref().map(Option::as_ref),
            (None, Some(gap)) => Err(gap),
            (None, None) => Ok(None),
        }
    }

    /// The value of a variable as `$NAME` gives it; empty if it is not set.
    pub fn text(&self, name: &str) -> Result<String, ShellGap> {
        match self.variable(name) {
            Ok(None) => Ok(String::new()),
            Ok(Some(ShellValue::Text(text))) => Ok(text.clone()),
            Ok(Some(ShellValue::List(list))) => Ok(list.first().cloned().unwrap_or_default()),
            Err(gap) => Err(gap.clone()),
        }
    }

    /// Changes the working directory to a folder that a program's option names, from the present one if it is relative.
    pub fn enter(&mut self, folder: &str) {
        self.directory = self.absolute(folder);
    }

    /// True if the last command is known to have failed.
    pub fn fails(&self) -> bool {
        self.status.is_some_and(|status| status != 0)
    }

    /// True if a command before may have changed what a path leads to.
    pub fn may_have_changed(&self, path: &str) -> bool {
        self.may_have_moved(path) || self.touched.iter().any(|touched| is_below(touched, path))
    }

    /// True if a command before may have changed a path, or a folder above it.
    pub(super) fn may_have_moved(&self, path: &str) -> bool {
        self.touched.iter().any(|touched| touched == path || is_below(path, touched))
    }

    /// The mark of a program that could not be started.
    pub(super) fn failure(&self) -> Option<StartMark> {
        self.started.as_ref().ok().copied().flatten().filter(|mark| mark.fails)
    }

    /// Drops the mark of a program that could not be started, where a command handles that. `earlier` is the mark of
    /// one that no command handled.
    pub(super) fn forgive(&mut self, earlier: Option<StartMark>) {
        if self.failure().is_some() {
            self.started = Ok(earlier);
        }
    }

    /// An absolute path, without `.` and `..`.
    pub(super) fn absolute(&self, path: &str) -> Result<String, ShellGap> {
        let whole = if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", self.directory.clone()?) };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => _ = parts.pop(),
                part => parts.push(part),
            }
        }
        Ok(format!("/{}", parts.join("/")))
    }

    /// Sets an exported variable.
    pub fn export(&mut self, name: &str, value: Result<String, ShellGap>) {
        let value = value.map(|value| Some(ShellValue::Text(value)));
        self.variables.insert(name.to_owned(), ShellVariable { value, is_exported: true, at: None });
    }

    /// Assigns a variable; it stays exported if it was.
    pub(super) fn assign(&mut self, name: &str, value: Result<ShellValue, ShellGap>, at: (Rc<str>, usize)) {
        let length = |value: &ShellValue| match value {
            ShellValue::Text(text) => text.len(),
            ShellValue::List(list) => list.iter().map(|text| text.len() + 1).sum(),
        };
        let value = match value {
            Ok(value) if length(&value) > LONGEST => {
                Err(ShellGap::new(format!("{}, line {}: {name} has more than {LONGEST} bytes", at.0, at.1)))
            }
            other => other.map(Some),
        };
        let was_exported = self.variables.get(name).is_some_and(|variable| variable.is_exported);
        let is_exported = was_exported || self.options.exports_all;
        self.variables.insert(name.to_owned(), ShellVariable { value, is_exported, at: Some(at) });
    }

    /// Marks a variable as exported.
    pub(super) fn mark_exported(&mut self, name: &str) {
        let value = if let Some(gap) = &self.gap { Err(gap.clone()) } else { Ok(None) };
        let unset = ShellVariable { value, is_exported: true, at: None };
        self.variables.entry(name.to_owned()).or_insert(unset).is_exported = true;
    }

    /// Unsets a variable.
    pub fn unset(&mut self, name: &str) {
        // A variable that is known to be unset stays so, although any other may be set.
        let unset = ShellVariable { value: Ok(None), is_exported: false, at: None };
        self.variables.insert(name.to_owned(), unset);
    }

    /// Makes a variable unknown.
    pub fn doubt(&mut self, name: &str, gap: &ShellGap) {
        let variable = ShellVariable { value: Err(gap.clone()), is_exported: true, at: None };
        self.variables.insert(name.to_owned(), variable);
    }

    /// Makes everything unknown that a script can set.
    pub fn doubt_all(&mut self, gap: &ShellGap) {
        for variable in self.variables.values_mut() {
            variable.value = Err(gap.clone());
            variable.is_exported = true;
        }
        self.gap.get_or_insert_with(|| gap.clone());
        self.directory = Err(gap.clone());
        self.arguments = Err(gap.clone());
        self.functions.values_mut().for_each(|body| *body = None);
        self.status = None;
    }

    /// The number of entries that a copy makes, and the bytes of their texts.
    pub(super) fn size(&self) -> (usize, usize) {
        let of_list = |list: &[String]| list.iter().map(|text| text.len() + 1).sum::<usize>();
        let of_variable = |variable: &ShellVariable| match &variable.value {
            Ok(Some(ShellValue::Text(text))) => text.len(),
            Ok(Some(ShellValue::List(list))) => of_list(list),
            Ok(None) => 0,
            Err(gap) => gap.why.len(),
        };
        let of_field = |field: &Field| match field {
            Ok(text) => text.len(),
            Err(unknown) => unknown.prefix.len() + unknown.gap.why.len(),
        };
        let arguments = self.arguments.as_deref().unwrap_or_default();
        let entries =
            self.variables.len() + self.functions.len() + self.touched.len() + self.closed.len() + arguments.len();
        let variables = self.variables.iter().map(|(name, variable)| name.len() + of_variable(variable));
        let touched = self.touched.iter().map(String::len);
        let length = |text: &Option<Result<String, ShellGap>>| text.iter().flatten().map(String::len).sum::<usize>();
        let output = length(&self.output) + length(&self.input);
        (entries, variables.chain(touched).chain(arguments.iter().map(of_field)).sum::<usize>() + output)
    }

    /// The variables that a program inherits, by name.
    pub fn exported(&self) -> impl Iterator<Item = (&str, &ShellVariable)> {
        let exported = self.variables.iter().filter(|(_, variable)| {
            variable.is_exported && !matches!(variable.value, Ok(None | Some(ShellValue::List(_))))
        });
        exported.map(|(name, variable)| (name.as_str(), variable))
    }

    /// Appends to the output of a command substitution.
    pub(super) fn print(&mut self, text: Result<String, ShellGap>) {
        match (&mut self.output, text) {
            (None | Some(Err(_)), _) => {}
            (Some(Ok(output)), Ok(text)) => output.push_str(&text),
            (Some(output), Err(gap)) => *output = Err(gap),
        }
        if matches!(&self.output, Some(Ok(output)) if output.len() > LONGEST) {
            self.output = Some(Err(ShellGap::new(format!("a command prints more than {LONGEST} bytes"))));
        }
    }
}

fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_option_names_a_folder_from_the_present_one() {
        let unknown = || Err(ShellGap::new("cd $X"));
        for (current, folder, expected) in [
            (Ok("/srv".to_owned()), "job", Ok("/srv/job".to_owned())),
            (Ok("/srv/job".to_owned()), "../other", Ok("/srv/other".to_owned())),
            (Ok("/srv".to_owned()), "/app", Ok("/app".to_owned())),
            (unknown(), "/app", Ok("/app".to_owned())),
            (unknown(), "job", unknown()),
        ] {
            let mut state = ShellState::new(ShellKind::Posix, "");
            state.directory = current;
            state.enter(folder);
            assert_eq!(state.directory, expected, "{folder}");
        }
    }
}
