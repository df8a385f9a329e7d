//! The programs that a command starts, one by another, up to the one that counts.

mod conda;
mod identity;
mod login;
mod project;

use crate::model::{Found, Gap, ImagePath};
use crate::rootfs::RootFs;
use crate::shell::{
    Evaluator, Field, FileKind, ProgramCall, ShellKind, ShellSource, ShellState, StartMark, Surroundings,
};

use super::super::text;
use super::arguments::{Words, known};
use super::call::PythonCall;
use super::interpreter::{self, PythonArguments};
use super::state::ProcessState;
use super::user::ContainerUser;
use super::wrappers;

/// Advice on a command that cannot be followed.
pub(super) const SETTLE: &str = "name the command of the job with --command, or its interpreter with --python";

/// Commands that are followed.
const STEPS: usize = 50_000;

/// Programs that start one another.
const DEPTH: usize = 24;

/// Words in which a program is started, and how.
#[derive(Clone, Debug)]
pub(super) struct Start<'w> {
    pub(super) words: &'w [Field],
    pub(super) has_input: bool,
    /// Where the command is written, for messages.
    pub(super) place: String,
}

/// A program that counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Started {
    Python(Box<PythonCall>),
    /// A shell that waits for commands.
    Shell(Box<ProcessState>),
    Program(ImagePath, Box<ProcessState>),
}

/// The mark of what is started, or why that is unknown.
pub(super) type Outcome = Result<Option<StartMark>, Gap>;

/// Follows commands in an image.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    pub(super) rootfs: &'a RootFs,
    /// The user of the current process.
    pub(super) user: Result<ContainerUser, Gap>,
    pub(super) started: Vec<Started>,
    steps: usize,
    depth: usize,
}

impl<'a> Runner<'a> {
    pub(super) fn new(rootfs: &'a RootFs, user: Result<ContainerUser, Gap>) -> Self {
        Self { rootfs, user, started: Vec::new(), steps: STEPS, depth: 0 }
    }

    pub(super) fn gap(start: &Start<'_>, why: &str) -> Gap {
        Gap::new(format!("{}: {why}", start.place)).settled_by(SETTLE)
    }

    /// Follows a program that is started with the exported variables of a state.
    pub(super) fn start(&mut self, start: &Start<'_>, state: &ShellState) -> Outcome {
        self.depth += 1;
        let outcome = if self.depth > DEPTH || !self.step() {
            Err(Self::gap(start, "too many programs start one another"))
        } else {
            self.dispatch(start, state)
        };
        self.depth -= 1;
        outcome
    }

    fn dispatch(&mut self, start: &Start<'_>, state: &ShellState) -> Outcome {
        let Some(first) = start.words.first() else { return Ok(None) };
        let Ok(called) = first else {
            return Err(Self::gap(start, "only a shell can determine which program is started"));
        };
        let Some(path) = self.locate(called, state)? else { return Ok(None) };
        let Ok((real, _)) = self.rootfs.open(&path) else { return Ok(None) };
        let base = called.rsplit('/').next().unwrap_or_default();
        if let Some(outcome) = self.by_name(start, state, base, &path, &real) {
            return outcome;
        }
        if self.is_program(&real) {
            return Ok(if base_is_python(&real) || base_is_python(&path) {
                self.python(start, state, &path, start.words.get(1..).unwrap_or_default())?
            } else {
                Some(self.mark(Started::Program(path, Box::new(self.process(state)?))))
            });
        }
        self.script(start, state, called, &path)
    }

    /// Programs whose options are known by their names.
    fn by_name(
        &mut self,
        start: &Start<'_>,
        state: &ShellState,
        base: &str,
        path: &ImagePath,
        real: &ImagePath,
    ) -> Option<Outcome> {
        let rest = start.words.get(1..).unwrap_or_default();
        if let Some(wrapper) = wrappers::find(base) {
            return Some(self.wrapped(start, state, wrapper, rest));
        }
        Some(match base {
            "sh" | "bash" | "dash" | "ash" | "rbash" => login::shell(self, start, state, real, rest),
            "busybox" if matches!(Words::new(rest).peek(), Some("sh" | "ash")) => {
                login::shell(self, start, state, real, rest.get(1..).unwrap_or_default())
            }
            "env" => self.env(start, state, rest),
            "nsys" => self.nsys(start, state, rest),
            "gosu" | "su-exec" | "setpriv" | "su" | "runuser" | "sudo" | "doas" | "s6-setuidgid" | "chpst" => {
                identity::change(self, base, start, state, rest)
            }
            "conda" | "mamba" | "micromamba" if Words::new(rest).peek() == Some("run") => {
                conda::run(self, base, start, state, rest.get(1..).unwrap_or_default())
            }
            "uv" | "poetry" | "pipenv" if Words::new(rest).peek() == Some("run") => {
                project::run(self, base, start, state, rest.get(1..).unwrap_or_default())
            }
            _ if path.parent().file_name() == b"shims" && is_python(base) => self.python(start, state, path, rest),
            _ => return None,
        })
    }

