//! Computes what a script does (POSIX, "Shell Commands"), as far as it does not depend on a machine.
//!
//! Where only a shell can determine whether a command is run, both cases are followed and joined: what differs is
//! unknown from there on.

mod budget;
mod commands;
mod control;
mod fault;
mod files;
mod loops;
mod nested;
mod redirect;

use std::rc::Rc;

use super::fault::{ScriptCause, ScriptFault};
use super::gap::ShellGap;
use super::merge;
use super::parse::Parser;
use super::state::{Field, ShellState, ShellVariable, StartMark};
use super::syntax::{AndOr, CommandList, Construct, Pipeline, Redirected};

/// Depth of functions and sourced files.
const DEPTH: usize = 24;

/// Why a script is not followed to its end.
const TOO_MANY: &str = "the script runs too many commands to be followed";

/// Depth of constructs and of branches that are followed both.
const NESTING: usize = 100;

/// A script and its name for messages.
#[derive(Clone, Debug)]
pub struct ShellSource {
    /// The name.
    pub name: String,
    /// The script.
    pub text: String,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File {
        /// True if it has no bytes.
        is_empty: bool,
        /// True if it may be executed.
        is_executable: bool,
    },
    /// A directory.
    Directory,
    /// A device, a socket or a pipe.
    Other,
}

/// A program that a script starts.
#[derive(Debug)]
pub struct ProgramCall<'a> {
    /// Its name and arguments.
    pub words: &'a [Field],
    /// Its `argv[0]` (`exec -a`), if it differs from the first word.
    pub name: Option<&'a Field>,
    /// The file and line of the command.
    pub place: (Rc<str>, usize),
    /// True if the program reads a script or a here-document from its standard input.
    pub has_input: bool,
    /// True if it replaces the shell.
    pub replaces: bool,
}

/// The files and programs around a script.
pub trait Surroundings {
    /// Takes steps from what a script may cost; false once they are spent.
    fn spend(&mut self, steps: usize) -> bool;
    /// The text of the file at an absolute path; `None` if there is none.
    fn text(&mut self, path: &str) -> Option<Result<ShellSource, ShellGap>>;
    /// What an absolute path leads to; `None` if nothing is there.
    fn kind(&mut self, path: &str) -> Result<Option<FileKind>, ShellGap>;
    /// The names in a folder.
    fn names(&mut self, folder: &str) -> Result<Vec<String>, ShellGap>;
    /// The path that a program's name leads to; `None` if there is no such program.
    fn program(&mut self, name: &str, state: &ShellState) -> Result<Option<String>, ShellGap>;
    /// A path without links.
    fn resolve(&mut self, path: &str) -> Result<String, ShellGap>;
    /// A script with the effect of a command that would otherwise be too hard to follow.
    fn stand_in(&mut self, words: &[Field], state: &ShellState) -> Option<Result<String, ShellGap>>;
    /// True if a run ordinarily sets a variable, or mounts a folder at an absolute path, that this place needs.
    fn is_given(&mut self, name: &str, place: &(Rc<str>, usize)) -> bool;
    /// Takes note of an absolute path that a redirection at this place writes.
    fn write(&mut self, path: &str, place: &(Rc<str>, usize));
    /// Takes note of a program that is started with the exported variables of a state.
    fn run(&mut self, call: &ProgramCall<'_>, state: &ShellState) -> Result<Option<StartMark>, ShellGap>;
}

/// How a command ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flow {
    Next,
    Break(usize),
    Continue(usize),
    Return,
    Exit,
}

/// A place that a doubtful `return`, `break` or `continue` leads to, and the states that arrive there.
#[derive(Debug)]
enum Frame {
    Function { returned: Vec<ShellState>, locals: Vec<(String, Option<ShellVariable>)> },
    Loop { broken: Vec<ShellState>, continued: Vec<ShellState> },
    Subshell,
}

/// Follows a script.
#[derive(Debug)]
pub struct Evaluator<'s, S> {
    pub(super) surroundings: &'s mut S,
    /// Advice on what only a shell can determine.
    settle: &'static str,
    /// Name of the current file for messages, and its path.
    file: Rc<str>,
    path: String,
    frames: Vec<Frame>,
    depth: usize,
    nesting: usize,
    /// Number of enclosing commands whose failure does not end the script.
    checked: usize,
    /// Number of enclosing command substitutions.
    captured: usize,
    /// Number of command substitutions so far.
    substitutions: usize,
    /// What was started in branches that end the script and may not be taken, each with true for one that fails.
    ended: Vec<(Result<Option<StartMark>, ShellGap>, bool)>,
    /// Why an expansion ends the script.
    pub(super) refused: Option<ScriptFault>,
}

