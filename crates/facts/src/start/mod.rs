//! The process that the image starts: its Python, and the user, the working directory and the variables that it gets.
//!
//! The command is followed from program to program and through the text of scripts, without running anything. What
//! cannot be followed is unknown, and a user can state it: [`model::StartChoice`].

mod arguments;
mod call;
mod gap;
mod handover;
mod interpreter;
mod job;
mod produce;
mod runner;
mod state;
mod user;
pub(crate) mod wrapper;

#[cfg(test)]
pub(super) use call::PythonFlags;
pub(super) use call::{PythonCall, PythonTarget};
pub use handover::{Handover, NoHandover, handover};
pub(super) use produce::produce;
pub(super) use state::ProcessState;
pub(super) use user::{ContainerUser, homes};

use super::image::is_of_library;
use super::python::ChangedVariables;
use model::{Gap, ImageConfig, ImagePath, conceal_words, is_among};
use rootfs::RootFs;
use shell::Field;

pub(super) use runner::StartFault;
use runner::{Runner, SETTLE, Start, Started, is_python, may_execute, of_command, of_config};

/// Programs that do nothing of interest: an image that starts nothing else waits for a command of its user.
const IDLE: &str = "sleep tail true cat echo sshd pause nvidia-smi ls date tini yes mkdir touch chmod chown chgrp ln rm cp mv \
    tee grep sed awk tr sort uniq cut head wc id whoami hostname uname df du free lscpu lspci ps kill ip ifconfig which \
    ldconfig tput clear stat ibstat ibv_devinfo ibv_devices";

/// A program that the image's command starts in the end.
#[derive(Debug)]
pub(super) enum StartedProgram {
    Python,
    /// A compiled program, without links, and the configuration as it has it.
    Compiled(ImagePath, Box<ImageConfig>),
}

/// Length of a word with which Linux starts no process, in bytes (`MAX_ARG_STRLEN`).
pub(super) const LONGEST_WORD: usize = 128 << 10;

/// What an image starts.
#[derive(Debug)]
pub(super) struct ImageStart {
    /// The call of Python, if the image has one. If it is unknown, so are its variables.
    pub(super) call: Option<PythonCall>,
    /// The command that was followed; `None` if there is none.
    pub(super) command: Option<String>,
    /// The user, as stated by the configuration or for this check.
    pub(super) user: Result<ContainerUser, Gap>,
    /// What was assumed, one sentence each.
    pub(super) assumed: Vec<String>,
    /// Why the process is unknown.
    pub(super) gap: Option<Gap>,
    /// Why the program that the command names does not start.
    pub(super) fault: Option<StartFault>,
    /// True if the command was followed to its end and starts no program.
    pub(super) starts_nothing: bool,
    /// What the command starts in the end, if that is known.
    pub(super) program: Option<StartedProgram>,
    /// The configuration as the process has it.
    pub(super) config: Option<ImageConfig>,
}

impl ImageStart {
    /// Follows the image's command.
    pub(super) fn of(rootfs: &RootFs, config: Option<&ImageConfig>) -> Self {
        let initial = ProcessState::initial(rootfs, config);
        let chosen = config.and_then(|config| config.start.command.as_ref());
        let words = words(config);
        let platform = config.and_then(|config| config.platform.as_ref());
        let mut runner = Runner::new(rootfs, initial.user.clone(), platform);
        runner.is_of_job = chosen.is_some();
        let mut shell = initial.shell();
        let fields = match chosen {
            Some(Ok(command)) if command.is_of_job => job::fields(command, &words, &mut shell),
            _ => words.iter().cloned().map(Ok).collect::<Vec<Field>>(),
        };
        let place = match chosen {
            Some(Ok(command)) => &*command.from,
            _ => "the image's command",
        };
        let start = Start { words: &fields, has_input: false, replaces: false, place: place.to_owned(), name: None };
        let refused = config.and_then(|config| of_config(&runner, config, &initial.directory));
        let refused = refused.or_else(|| of_command(&runner, fields.first(), &shell));
        let outcome = match words.iter().map(String::len).find(|length| *length >= LONGEST_WORD) {
            _ if matches!(chosen, Some(Err(_))) => chosen.cloned().map_or(Ok(None), |chosen| chosen.map(|_| None)),
            _ if refused.is_some() => Ok(None),
            Some(length) => Err(Gap::new(format!(
                "a word of the command has {length} bytes, and Linux starts no process with one of {LONGEST_WORD}"
            ))),
            None => runner.start(&start, &shell).map_err(gap::shown),
        };
        let started = outcome.map(|mark| mark.and_then(|mark| runner.started.get(mark.index).cloned()));
        let is_refused = refused.is_some();
        let mut ends = false;
        let (started, fault) = match started {
            Ok(Some(Started::Nothing(fault))) => (Ok(None), Some(*fault)),
            Ok(Some(Started::Ended(gap))) => {
                ends = true;
                (Err(gap::shown(gap)), None)
            }
            started => (started, refused),
        };
        let mut image = Self {
            call: None,
            command: (!words.is_empty()).then(|| conceal_words(&words).join(" ")),
            user: initial.user.clone(),
            assumed: Vec::new(),
            gap: None,
            starts_nothing: ends || (!is_refused && matches!(started, Ok(None))),
            program: match &started {
                Ok(Some(started)) => program(rootfs, config, started),
                // An image that lacks the Python that its command names is none of another program.
                Ok(None) => {
                    let called = fault.as_ref().map(|fault| &fault.program).or(words.first());
                    called.is_some_and(|word| names_python(word)).then_some(StartedProgram::Python)
                }
                Err(_) => None,
            },
            fault,
            config: None,
        };
        image.settle(rootfs, config, &initial, started);
        image.assumed.extend(std::mem::take(&mut runner.assumed));
        image.assumed.extend(image.call.as_ref().and_then(|call| absent_script(rootfs, call)));
        image.assumed.extend(image.call.as_ref().and_then(|call| runner.others(call)));
        let state = image.call.as_ref().map(|call| &call.state);
        image.config = config.map(|config| state.map_or_else(|| config.clone(), |state| state.applied_to(config)));
        image
    }

