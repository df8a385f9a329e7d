//! Why a program does not start, in the words of an engine or of a shell, and what exists in its place (Go, `os/exec`; runc,
//! `libcontainer/standard_init_linux.go`; execve(2); POSIX, "Command Search and Execution").

use model::{Found, ImagePath, is_among, printable};
use rootfs::{FileAccess, Refusal};
use shell::{Field, ShellGap, ShellKind, ShellState};

use super::super::state::DEFAULT_PATH;
use super::super::user::ContainerUser;
use super::lookup::{base_is_python, is_python};
use super::refused::{cause, script_of};
use super::script::interpreter;
use super::{Runner, near};

/// Interpreters of interpreters that a kernel follows, and links of links that are shown.
const DEPTH: usize = 4;

/// Commands of bash that dash does not have.
const OF_BASH: &str = "[[ (( source function declare typeset shopt let mapfile readarray pushd popd dirs select coproc \
    enable builtin caller compgen complete disown help history logout suspend";

/// What is the matter with a program that does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// No folder of `PATH` has it.
    NotInPath,
    /// Its path leads nowhere.
    Missing,
    /// A link leads nowhere.
    Link,
    /// The interpreter of a script does not exist.
    Interpreter,
    /// A mode refuses its execution.
    Mode,
    /// It is a folder.
    Folder,
    /// It is compiled for another processor.
    Machine,
    /// It is neither a program nor begins with the name of an interpreter.
    Format,
    /// It is a script or a command of bash, and dash reads it.
    Shell,
    /// A carriage return ends a line of a script.
    LineEnds,
    /// The image has no such user or group.
    User,
    /// The working directory is none.
    Directory,
}

impl FaultKind {
    /// Its name in facts.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::NotInPath => "not-in-path",
            Self::Missing => "missing",
            Self::Link => "link",
            Self::Interpreter => "interpreter",
            Self::Mode => "mode",
            Self::Folder => "folder",
            Self::Machine => "machine",
            Self::Format => "format",
            Self::Shell => "shell",
            Self::LineEnds => "line-ends",
            Self::User => "user",
            Self::Directory => "directory",
        }
    }

    const fn error(self) -> &'static str {
        match self {
            Self::NotInPath | Self::Missing | Self::Link | Self::Interpreter | Self::Shell | Self::LineEnds => {
                "no such file or directory"
            }
            Self::Mode => "permission denied",
            Self::Folder => "is a directory",
            Self::Machine | Self::Format => "exec format error",
            Self::User => "no such user",
            Self::Directory => "not a directory",
        }
    }
}

/// A program that does not start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StartFault {
    pub(crate) kind: FaultKind,
    /// What an engine or a shell says of it.
    pub(crate) message: String,
    /// What is the matter, as a part of a sentence.
    pub(crate) cause: String,
    /// The word by which it is called.
    pub(crate) program: String,
    /// The file at fault.
    pub(crate) file: Option<ImagePath>,
    /// What the file leads to and the image does not have.
    pub(crate) absent: Option<ImagePath>,
    /// A program that may be meant: a name in `PATH`, or a path.
    pub(crate) near: Option<String>,
}

impl StartFault {
    pub(super) fn new(kind: FaultKind, program: &str, file: Option<ImagePath>, cause: String) -> Self {
        Self { kind, message: String::new(), cause, program: program.to_owned(), file, absent: None, near: None }
    }

    /// True for a program that is Python or starts it, or may be meant to: its failure is that of the job, although the
    /// script goes on.
    pub(super) fn is_of_launcher(&self) -> bool {
        const NAMES: &str = "torchrun accelerate accelerate-launch deepspeed mpirun mpiexec horovodrun";
        [Some(&self.program), self.near.as_ref()].into_iter().flatten().any(|program| {
            let base = program.rsplit('/').next().unwrap_or_default();
            is_python(base) || is_among(base, NAMES)
        })
    }

    /// The fault of a program that starts another one as a user whom the image does not have.
    pub(super) fn of_user(program: &str, place: &str, user: &str) -> Self {
        let message = format!("{place}: {program}: unable to find user {user}");
        let cause = format!("/etc/passwd of the image has no user {user}");
        Self { message, ..Self::new(FaultKind::User, program, None, cause) }
    }