impl<'s, S: Surroundings> Evaluator<'s, S> {
    /// Follows scripts in these surroundings. Every reason that this evaluator finds is settled by `settle`.
    pub fn new(surroundings: &'s mut S, settle: &'static str) -> Self {
        Self {
            surroundings,
            settle,
            file: Rc::from(""),
            path: String::new(),
            frames: Vec::new(),
            depth: 0,
            nesting: 0,
            checked: 0,
            captured: 0,
            substitutions: 0,
            ended: Vec::new(),
            refused: None,
        }
    }

    /// Follows a whole script, and then determines which program counts.
    pub fn run(&mut self, state: &mut ShellState, source: &ShellSource) {
        self.source(state, source, "");
        let why = format!("{}: only a shell can determine which program it starts", source.name);
        let gap = ShellGap::new(why).settled_by(self.settle);
        let mut ends = std::mem::take(&mut self.ended);
        ends.push((std::mem::replace(&mut state.started, Ok(None)), state.fails()));
        // `prepare && exec train`: what happens where the first one fails is of no interest.
        let is_missing =
            |started: &Result<Option<StartMark>, _>| matches!(started, Ok(Some(StartMark { fails: true, .. })));
        let succeeds =
            |(started, fails): &(_, bool)| !fails && matches!(started, Ok(Some(StartMark { fails: false, .. })));
        if ends.iter().any(succeeds) {
            ends.retain(|(started, fails)| !fails || started.is_err());
        } else if ends.iter().any(|(started, _)| is_missing(started)) {
            ends.retain(|(started, fails)| !fails || started.is_err() || is_missing(started));
        }
        let started = ends.into_iter().map(|(started, _)| started).rev();
        state.started = started.reduce(|one, two| merge::started(one, two, &gap)).unwrap_or(Ok(None));
    }

    pub(super) fn gap(&self, line: usize, why: &str) -> ShellGap {
        let place = if line == 0 { self.file.to_string() } else { format!("{}, line {line}", self.file) };
        ShellGap::new(format!("{place}: {why}")).settled_by(self.settle)
    }

    pub(super) fn place(&self, line: usize) -> (Rc<str>, usize) {
        (Rc::clone(&self.file), line)
    }

    pub(super) fn source_path(&self) -> &str {
        &self.path
    }

    /// Gives up on everything that a script can set.
    pub(super) fn lose(&mut self, state: &mut ShellState, line: usize, why: &str) {
        let gap = self.gap(line, why);
        self.doubt_all(state, &gap);
    }

    fn source(&mut self, state: &mut ShellState, source: &ShellSource, path: &str) -> Flow {
        let file = std::mem::replace(&mut self.file, Rc::from(source.name.as_str()));
        let before = std::mem::replace(&mut self.path, path.to_owned());
        let flow = self.script(state, &source.text, 1);
        (self.file, self.path) = (file, before);
        flow
    }