    /// Takes over what the code of the Python does to variables of libraries. The loader has read its own before that.
    pub(super) fn change_variables(&mut self, changed: &ChangedVariables) {
        let (Some(config), Some(call)) = (&mut self.config, &mut self.call) else { return };
        let is_read_later = |name: &str| is_of_library(name) && !name.starts_with("LD_");
        for (name, (value, site)) in changed.values.iter().filter(|(name, _)| is_read_later(name)) {
            config.environment.remove(name);
            config.unknown.variables.remove(name);
            call.state.origins.insert(name.clone(), site.clone());
            match value {
                Ok(Some(value)) => _ = config.environment.insert(name.clone(), value.clone()),
                Ok(None) => {}
                Err(gap) => _ = config.unknown.variables.insert(name.clone(), gap.clone()),
            }
        }
    }

    fn settle(
        &mut self,
        rootfs: &RootFs,
        config: Option<&ImageConfig>,
        initial: &ProcessState,
        started: Result<Option<Started>, Gap>,
    ) {
        let chosen = config.and_then(|config| config.start.python.as_deref());
        let path_of = |program: &str, state: &ProcessState| {
            find(rootfs, state, program).unwrap_or_else(|| state.directory.join(program.as_bytes()))
        };
        let is_program = matches!(started, Ok(Some(Started::Program(..))));
        let (state, gap, why) = match started {
            Ok(Some(Started::Python(call))) => {
                self.call = Some(match chosen {
                    Some(program) => {
                        let path = path_of(program, &call.state);
                        call.of(path)
                    }
                    None => *call,
                });
                return;
            }
            Ok(Some(Started::Shell(state))) => (*state, None, "the image starts a shell".to_owned()),
            Ok(Some(Started::Program(path, state))) if is_idle(&path) => {
                (*state, None, format!("the image starts {path}"))
            }
            Ok(Some(Started::Program(path, state))) => {
                let why = format!("the image starts {path}, a compiled program, which may start any Python");
                (*state, Some(Gap::new(why).settled_by(SETTLE)), String::new())
            }
            Ok(Some(Started::Nothing(_) | Started::Ended(_)) | None) => {
                (initial.clone(), None, self.why_nothing(config))
            }
            Err(gap) => (initial.clone(), Some(gap), String::new()),
        };
        if let Some(program) = chosen {
            let program = path_of(program, &state);
            self.assumed
                .extend(gap.map(|gap| format!("the variables and the working directory are the image's: {}", gap.why)));
            self.call = Some(PythonCall::plain(program, state));
            return;
        }
        let python = self.fault.as_ref().and_then(|fault| beside(rootfs, &state, fault));
        let python = python.or_else(|| ["python", "python3"].iter().find_map(|name| find(rootfs, &state, name)));
        let Some(python) = python else {
            self.gap = gap.filter(|_| !is_program);
            return;
        };
        let state = if let Some(gap) = &gap {
            state.unknown(gap)
        } else {
            let which = if self.is_first(rootfs, &state, &python) { ", the first Python in PATH" } else { "" };
            self.assumed.push(format!("the job runs {python}{which}: {why}"));
            state
        };
        self.gap = gap;
        self.call = Some(PythonCall::plain(python, state));
    }

