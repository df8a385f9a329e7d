//! Commands of the shell itself (POSIX, "Special Built-In Utilities"; bash, "Shell Builtin Commands").

mod declare;
mod directory;
mod getopts;
mod options;
mod print;
mod read;

use super::evaluate::{Evaluator, Flow, Surroundings};
use super::fault::ScriptCause;
use super::gap::ShellGap;
use super::kind::ShellKind;
use super::state::{Field, ShellState};
use super::word::{Word, is_among, name_length};

/// Commands that change nothing which is read here, and succeed.
const IDLE: &str = ": true umask ulimit hash trap wait jobs disown bg fg history bind complete";

/// Commands of bash alone.
const OF_BASH: &str = "source declare typeset shopt let mapfile readarray pushd popd builtin enable disown history \
    bind complete";

/// A command after the expansion of its words.
pub(super) struct BuiltinCall<'a> {
    pub(super) name: &'a str,
    /// The words behind the name, before their expansion.
    pub(super) words: &'a [Word],
    pub(super) fields: &'a [Field],
    pub(super) line: usize,
}

impl<S: Surroundings> Evaluator<'_, S> {
    /// Runs a command of the shell; `None` if it is none.
    pub(super) fn builtin(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<Flow> {
        let name = call.name;
        let is_known = state.kind.is_bash() || (state.kind == ShellKind::Busybox && is_among(name, "source let"));
        if !is_known && is_among(name, OF_BASH) {
            if name == "source" && state.kind == ShellKind::Posix {
                self.lose(state, call.line, "only a shell can determine whether it has this command");
            }
            return None;
        }
        let mut status = Some(0);
        match name {
            _ if is_among(name, IDLE) => {}
            "false" => status = Some(1),
            "echo" => self.echo(state, call),
            "printf" => self.printf(state, call),
            "pwd" => {
                let directory = state.directory.clone();
                state.print(directory.map(|path| path + "\n"));
            }
            "[" | "test" => status = self.test_status(state, call),
            "export" | "readonly" | "declare" | "typeset" | "local" => {
                if let Some(flow) = self.refuse_of_bash(state, call) {
                    return Some(flow);
                }
                let declared = self.declare(state, call);
                status = Some(declared);
                if declared == 2 {
                    self.fail(state, call.line, "bad variable name", ScriptCause::Surroundings);
                    return Some(Flow::Exit);
                }
            }
            "unset" => {
                if let Err(gap) = unset(state, call) {
                    self.doubt_all(state, &gap);
                }
            }
            "set" => match self.refuse_of_bash(state, call) {
                Some(flow) => return Some(flow),
                None => self.set(state, call),
            },
            "shift" => status = shift(state, call),
            "cd" | "pushd" => {
                status = self.change_directory(state, call);
                if status == Some(1) {
                    let target = call.fields.last().and_then(|field| field.as_deref().ok()).unwrap_or_default();
                    let message = format!("cd: {} does not exist", target.trim_end());
                    self.fail(state, call.line, &message, ScriptCause::of_word(target));
                }
            }
            "popd" => state.directory = Err(self.gap(call.line, "only a shell can determine what popd returns to")),
            "." | "source" => return Some(self.source_file(state, call)),
            "eval" => return Some(self.eval(state, call)),
            "read" => status = self.read(state, call),
            "mapfile" | "readarray" => {
                self.doubt_names(state, call);
                status = None;
            }
            "getopts" => status = self.getopts(state, call),
            "let" => status = self.compute_all(state, call),
            "shopt" => {
                if call.fields.iter().any(|field| field.as_deref() == Ok("nullglob")) {
                    state.options.drops_unmatched =
                        call.fields.first().is_some_and(|field| field.as_deref() == Ok("-s"));
                }
            }
            // Only an interactive bash expands aliases.
            "alias" | "unalias" => {
                if state.kind != ShellKind::Bash && !call.fields.is_empty() {
                    self.lose(state, call.line, "an alias may change any command");
                }
            }
            "exit" => {
                state.status = match call.fields.first() {
                    None => state.status,
                    Some(field) => field.as_ref().ok().and_then(|text| text.parse().ok()),
                };
                return Some(Flow::Exit);
            }
            "return" => {
                state.status = match call.fields.first() {
                    None => state.status,
                    Some(field) => field.as_ref().ok().and_then(|text| text.parse().ok()),
                };
                return Some(Flow::Return);
            }
            "break" | "continue" => {
                let levels = call.fields.first().map_or(Some(1), |field| field.as_ref().ok()?.parse().ok());
                let Some(levels) = levels else {
                    self.lose(state, call.line, "only a shell can determine which loop ends");
                    return Some(Flow::Next);
                };
                return Some(if name == "break" { Flow::Break(levels) } else { Flow::Continue(levels) });
            }
            "type" | "enable" => status = None,
            _ => return None,
        }
        state.status = status;
        Some(Flow::Next)
    }

    /// Ends a script for dash at an option of bash: errors of special commands end a shell (POSIX, "Consequences of Shell
    /// Errors").
    fn refuse_of_bash(&self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<Flow> {
        let words: Vec<&str> = call.fields.iter().map_while(|field| field.as_deref().ok()).collect();
        let message = match (call.name, words.as_slice()) {
            ("set", [.., before, "pipefail"]) if before.ends_with('o') && state.kind == ShellKind::Posix => {
                self.fail(state, call.line, "set -o pipefail may not be an option", ScriptCause::Surroundings);
                return Some(Flow::Exit);
            }
            ("set", [.., last]) if state.kind != ShellKind::Bash && last.starts_with('-') && last.ends_with('\r') => {
                self.fail(state, call.line, "set: Illegal option", ScriptCause::LineEnds);
                return Some(Flow::Exit);
            }
            _ if state.kind != ShellKind::Dash => return None,
            ("set", [.., before, "pipefail"]) if before.ends_with('o') => "set: Illegal option -o pipefail",
            ("export", ["-f" | "-n", ..]) => "export: Illegal option",
            ("export" | "readonly", [first, ..]) if first.split('=').next().is_some_and(|name| name.ends_with('+')) => {
                "bad variable name"
            }
            _ => return None,
        };
        self.fail(state, call.line, message, ScriptCause::OfBash);
        Some(Flow::Exit)
    }

    /// `let`: the last expression decides.
    fn compute_all(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
        let mut status = None;
        for field in call.fields {
            status = match field {
                Ok(text) => self.compute(state, text, call.line).ok().map(|value| u8::from(value == 0)),
                Err(unknown) => {
                    self.doubt_all(state, &unknown.gap.clone());
                    None
                }
            };
        }
        status
    }

    fn test_status(&mut self, state: &ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
        let mut fields = call.fields;
        if call.name == "[" {
            let Some((last, rest)) = fields.split_last() else { return Some(2) };
            if last.as_deref() != Ok("]") {
                return None;
            }
            fields = rest;
        }
        // dash refuses `==`.
        if !state.kind.is_like_bash() && fields.iter().any(|field| field.as_deref() == Ok("==")) {
            return (state.kind == ShellKind::Dash).then_some(2);
        }
        self.test(state, fields, call.line, 0).ok().map(|holds| u8::from(!holds))
    }

    /// Makes the variables unknown whose names are among the words of a command.
    pub(super) fn doubt_names(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        let gap = self.gap(call.line, &format!("only a shell can determine what {} sets", call.name));
        for field in call.fields {
            let Ok(text) = field else { return self.doubt_all(state, &gap) };
            for name in text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_') {
                if !name.is_empty() && name_length(name) == name.len() {
                    state.doubt(name, &gap);
                }
            }
        }
        for name in ["REPLY", "OPTARG", "OPTIND", "MAPFILE"] {
            state.doubt(name, &gap);
        }
    }
}

fn unset(state: &mut ShellState, call: &BuiltinCall<'_>) -> Result<(), ShellGap> {
    let is_function = call.fields.iter().any(|field| field.as_deref() == Ok("-f"));
    for field in call.fields {
        match field {
            Ok(name) if name.starts_with('-') => {}
            Ok(name) if is_function => _ = state.functions.remove(name),
            Ok(name) => {
                // Without a variable of this name, a function is removed.
                state.unset(name);
            }
            Err(unknown) => return Err(unknown.gap.clone()),
        }
    }
    Ok(())
}

fn shift(state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
    let count = match call.fields.first() {
        None => 1,
        Some(field) => field.as_ref().ok()?.parse::<usize>().ok()?,
    };
    let arguments = state.arguments.as_mut().ok()?;
    if count > arguments.len() {
        return Some(1);
    }
    arguments.drain(..count);
    Some(0)
}