    fn script(&mut self, state: &mut ShellState, text: &str, line: usize) -> Flow {
        self.spend_on_text(text.len());
        let mut parser = Parser::new(text, line, state.kind);
        while let Some(command) = parser.command() {
            let flow = match command {
                Ok(command) => self.and_or(state, &command),
                Err(failed) => return self.unread(state, text, line, failed),
            };
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    fn list(&mut self, state: &mut ShellState, list: &CommandList) -> Flow {
        for command in list {
            let flow = self.and_or(state, command);
            if flow != Flow::Next {
                return flow;
            }
        }
        Flow::Next
    }

    /// A list whose failure decides something, and so does not end the script.
    fn condition(&mut self, state: &mut ShellState, list: &CommandList) -> Flow {
        let earlier = state.failure();
        self.checked += 1;
        let flow = self.list(state, list);
        self.checked -= 1;
        state.forgive(earlier);
        flow
    }

    fn and_or(&mut self, state: &mut ShellState, command: &AndOr) -> Flow {
        if command.is_background {
            self.subshell(state, |this, state| this.chain(state, &command.first, &command.rest, command.line));
            state.status = Some(0);
            return Flow::Next;
        }
        self.chain(state, &command.first, &command.rest, command.line)
    }

    /// Runs a pipeline and those behind it that its status selects.
    fn chain(&mut self, state: &mut ShellState, first: &Pipeline, rest: &[(bool, Pipeline)], line: usize) -> Flow {
        let earlier = state.failure();
        let flow = self.link(state, first, rest.is_empty());
        if flow == Flow::Next { self.chained(state, rest, earlier, line) } else { flow }
    }

    fn chained(
        &mut self,
        state: &mut ShellState,
        mut rest: &[(bool, Pipeline)],
        earlier: Option<StartMark>,
        line: usize,
    ) -> Flow {
        while let Some(((is_and, next), after)) = rest.split_first() {
            match state.status {
                Some(status) if (status == 0) == *is_and => {
                    if status != 0 {
                        state.forgive(earlier);
                    }
                    let flow = self.link(state, next, after.is_empty());
                    if flow != Flow::Next {
                        return flow;
                    }
                }
                Some(_) => _ = self.surroundings.spend(1),
                None => return self.chained_both(state, rest, earlier, line),
            }
            rest = after;
        }
        Flow::Next
    }

    /// Follows the rest of a list for either status of the command before.
    fn chained_both(
        &mut self,
        state: &mut ShellState,
        rest: &[(bool, Pipeline)],
        earlier: Option<StartMark>,
        line: usize,
    ) -> Flow {
        let gap = self.gap(line, "only a shell can determine whether the next command of a list is run");
        self.branch(
            state,
            &gap,
            |this, state| {
                state.status = Some(0);
                this.chained(state, rest, earlier, line)
            },
            |this, state| {
                state.status = Some(1);
                this.chained(state, rest, earlier, line)
            },
        )
    }

    /// Runs a pipeline of a list, whose failure ends a script with `set -e` if it is the last one.
    fn link(&mut self, state: &mut ShellState, pipeline: &Pipeline, is_last: bool) -> Flow {
        let is_checked = usize::from(!is_last || pipeline.is_negated);
        self.checked += is_checked;
        let flow = self.pipeline(state, pipeline);
        self.checked -= is_checked;
        let fails = state.status.is_some_and(|status| status != 0);
        let ends = fails && is_checked == 0 && self.checked == 0 && state.options.exits_on_error;
        if flow == Flow::Next && ends { Flow::Exit } else { flow }
    }

    fn pipeline(&mut self, state: &mut ShellState, pipeline: &Pipeline) -> Flow {
        let earlier = state.failure();
        let flow = match pipeline.commands.as_slice() {
            [only] => self.redirected(state, only, false),
            [first, rest @ ..] => {
                // Each runs in a shell of its own, and the last one prints and decides.
                let output = state.output.take();
                state.output = output.is_some().then(|| Ok(String::new()));
                self.subshell(state, |this, state| this.redirected(state, first, false));
                let input = state.input.take();
                let last = rest.len() - 1;
                for (index, command) in rest.iter().enumerate() {
                    state.input = state.output.take();
                    state.output =
                        if index == last { output.clone() } else { output.is_some().then(|| Ok(String::new())) };
                    self.subshell(state, |this, state| this.redirected(state, command, true));
                }
                state.input = input;
                Flow::Next
            }
            [] => Flow::Next,
        };
        if pipeline.is_negated {
            state.forgive(earlier);
            state.status = state.status.map(|status| u8::from(status == 0));
        }
        flow
    }

    /// Runs commands whose changes to variables are lost.
    fn subshell(&mut self, state: &mut ShellState, run: impl FnOnce(&mut Self, &mut ShellState) -> Flow) -> Flow {
        let mut inner = self.copy(state);
        self.frames.push(Frame::Subshell);
        run(self, &mut inner);
        self.frames.pop();
        state.status = inner.status;
        state.fault = inner.fault;
        state.started = inner.started;
        state.touched = inner.touched;
        state.added = inner.added;
        state.output = inner.output;
        state.input = inner.input;
        Flow::Next
    }

    fn command(&mut self, state: &mut ShellState, command: &Redirected, has_input: bool) -> Flow {
        let line = command.line;
        let before = state.fault.take();
        let flow = match &command.command {
            Construct::Simple(words) => self.simple(state, words, has_input, line),
            Construct::Group(list) => self.list(state, list),
            Construct::Subshell(list) => self.subshell(state, |this, state| this.list(state, list)),
            Construct::If { arms, otherwise } => self.conditional(state, arms, otherwise, line),
            Construct::Loop { is_until, condition, body } => self.while_loop(state, *is_until, condition, body, line),
            Construct::For { name, words, body } => self.for_loop(state, name, words.as_deref(), body, line),
            Construct::Case { word, arms } => self.case(state, word, arms, line),
            Construct::Function { name, body } => {
                state.functions.insert(name.clone(), Some(Rc::clone(body)));
                state.status = Some(0);
                Flow::Next
            }
            Construct::Test(parts) => {
                state.status = self.extended_test(state, parts, line).ok().map(|holds| u8::from(!holds));
                Flow::Next
            }
            Construct::Arithmetic(expression) => {
                state.status = self.arithmetic(state, expression, line).ok().map(|value| u8::from(value == 0));
                Flow::Next
            }
            Construct::Count { parts, body } => self.count(state, parts, body, line),
        };
        let flow = self.refuse(state).unwrap_or(flow);
        if state.fails() && state.fault.is_none() {
            // `exit` has the reason of the command before.
            let own = || self.fault(line, "the command fails, which ends the script", ScriptCause::Surroundings);
            state.fault = Some(before.filter(|_| flow == Flow::Exit).unwrap_or_else(own));
        }
        flow
    }
}