    /// Starts the rest of a command in a state of its own.
    pub(super) fn rest(&mut self, start: &Start<'_>, state: &ShellState, words: &[Field]) -> Outcome {
        if words.is_empty() {
            return Ok(None);
        }
        if let Some(Ok(called)) = words.first()
            && self.locate(called, state)?.is_none()
        {
            return Err(Self::gap(start, &format!("{called} is no program of the image")));
        }
        self.start(&Start { words, has_input: start.has_input, place: start.place.clone() }, state)
    }

    fn wrapped(
        &mut self,
        start: &Start<'_>,
        state: &ShellState,
        wrapper: &wrappers::Wrapper,
        rest: &[Field],
    ) -> Outcome {
        let mut words = Words::new(rest);
        let mut child = state.child(ShellKind::Posix, "");
        while let Some(option) = words.option(&wrapper.options)? {
            if wrapper.directory.contains(&option.name)
                && let Some(directory) = known(option.value.clone())?
            {
                child.directory = Ok(directory);
            }
            // Open MPI: `-x NAME=VALUE`; MPICH: `-genv NAME VALUE`.
            match option.name {
                "-x" => {
                    if let Some(given) = known(option.value)?
                        && let Some((name, value)) = given.split_once('=')
                    {
                        child.export(name, Ok(value.to_owned()));
                    }
                }
                "-genv" | "-env" => {
                    let name = words.next().transpose()?.unwrap_or_default().to_owned();
                    let value = words.next().transpose()?.unwrap_or_default().to_owned();
                    child.export(&name, Ok(value));
                }
                "-mca" | "--mca" | "-gmca" | "--gmca" | "--prtemca" | "-omca" => {
                    words.next();
                    words.next();
                }
                _ => {}
            }
        }
        for _ in 0..wrapper.operands {
            words.next();
        }
        self.rest(start, &child, words.rest())
    }

    fn nsys(&mut self, start: &Start<'_>, state: &ShellState, rest: &[Field]) -> Outcome {
        let mut words = Words::new(rest);
        match words.next().transpose()? {
            Some("profile" | "launch") => {
                words.skip_options(&wrappers::NSYS)?;
                self.rest(start, state, words.rest())
            }
            _ => Ok(None),
        }
    }

    /// `env`.
    fn env(&mut self, start: &Start<'_>, state: &ShellState, rest: &[Field]) -> Outcome {
        const OPTIONS: super::arguments::OptionTable =
            super::arguments::OptionTable::Valued(&["-u", "--unset", "-C", "--chdir", "-S", "--split-string"]);
        let mut child = state.child(ShellKind::Posix, "");
        let mut words = Words::new(rest);
        loop {
            if words.peek() == Some("-") {
                words.next();
                child.variables.clear();
                child.gap = None;
                continue;
            }
            // `-vS` and `-iS` end in the letter of the option with a value.
            if let Some(text) = words.peek()
                && let Some((before, after)) = text.split_once('S')
                && before.starts_with('-')
                && !before.starts_with("--")
                && before.chars().skip(1).all(|c| matches!(c, 'v' | 'i' | '0'))
            {
                words.next();
                if before.contains('i') {
                    child.variables.clear();
                    child.gap = None;
                }
                let text = if after.is_empty() { words.next().transpose()?.unwrap_or_default() } else { after };
                return self.env_string(start, &child, text, words.rest());
            }
            let Some(option) = words.option(&OPTIONS)? else { break };
            let value = known(option.value)?.unwrap_or_default();
            match option.name {
                "-i" | "--ignore-environment" => {
                    child.variables.clear();
                    child.gap = None;
                }
                "-u" | "--unset" => child.unset(&value),
                "-C" | "--chdir" => {
                    let folder = ImagePath::from(child.directory.clone()?.as_str()).join(value.as_bytes());
                    child.directory = Ok(folder.to_string());
                }
                "--split-string" => return self.env_string(start, &child, &value, words.rest()),
                _ => {}
            }
        }
        self.env_assignments(start, &mut child, words.rest())
    }

