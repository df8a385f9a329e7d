//! A call of Python.

use crate::model::ImagePath;

use super::ProcessState;

/// A call of a Python interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::facts) struct PythonCall {
    /// The path by which the interpreter is called; links are not followed.
    pub(in crate::facts) program: ImagePath,
    /// Its options that change where modules come from.
    pub(in crate::facts) flags: PythonFlags,
    /// What it runs.
    pub(in crate::facts) target: PythonTarget,
    /// The state that it inherits.
    pub(in crate::facts) state: ProcessState,
}

/// Options of Python that change where modules come from (`python3 --help`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option of the interpreter")]
pub(in crate::facts) struct PythonFlags {
    /// `-I`, which implies the options `-E`, `-P` and `-s`.
    pub(in crate::facts) isolated: bool,
    /// `-E`: ignores the variables `PYTHON*`.
    pub(in crate::facts) ignores_environment: bool,
    /// `-s`: leaves out the user's site directory.
    pub(in crate::facts) no_user_site: bool,
    /// `-S`: does not import `site`.
    pub(in crate::facts) no_site: bool,
    /// `-P`: leaves out the script's or the working directory.
    pub(in crate::facts) safe_path: bool,
}

/// What an interpreter runs, which decides the first entry of `sys.path`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::facts) enum PythonTarget {
    /// No command names it, so no entry is assumed.
    #[default]
    Unstated,
    /// A script, a directory or a zip archive, by its path; links are not followed.
    Script(ImagePath),
    /// `-m MODULE`.
    Module(String),
    /// `-c CODE`.
    Command(String),
    /// Standard input, the prompt, or `-c` with code that is not known.
    Code,
}

impl PythonCall {
    /// A call without options by a process of this state.
    pub(in crate::facts) fn plain(program: ImagePath, state: ProcessState) -> Self {
        Self { program, flags: PythonFlags::default(), target: PythonTarget::Unstated, state }
    }

    /// The same call of another interpreter.
    pub(in crate::facts) fn of(&self, program: ImagePath) -> Self {
        Self { program, ..self.clone() }
    }
}
