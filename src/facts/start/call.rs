//! The call of Python that a command makes: the interpreter that it names, else the first one in `PATH`.

use crate::model::{ImageConfig, ImagePath};
use crate::rootfs::RootFs;

use super::ProcessState;

/// A call of a Python interpreter.
#[derive(Clone, Debug)]
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
    /// `-c CODE`, standard input or the prompt.
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

/// The call that the image makes: of the interpreter that the entrypoint or the command name or reach by `conda run`,
/// else of `python`, else of `python3`.
pub(super) fn choose(rootfs: &RootFs, state: &ProcessState, config: Option<&ImageConfig>) -> Option<PythonCall> {
    let words: Vec<&str> =
        config.iter().flat_map(|config| config.entrypoint.iter().chain(&config.command)).map(String::as_str).collect();
    let find = |command: &str| find(rootfs, state, command);
    let named = words.iter().find_map(|word| is_python(word).then(|| find(word)).flatten());
    let program = of_conda(rootfs, state, &words).or(named).or_else(|| find("python")).or_else(|| find("python3"))?;
    Some(PythonCall::plain(program, state.clone()))
}

/// The file that a command leads to. Python 2 is excluded because no current torch runs on it.
fn find(rootfs: &RootFs, state: &ProcessState, command: &str) -> Option<ImagePath> {
    state.find(command, |path| rootfs.open(path).is_ok_and(|(real, _)| !real.file_name().starts_with(b"python2")))
}

fn is_python(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let version = name.strip_prefix("python");
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

/// The interpreter of the environment in `conda run -n NAME …` or `conda run -p DIRECTORY …`.
fn of_conda(rootfs: &RootFs, state: &ProcessState, words: &[&str]) -> Option<ImagePath> {
    let (command, rest) = words.split_first()?;
    let is_conda = matches!(command.rsplit('/').next(), Some("conda" | "mamba" | "micromamba"));
    if !is_conda || rest.first() != Some(&"run") {
        return None;
    }
    let option = |short: &str, long: &str| {
        let at = rest.iter().position(|word| *word == short || *word == long)?;
        rest.get(at + 1).copied()
    };
    let prefix = match (option("-p", "--prefix"), option("-n", "--name")) {
        (Some(folder), _) => ImagePath::from(folder),
        (None, name) => {
            let conda = rootfs.open(&find(rootfs, state, command)?).ok()?.0.parent().parent();
            match name {
                None | Some("base") => conda,
                Some(name) => conda.join(b"envs").join(name.as_bytes()),
            }
        }
    };
    Some(prefix.join(b"bin/python")).filter(|path| rootfs.open(path).is_ok())
}