    fn env_assignments(&mut self, start: &Start<'_>, child: &mut ShellState, mut rest: &[Field]) -> Outcome {
        while let Some((first, after)) = rest.split_first() {
            match first {
                Ok(text) => match text.split_once('=') {
                    Some((name, value)) => child.export(name, Ok(value.to_owned())),
                    None => break,
                },
                Err(unknown) => match unknown.prefix.split_once('=') {
                    Some((name, _)) => child.export(name, Err(unknown.gap.clone())),
                    None => return Err(unknown.gap.clone()),
                },
            }
            rest = after;
        }
        self.rest(start, child, rest)
    }

    /// `env -S STRING`: quotes and blanks as in a shell.
    fn env_string(&mut self, start: &Start<'_>, child: &ShellState, text: &str, rest: &[Field]) -> Outcome {
        let words = crate::shell::commands(text, 1).flat_map(|command| command.words);
        let words: Option<Vec<Field>> = words.map(|word| word.plain().map(Ok)).collect();
        let Some(words) = words else { return Err(Self::gap(start, "env -S expands a variable")) };
        let words: Vec<Field> = words.into_iter().chain(rest.iter().cloned()).collect();
        self.env(start, child, &words)
    }

    /// A text file that a kernel executes: its first line names the interpreter and at most one argument.
    fn script(&mut self, start: &Start<'_>, state: &ShellState, called: &str, path: &ImagePath) -> Outcome {
        let text = match self.read(path) {
            Some(Ok(text)) => text,
            Some(Err(gap)) => return Err(gap),
            None => return Ok(None),
        };
        let rest = start.words.get(1..).unwrap_or_default();
        // The path as the kernel gets it: as it was called, or as it was found in PATH.
        let shown = if called.contains('/') { called.to_owned() } else { path.to_string() };
        let Some(line) = text.strip_prefix("#!") else {
            // A shell runs a file without an interpreter itself.
            return login::file(self, start, state, ShellKind::Posix, &shown, &text, rest);
        };
        let line = line.lines().next().unwrap_or_default().trim();
        let (program, argument) = line.split_once([' ', '\t']).map_or((line, ""), |(one, two)| (one, two.trim()));
        let base = program.rsplit('/').next().unwrap_or_default();
        let interpreter = self.rootfs.open(&ImagePath::from(program)).ok().map(|(real, _)| real);
        let is_shell = shell_kind(base, interpreter.as_ref()).is_some();
        if is_shell && (argument.is_empty() || argument.starts_with('-')) {
            let mut words: Vec<Field> = Vec::new();
            if !argument.is_empty() {
                words.push(Ok(argument.to_owned()));
            }
            words.push(Ok(shown));
            words.extend(rest.iter().cloned());
            let real = interpreter.unwrap_or_else(|| ImagePath::from(program));
            let inner = Start { words: &words, ..start.clone() };
            return login::shell_as(self, &inner, state, base, &real, &words);
        }
        let mut words: Vec<Field> = vec![Ok(program.to_owned())];
        if !argument.is_empty() {
            words.push(Ok(argument.to_owned()));
        }
        words.push(Ok(shown));
        words.extend(rest.iter().cloned());
        self.start(&Start { words: &words, ..start.clone() }, state)
    }

    /// A Python with its arguments.
    pub(super) fn python(
        &mut self,
        start: &Start<'_>,
        state: &ShellState,
        path: &ImagePath,
        rest: &[Field],
    ) -> Outcome {
        if path.file_name().starts_with(b"python2") {
            return Ok(None);
        }
        let arguments = interpreter::arguments(rest, &state.directory)?;
        let arguments = match self.launcher(rest, &arguments, state) {
            Some(launched) => launched?,
            None => arguments,
        };
        if let Some(words) = &arguments.program {
            return self.rest(start, state, words);
        }
        let process = self.process(state)?;
        let PythonArguments { flags, target, .. } = arguments;
        let call = PythonCall { program: path.clone(), flags, target, state: process };
        Ok(Some(self.mark(Started::Python(Box::new(call)))))
    }