    /// The fault with what an engine says of it. Go's `os/exec` looks a program up before it is executed.
    pub(super) fn of_engine(self, is_found: bool) -> Self {
        let program = &self.program;
        let error = self.kind.error();
        let message = match self.kind {
            _ if is_found => format!("exec {program}: {error}"),
            _ if !program.contains('/') => format!("exec: \"{program}\": executable file not found in $PATH"),
            FaultKind::Missing | FaultKind::Link => format!("exec: \"{program}\": stat {program}: {error}"),
            _ => format!("exec: \"{program}\": {error}"),
        };
        Self { message, ..self }
    }

    /// The fault with what a shell says of it at a place.
    pub(super) fn of_shell(self, place: &str) -> Self {
        let error = match self.kind {
            FaultKind::NotInPath | FaultKind::Link | FaultKind::Shell | FaultKind::LineEnds
                if !self.program.contains('/') =>
            {
                "not found"
            }
            kind => kind.error(),
        };
        let is_of_text = matches!(self.kind, FaultKind::Shell | FaultKind::LineEnds);
        let file = self.file.clone().or_else(|| script_of(place).filter(|_| is_of_text));
        Self { message: format!("{place}: {}: {error}", self.program), file, ..self }
    }
}

/// Why the program of this name does not start; `None` if it does.
pub(super) fn find(runner: &Runner<'_>, called: &str, state: &ShellState) -> Result<Option<StartFault>, ShellGap> {
    match runner.locate(called, state)? {
        Some(path) => Ok(unloadable(runner, called, &path, state)),
        None => not_found(runner, called, state).map(Some),
    }
}

/// What an engine says of the first word of a command; `None` if it is executed, or that is unknown.
pub(crate) fn of_command(runner: &Runner<'_>, first: Option<&Field>, state: &ShellState) -> Option<StartFault> {
    let first = first?.as_deref().ok()?;
    let is_found = runner.locate(first, state).ok()?.is_some();
    Some(find(runner, first, state).ok()??.of_engine(is_found))
}

/// True for a word with the line ends of Windows.
fn has_return(word: &str) -> bool {
    word.ends_with('\r')
}

fn not_found(runner: &Runner<'_>, called: &str, state: &ShellState) -> Result<StartFault, ShellGap> {
    let kind = match called {
        _ if has_return(called) => Some(FaultKind::LineEnds),
        _ if state.kind == ShellKind::Dash && is_among(called, OF_BASH) => Some(FaultKind::Shell),
        _ => None,
    };
    if let Some(kind) = kind {
        return Ok(StartFault::new(kind, called.trim_end(), None, cause(kind)));
    }
    if called.contains('/') {
        let path = ImagePath::from(state.directory.clone()?.as_str()).join(called.as_bytes());
        return Ok(of_path(runner, called, &path, state));
    }
    let path = state.text("PATH")?;
    let path = if path.is_empty() { DEFAULT_PATH.to_owned() } else { path };
    let directory = state.directory.clone()?;
    let files = path.split(':').map(|folder| ImagePath::from(directory.as_str()).join(folder.as_bytes()));
    let mut files = files.map(|folder| folder.join(called.as_bytes()));
    // The file that PATH leads to, if it were executable.
    if let Some(file) = files.find(|file| runner.rootfs.is_link(file.as_bytes()) || runner.rootfs.open(file).is_ok()) {
        return Ok(of_path(runner, called, &file, state));
    }
    let near = near::find(runner, called, state);
    let found = match near.as_deref() {
        Some(near) if near.starts_with('/') => format!("; the image has {near}"),
        Some(near) if !near.contains(' ') => format!("; it has {near}"),
        _ => String::new(),
    };
    let cause = format!("no folder of PATH ({path}) has {called}{found}");
    Ok(StartFault { near, ..StartFault::new(FaultKind::NotInPath, called, None, cause) })
}