    fn is_first(&self, rootfs: &RootFs, state: &ProcessState, python: &ImagePath) -> bool {
        let first = ["python", "python3"].iter().find_map(|name| find(rootfs, state, name));
        self.fault.is_none() || first.as_ref() == Some(python)
    }

    fn why_nothing(&self, config: Option<&ImageConfig>) -> String {
        match config {
            None => "a root file system has no command".to_owned(),
            Some(config) => match (&config.unknown.command, &self.command) {
                (Some(gap), _) => gap.why.clone(),
                (None, None) => "the image has no command".to_owned(),
                (None, Some(_)) if self.fault.is_some() => "the command does not start".to_owned(),
                (None, Some(_)) => "the image's command starts no Python".to_owned(),
            },
        }
    }
}

/// The words of the command.
fn words(config: Option<&ImageConfig>) -> Vec<String> {
    let Some(config) = config else { return Vec::new() };
    let (entrypoint, arguments) = match &config.start.command {
        Some(Ok(command)) => (command.entrypoint.as_ref(), command.arguments.as_ref()),
        Some(Err(_)) => return Vec::new(),
        None => (None, None),
    };
    let arguments = arguments.unwrap_or(&config.command);
    entrypoint.unwrap_or(&config.entrypoint).iter().chain(arguments).cloned().collect()
}

/// The file of a Python in `PATH` that the user may execute. Python 2 is excluded because no current torch runs on it.
fn find(rootfs: &RootFs, state: &ProcessState, command: &str) -> Option<ImagePath> {
    let is_current =
        |path: &ImagePath| rootfs.open(path).is_ok_and(|(real, _)| !real.file_name().starts_with(b"python2"));
    state.find(command, |path| is_current(path) && may_execute(rootfs, &state.user, path) != Ok(false))
}

/// The Python beside a program that does not start, or beside the one that may be meant. In the folder of the first Python of
/// `PATH`, under whatever name, it is that one.
fn beside(rootfs: &RootFs, state: &ProcessState, fault: &StartFault) -> Option<ImagePath> {
    let real = |path: &ImagePath| rootfs.real_directory(&path.parent());
    let first = ["python", "python3"].iter().find_map(|name| find(rootfs, state, name));
    let near = fault.near.as_ref().filter(|near| near.starts_with('/')).map(|near| ImagePath::from(near.as_str()));
    let folders = [near, fault.file.clone()].into_iter().flatten().map(|path| path.parent());
    folders.flat_map(|folder| [folder.join(b"python"), folder.join(b"python3")]).find_map(|path| {
        let found = find(rootfs, state, &path.to_string())?;
        first.clone().filter(|first| real(first) == real(&found)).or(Some(found))
    })
}

/// True for a name of Python.
fn names_python(word: &str) -> bool {
    word.rsplit('/').next().is_some_and(is_python)
}

/// True for a program that waits for a command of its user.
pub(super) fn is_idle(path: &ImagePath) -> bool {
    std::str::from_utf8(path.file_name()).is_ok_and(|name| is_among(name, IDLE))
}

fn program(rootfs: &RootFs, config: Option<&ImageConfig>, started: &Started) -> Option<StartedProgram> {
    match started {
        Started::Python(_) => Some(StartedProgram::Python),
        Started::Shell(_) | Started::Nothing(_) | Started::Ended(_) => None,
        Started::Program(path, state) => {
            let (real, _) = rootfs.open(path).ok()?;
            Some(StartedProgram::Compiled(real, Box::new(state.applied_to(config?))))
        }
    }
}

/// The call of Python that the image's command makes, if the image has a Python.
#[cfg(test)]
pub(super) fn python(rootfs: &RootFs, config: Option<&ImageConfig>) -> Option<PythonCall> {
    ImageStart::of(rootfs, config).call
}

/// A script that Python is to run and that the image does not have, as a launch that mounts it has it.
fn absent_script(rootfs: &RootFs, call: &PythonCall) -> Option<String> {
    let PythonTarget::Script(path) = &call.target else { return None };
    let is_there = rootfs.open(path).is_ok() || rootfs.is_directory(path) || rootfs.unknown.is_some();
    (!is_there).then(|| format!("the run brings {path}, which the image does not have"))
}

#[cfg(test)]
mod tests;