    /// What the workers run if the script is a launcher of PyTorch, such as torchrun.
    fn launcher(
        &self,
        rest: &[Field],
        arguments: &PythonArguments,
        state: &ShellState,
    ) -> Option<Result<PythonArguments, Gap>> {
        let super::call::PythonTarget::Script(script) = &arguments.target else { return None };
        let name = std::str::from_utf8(script.file_name()).ok()?;
        let at = rest.iter().position(|word| word.as_deref().is_ok_and(|word| word.ends_with(name)))?;
        let launched = interpreter::launched(name, rest.get(at + 1..)?, &state.directory)?;
        // A script of that name which is not the launcher would be the job's own.
        let text = self.read(script)?.ok()?;
        let is_launcher = ["torch.distributed", "accelerate", "deepspeed"].iter().any(|module| text.contains(module));
        is_launcher.then_some(launched)
    }

    /// The file that a program's name leads to: a path directly, a name through `PATH`.
    pub(super) fn locate(&self, called: &str, state: &ShellState) -> Result<Option<ImagePath>, Gap> {
        if called.contains('/') {
            let path = if called.starts_with('/') {
                ImagePath::from(called)
            } else {
                ImagePath::from(state.directory.clone()?.as_str()).join(called.as_bytes())
            };
            return Ok(Some(path).filter(|path| self.rootfs.is_executable(path)));
        }
        let path = state.text("PATH")?;
        let path = if path.is_empty() { super::state::DEFAULT_PATH.to_owned() } else { path };
        for folder in path.split(':') {
            let folder = if folder.starts_with('/') {
                ImagePath::from(folder)
            } else {
                ImagePath::from(state.directory.clone()?.as_str()).join(folder.as_bytes())
            };
            let path = folder.join(called.as_bytes());
            if self.rootfs.is_executable(&path) {
                return Ok(Some(path));
            }
        }
        Ok(None)
    }

    /// True for a file that the kernel loads itself.
    fn is_program(&self, path: &ImagePath) -> bool {
        let found = self.rootfs.open(path).map(|(_, file)| file.found).unwrap_or_default();
        let is_script = |found: &Result<Found, Gap>| matches!(found, Ok(Found::Text(text)) if text.starts_with(b"#!"));
        let is_elf = found.iter().any(|found| matches!(found, Ok(Found::Elf(_))));
        // An interpreter whose headers could not be read is none the less no script.
        is_elf || (base_is_python(path) && !found.iter().any(is_script))
    }

    /// The text of a file; `None` if it does not exist.
    pub(super) fn read(&self, path: &ImagePath) -> Option<Result<String, Gap>> {
        use crate::model::Fact;
        match text(self.rootfs, path) {
            Fact::Seen { value, .. } => Some(Ok(String::from_utf8_lossy(value).into_owned())),
            Fact::Absent => None,
            Fact::Unknown(gap) => Some(Err(gap.settled_by(SETTLE))),
        }
    }

    /// What a program inherits.
    pub(super) fn process(&self, state: &ShellState) -> Result<ProcessState, Gap> {
        ProcessState::inherited(self.rootfs, state, &self.user)
    }

    pub(super) fn mark(&mut self, started: Started) -> StartMark {
        let rank = if matches!(started, Started::Python(_)) { 2 } else { 1 };
        let index = self.started.iter().position(|other| *other == started).unwrap_or_else(|| {
            self.started.push(started);
            self.started.len() - 1
        });
        StartMark { rank, index }
    }

    /// Follows a script in a shell.
    pub(super) fn evaluate(&mut self, shell: &mut ShellState, sources: &[ShellSource]) -> Outcome {
        let mut evaluator = Evaluator::new(self, SETTLE);
        for source in sources {
            evaluator.run(shell, source);
        }
        shell.started.clone()
    }
}