/// What is the matter with a path that the user cannot execute.
fn of_path(runner: &Runner<'_>, called: &str, path: &ImagePath, state: &ShellState) -> StartFault {
    if let Some(absent) = absent(runner, path) {
        let cause = format!("{path} is a link to {absent}, which the image does not have");
        let fault = StartFault::new(FaultKind::Link, called, Some(path.clone()), cause);
        return StartFault { absent: Some(absent), ..fault };
    }
    let fault = |kind, cause| StartFault::new(kind, called, Some(path.clone()), cause);
    if runner.rootfs.is_directory(path) {
        return fault(FaultKind::Folder, format!("{path} is a folder"));
    }
    if !runner.rootfs.exists(path) {
        let base = |program: &str| program.rsplit('/').next().unwrap_or_default().to_owned();
        let is_same = |near: &String| {
            let is_beside = ImagePath::from(near.as_str()).parent() == path.parent();
            is_beside || base(near) == base(called) || (is_python(&base(called)) && is_python(&base(near)))
        };
        let near = near::find(runner, called, state).filter(is_same);
        let found = near.as_ref().map_or_else(String::new, |near| format!("; the image has {near}"));
        return StartFault { near, ..fault(FaultKind::Missing, format!("the image has no {path}{found}")) };
    }
    let who = runner.user.as_ref().ok().and_then(ContainerUser::credentials);
    match who.map(|who| runner.rootfs.access(&who, path.as_bytes(), FileAccess::Execute)) {
        Some(Err(Refusal::Denied(denied))) => {
            let user = runner.user.as_ref().ok().and_then(|user| user.id).unwrap_or_default();
            let cause = format!("user {user} may not execute it because of {denied}");
            StartFault::new(FaultKind::Mode, called, Some(denied.path), cause)
        }
        _ => fault(FaultKind::Mode, format!("{path} is not executable")),
    }
}

/// The file that a chain of links ends in and that does not exist; `None` for any other path.
fn absent(runner: &Runner<'_>, path: &ImagePath) -> Option<ImagePath> {
    let mut path = path.clone();
    let mut is_link = false;
    for _ in 0..DEPTH {
        let Some(target) = runner.rootfs.link_target(&path) else { break };
        path = path.parent().join(target);
        is_link = true;
    }
    (is_link && !runner.rootfs.exists(&path)).then_some(path)
}

/// Why a kernel does not load a file that the user may execute.
fn unloadable(runner: &Runner<'_>, called: &str, path: &ImagePath, state: &ShellState) -> Option<StartFault> {
    let mut path = path.clone();
    for _ in 0..DEPTH {
        let (real, file) = runner.rootfs.open(&path).ok()?;
        let fault = |kind, cause| StartFault::new(kind, called, Some(path.clone()), cause);
        if runner.is_program(&real) {
            return other_machine(runner, &real).map(|cause| fault(FaultKind::Machine, cause));
        }
        let text = runner.read(&path)?.ok()?;
        let Some((program, _)) = interpreter(&text) else {
            // A program whose ELF header is not read has no text.
            let is_text = file.size == 0 || !text.contains('\0');
            let what = if file.size == 0 { "is empty" } else { "does not begin with #! and an interpreter" };
            return is_text.then(|| fault(FaultKind::Format, format!("{path} {what}")));
        };
        let next = ImagePath::from(program);
        // The import says whose mode is to blame for an interpreter of Python.
        if runner.rootfs.open(&next).is_ok() && (runner.may_execute(&next).ok()? || base_is_python(&next)) {
            path = next;
            continue;
        }
        if has_return(program) {
            return Some(StartFault::of_first_line(called, path));
        }
        let inner = of_path(runner, program, &next, state);
        let cause = format!("{path} begins with #!{}, and {}", printable(program), inner.cause);
        let is_missing = inner.kind == FaultKind::Missing;
        return Some(StartFault {
            kind: if is_missing { FaultKind::Interpreter } else { inner.kind },
            cause,
            program: called.to_owned(),
            file: if is_missing { Some(path) } else { inner.file },
            absent: if is_missing { Some(next) } else { inner.absent },
            ..inner
        });
    }
    None
}

/// What is the matter with a program of another processor than the image's.
fn other_machine(runner: &Runner<'_>, path: &ImagePath) -> Option<String> {
    let machine = runner.machine?;
    let (_, file) = runner.rootfs.open(path).ok()?;
    let own = file.found.iter().find_map(|found| match found {
        Ok(Found::Elf(elf)) => Some(elf.machine),
        _ => None,
    })?;
    let name = |machine| match machine {
        62 => Some("x86-64"),
        183 => Some("AArch64"),
        _ => None,
    };
    (own != machine).then_some(())?;
    Some(format!("{path} is compiled for {}, and the image is for {}", name(own)?, name(machine)?))
}
