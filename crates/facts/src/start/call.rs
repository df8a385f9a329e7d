//! A call of Python.

use model::ImagePath;

use super::ProcessState;

/// A call of a Python interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PythonCall {
    /// The path by which the interpreter is called; links are not followed.
    pub(crate) program: ImagePath,
    /// Its options that change where modules come from.
    pub(crate) flags: PythonFlags,
    /// What it runs.
    pub(crate) target: PythonTarget,
    /// The script that starts it for each worker, such as torchrun.
    pub(crate) launcher: Option<ImagePath>,
    /// The state that it inherits.
    pub(crate) state: ProcessState,
}

/// Options of Python that change where modules come from (`python3 --help`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option of the interpreter")]
pub(crate) struct PythonFlags {
    /// `-I`, which implies the options `-E`, `-P` and `-s`.
    pub(crate) isolated: bool,
    /// `-E`: ignores the variables `PYTHON*`.
    pub(crate) ignores_environment: bool,
    /// `-s`: leaves out the user's site directory.
    pub(crate) no_user_site: bool,
    /// `-S`: does not import `site`.
    pub(crate) no_site: bool,
    /// `-P`: leaves out the script's or the working directory.
    pub(crate) safe_path: bool,
}

/// What an interpreter runs, which decides the first entry of `sys.path`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum PythonTarget {
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
    pub(crate) fn plain(program: ImagePath, state: ProcessState) -> Self {
        Self { program, flags: PythonFlags::default(), target: PythonTarget::Unstated, launcher: None, state }
    }

    /// The same call of another interpreter.
    pub(crate) fn of(&self, program: ImagePath) -> Self {
        Self { program, ..self.clone() }
    }
}