impl Surroundings for Runner<'_> {
    fn step(&mut self) -> bool {
        self.steps = self.steps.saturating_sub(1);
        self.steps > 0
    }

    fn text(&mut self, path: &str) -> Option<Result<ShellSource, Gap>> {
        let text = self.read(&ImagePath::from(path))?;
        Some(text.map(|text| ShellSource { name: path.to_owned(), text }))
    }

    fn kind(&mut self, path: &str) -> Result<Option<FileKind>, Gap> {
        let image_path = ImagePath::from(path);
        if let Ok((_, file)) = self.rootfs.open(&image_path) {
            let is_executable = self.rootfs.is_executable(&image_path);
            return Ok(Some(FileKind::File { is_empty: file.size == 0, is_executable }));
        }
        if self.rootfs.is_directory(&image_path) {
            return Ok(Some(FileKind::Directory));
        }
        if self.rootfs.exists(&image_path) {
            return Ok(Some(FileKind::Other));
        }
        if is_of_runtime(path) {
            return Err(Gap::new(format!("{path} depends on the machine that runs the container")).settled_by(SETTLE));
        }
        Ok(None)
    }

    fn names(&mut self, folder: &str) -> Result<Vec<String>, Gap> {
        if is_of_runtime(folder) {
            return Err(Gap::new(format!("{folder} depends on the machine that runs the container")).settled_by(SETTLE));
        }
        let folder = ImagePath::from(folder);
        let names = self.rootfs.names(&folder);
        Ok(names.map(|name| String::from_utf8_lossy(name).into_owned()).collect())
    }

    fn program(&mut self, name: &str, state: &ShellState) -> Result<Option<String>, Gap> {
        let found = self.locate(name, state)?;
        if found.is_none() && is_of_runtime(name) {
            return Err(Gap::new(format!("{name} depends on the machine that runs the container")).settled_by(SETTLE));
        }
        Ok(found.map(|path| path.to_string()))
    }

    fn resolve(&mut self, path: &str) -> Result<String, Gap> {
        let image_path = ImagePath::from(path);
        let real = self.rootfs.open(&image_path).map(|(real, _)| real).ok();
        let real = real.or_else(|| self.rootfs.real_directory(&image_path));
        real.map(|real| real.to_string())
            .ok_or_else(|| Gap::new(format!("{path} does not exist in the image")).settled_by(SETTLE))
    }

    fn stand_in(&mut self, words: &[Field], state: &ShellState) -> Option<Result<String, Gap>> {
        if let ([Ok(program), Ok(option)], Ok(user)) = (words, &self.user)
            && program == "id"
            && option == "-u"
            && let Some(id) = user.id
        {
            return Some(Ok(format!("echo {id}")));
        }
        conda::stand_in(self, words, state)
    }

    fn run(&mut self, call: &ProgramCall<'_>, state: &ShellState) -> Outcome {
        let (file, line) = &call.place;
        let place = format!("{file}, line {line}");
        self.start(&Start { words: call.words, has_input: call.has_input, place }, state)
    }
}

/// The kind of a shell by its name and the file that it leads to; `None` if it is no shell that is followed.
pub(super) fn shell_kind(base: &str, real: Option<&ImagePath>) -> Option<ShellKind> {
    let real = real.map_or(&b""[..], ImagePath::file_name);
    match base {
        "bash" | "rbash" => Some(ShellKind::Bash),
        "sh" if real == b"bash" => Some(ShellKind::Bash),
        "sh" | "dash" | "ash" => Some(ShellKind::Posix),
        _ => None,
    }
}

/// True for a name such as `python3.11`.
pub(super) fn is_python(name: &str) -> bool {
    let version = name.strip_prefix("python").map(|version| version.strip_suffix('t').unwrap_or(version));
    version.is_some_and(|version| version.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
}

fn base_is_python(path: &ImagePath) -> bool {
    std::str::from_utf8(path.file_name()).is_ok_and(is_python)
}

/// True for files that the kernel or a container runtime provides.
fn is_of_runtime(path: &str) -> bool {
    const FOLDERS: &[&str] =
        &["/proc", "/sys", "/dev", "/run", "/var/run", "/tmp", "/usr/local/nvidia", "/.dockerenv", "/.singularity.d"];
    let base = path.rsplit('/').next().unwrap_or_default();
    let is_below =
        |folder: &&str| path.strip_prefix(*folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    FOLDERS.iter().any(is_below) || ["nvidia-", "libcuda.", "libnvidia-"].iter().any(|prefix| base.starts_with(prefix))
}
