//! The programs that a command starts, one by another, up to the one that counts.

mod change;
mod conda;
mod env;
mod fault;
mod identity;
mod login;
mod lookup;
mod mark;
mod near;
mod project;
mod python;
mod refused;
mod script;
mod supervisor;
mod surroundings;
mod wrapped;

use std::cell::OnceCell;
use std::collections::BTreeSet;

use model::{Gap, ImagePath, Platform};
use rootfs::RootFs;
use shell::{Evaluator, Field, ShellGap, ShellSource, ShellState, StartMark, Surroundings as _};

use super::arguments::Words;
use super::call::PythonCall;
use super::is_idle;
use super::state::ProcessState;
use super::user::ContainerUser;
use super::wrapper::{Starts, of_program};

use fault::FaultKind;
pub(in super::super) use fault::StartFault;
pub(super) use fault::of_command;
use lookup::base_is_python;
pub(super) use lookup::{is_python, may_execute};
pub(super) use refused::of_config;
use surroundings::{is_of_runtime, of_machine};

/// Advice on a command that cannot be followed.
pub(super) const SETTLE: &str = "name the command of the job with --command, or its interpreter with --python";

/// Commands that are followed.
const STEPS: usize = 50_000;

/// Programs that start one another.
const DEPTH: usize = 24;

/// The steps that a search in `PATH` costs.
pub(super) fn path_cost(state: &ShellState) -> usize {
    state.text("PATH").map_or(0, |path| path.len() / 64)
}

/// Words in which a program is started, and how.
#[derive(Clone, Debug)]
pub(super) struct Start<'w> {
    pub(super) words: &'w [Field],
    pub(super) has_input: bool,
    /// True if it replaces the shell of a script.
    pub(super) replaces: bool,
    /// Where the command is written, for messages.
    pub(super) place: String,
    /// The program's `argv[0]`, if it differs from the first word (`exec -a`).
    pub(super) name: Option<Field>,
}

impl<'w> Start<'w> {
    /// Words of the command whose options are to be read.
    fn options(&self, rest: &'w [Field]) -> Words<'w> {
        let called = self.words.first().and_then(|word| word.as_deref().ok()).unwrap_or_default();
        Words::of(format!("{}: {called}: ", self.place), rest)
    }
}

/// A program that counts.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Started {
    Python(Box<PythonCall>),
    /// A shell that waits for commands.
    Shell(Box<ProcessState>),
    Program(ImagePath, Box<ProcessState>),
    /// A program that could not be started.
    Nothing(Box<StartFault>),
    /// A script that ends with an error for want of what a run may provide.
    Ended(ShellGap),
}

/// The mark of what is started, or why that is unknown.
pub(super) type Outcome = Result<Option<StartMark>, ShellGap>;

/// Follows commands in an image.
#[derive(Debug)]
pub(super) struct Runner<'a> {
    pub(super) rootfs: &'a RootFs,
    /// The user of the current process.
    pub(super) user: Result<ContainerUser, Gap>,
    pub(super) started: Vec<Started>,
    /// What is assumed of commands before, one sentence each.
    pub(super) assumed: BTreeSet<String>,
    /// True for the command of a job, which mounts folders that the image does not have.
    pub(super) is_of_job: bool,
    /// True if `sh` is a known release of dash, once that was looked up.
    is_dash: OnceCell<bool>,
    /// `e_machine` of the image's programs, if known.
    machine: Option<u16>,
    steps: usize,
    depth: usize,
}

impl<'a> Runner<'a> {
    pub(super) fn new(rootfs: &'a RootFs, user: Result<ContainerUser, Gap>, platform: Option<&Platform>) -> Self {
        let machine = platform.and_then(|platform| match &*platform.architecture {
            "amd64" => Some(62),
            "arm64" => Some(183),
            _ => None,
        });
        Self {
            rootfs,
            user,
            started: Vec::new(),
            assumed: BTreeSet::new(),
            is_of_job: false,
            is_dash: OnceCell::new(),
            machine,
            steps: STEPS,
            depth: 0,
        }
    }

    pub(super) fn gap(start: &Start<'_>, why: &str) -> ShellGap {
        ShellGap::new(format!("{}: {why}", start.place)).settled_by(SETTLE)
    }

    /// Follows a program that is started with the exported variables of a state.
    pub(super) fn start(&mut self, start: &Start<'_>, state: &ShellState) -> Outcome {
        self.depth += 1;
        let outcome = if self.depth > DEPTH || !self.spend(1 + path_cost(state)) {
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
        // A shell itself reads a file that the kernel does not load.
        if let Some(fault) = fault::find(self, called, state)?.filter(|fault| fault.kind != FaultKind::Format) {
            return self.fail(start, fault, state);
        }
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
        // The kernel names the interpreter of a script itself.
        script::run(self, &Start { name: None, ..start.clone() }, state, called, &path)
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
        let found = of_program(base, rest);
        if let Some((table, rest)) = found.filter(|(table, _)| table.starts == Starts::Program) {
            return Some(wrapped::run(self, table, start, state, rest));
        }
        if let Some((table, behind)) = found.filter(|(table, _)| table.starts == Starts::Own) {
            return Some(match base {
                "env" => env::env(self, table, start, state, rest),
                "conda" | "mamba" | "micromamba" => conda::run(self, table, base, path, start, state),
                "uv" | "poetry" | "pipenv" | "pdm" => project::run(self, table, base, start, state, behind),
                _ => identity::change(self, table, base, start, state, rest),
            });
        }
        Some(match base {
            "sh" | "bash" | "dash" | "ash" | "rbash" if start.name.is_some() => {
                Err(Self::gap(start, "a shell with an `argv[0]` of its own may read its script in another way"))
            }
            "sh" | "bash" | "dash" | "ash" | "rbash" => login::shell(self, start, state, real, rest),
            "busybox" if matches!(Words::new(rest).peek(), Some("sh" | "ash")) => {
                login::shell(self, start, state, real, rest.get(1..).unwrap_or_default())
            }
            _ if path.parent().file_name() == b"shims" && is_python(base) => self.python(start, state, path, rest),
            _ => return None,
        })
    }

    /// Starts the rest of a command in a state of its own.
    pub(super) fn rest(&mut self, start: &Start<'_>, state: &ShellState, words: &[Field]) -> Outcome {
        self.rest_named(start, state, words, None)
    }

    /// Starts the rest of a command in a state of its own, under another name.
    fn rest_named(&mut self, start: &Start<'_>, state: &ShellState, words: &[Field], name: Option<Field>) -> Outcome {
        if words.is_empty() {
            return Ok(None);
        }
        self.start(&Start { words, name, ..start.clone() }, state)
    }

    /// What a program inherits.
    pub(super) fn process(&self, state: &ShellState) -> Result<ProcessState, ShellGap> {
        ProcessState::inherited(self.rootfs, state, &self.user)
    }

    /// Follows a script in a shell.
    pub(super) fn evaluate(&mut self, shell: &mut ShellState, sources: &[ShellSource]) -> Outcome {
        let mut evaluator = Evaluator::new(self, SETTLE);
        for source in sources {
            evaluator.run(shell, source);
        }
        if shell.fails()
            && let (Ok(mark), Some(fault)) = (&shell.started, &shell.fault)
        {
            let started = StartFault::of_script(fault).map(|fault| Started::Nothing(Box::new(fault)));
            // What a script that cannot work starts first prepares the training.
            let is_first =
                |mark: &StartMark| mark.rank <= 1 || (started.is_some() && mark.rank == 4 && mark.weight < 2);
            if mark.is_some_and(|mark| mark.fails || !is_first(&mark)) {
                return shell.started.clone();
            }
            return Ok(Some(self.mark(started.unwrap_or_else(|| {
                let (file, line) = &fault.place;
                Started::Ended(ShellGap::new(format!("{file}, line {line}: {}", fault.message)).settled_by(SETTLE))
            }))));
        }
        // A script may well go on without a program that only helps it.
        let is_of_interest = match &shell.started {
            Ok(Some(mark)) => match self.started.get(mark.index) {
                Some(Started::Nothing(fault)) => fault.is_of_launcher() || shell.fails(),
                _ => true,
            },
            _ => true,
        };
        if is_of_interest { shell.started.clone() } else { Ok(None) }
    }

    /// The mark of a program that does not start, or why that is unknown.
    fn fail(&mut self, start: &Start<'_>, fault: StartFault, state: &ShellState) -> Outcome {
        let Some(doubt) = self.doubt(&fault, state) else {
            return Ok(Some(self.mark(Started::Nothing(Box::new(fault.of_shell(&start.place))))));
        };
        let is_idle = is_idle(&ImagePath::from(fault.program.as_str()));
        let helps = !fault.is_of_launcher() && (is_idle || !start.replaces);
        let is_settled = helps || (matches!(state.started, Ok(Some(_))) && !start.replaces);
        if is_settled { Ok(None) } else { Err(Self::gap(start, &format!("{}, and {}", fault.cause, doubt.why))) }
    }

    /// Why a program may start that the image does not have.
    fn doubt(&self, fault: &StartFault, state: &ShellState) -> Option<ShellGap> {
        if let Some(gap) = &state.added {
            return Some(gap.clone());
        }
        let path = state.text("PATH").ok()?;
        let folders = path.split(':').filter(|_| fault.kind == FaultKind::NotInPath);
        let mut files = folders.map(|folder| format!("{folder}/{}", fault.program)).collect::<Vec<_>>();
        files.extend([&fault.file, &fault.absent].into_iter().flatten().map(ToString::to_string));
        if let Some(file) = files.iter().find(|file| state.may_have_changed(file)) {
            return Some(ShellGap::new(format!("a command before may have changed {file}")));
        }
        if is_of_runtime(&fault.program) {
            return Some(of_machine(&fault.program));
        }
        // A run mounts a volume where the image has a folder without files, or none.
        let folder = fault.file.as_ref().filter(|_| fault.kind == FaultKind::Missing)?.parent();
        let is_empty = !folder.is_root() && self.rootfs.names(&folder).next().is_none();
        is_empty.then(|| ShellGap::new(format!("{folder} may be mounted")))
    }
}
