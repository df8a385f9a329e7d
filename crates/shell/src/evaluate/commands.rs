//! Simple commands: by their names, functions, commands of the shell, and programs.

use super::super::builtin::BuiltinCall;
use super::super::fault::ScriptCause;
use super::super::gap::ShellGap;
use super::super::kind::ShellKind;
use super::super::state::{Field, ShellState, StartMark, counted};
use super::super::syntax::Redirected;
use super::super::word::{Word, is_among};
use super::nested::restore;
use super::{Evaluator, FileKind, Flow, ProgramCall, Surroundings};

/// Programs that change no file whose name is among their words.
const READERS: &str = "ls cat grep egrep stat du df head tail wc id whoami groups uname date sleep hostname \
    nvidia-smi which env nproc chown chmod chgrp ldconfig exec command dirname basename realpath readlink sort cut \
    tr find test ulimit python python3 torchrun";

/// Programs that add no program to the image, beside those that are dependable.
const HARMLESS: &str = "ls cat grep egrep stat du df head tail wc id whoami groups uname date hostname nvidia-smi which \
    nproc chown chgrp ldconfig dirname basename realpath readlink sort uniq cut tr test tee awk sed seq ps free kill \
    lscpu lspci ip ifconfig ibstat ibv_devinfo printenv true false numactl";

/// Programs that fail only where the script's author expects them to work.
const DEPENDABLE: &str = "mkdir touch chmod chown ln rm sleep date";

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn simple(&mut self, state: &mut ShellState, words: &[Word], has_input: bool, line: usize) -> Flow {
        let is_assignment = |word: &&Word| {
            word.split_assignment().is_some_and(|(_, is_appended, _)| !is_appended || state.kind.is_bash())
        };
        let count = words.iter().take_while(is_assignment).count();
        let (assignments, words) = words.split_at(count);
        if words.is_empty() {
            let before = self.substitutions;
            for word in assignments {
                self.assignment(state, word, line);
            }
            // Otherwise the status is that of the last command substitution.
            if self.substitutions == before {
                state.status = Some(0);
            }
            return Flow::Next;
        }
        let fields = self.fields(state, words);
        if let Some(flow) = self.refuse(state) {
            return flow;
        }
        if state.kind == ShellKind::Dash && words.first().is_some_and(|word| word.split_assignment().is_some()) {
            self.fail(state, line, "+=: not found", ScriptCause::OfBash);
            return Flow::Next;
        }
        let mut fields = fields.as_slice();
        let mut words = words;
        while let [Ok(name), Ok(next), ..] = fields
            && matches!(name.as_str(), "command" | "builtin")
            && (!next.starts_with('-') || next == "--")
        {
            let count = if next == "--" { 2 } else { 1 };
            (fields, words) = (fields.get(count..).unwrap_or_default(), words.get(count..).unwrap_or_default());
        }
        if let [Ok(name), Ok(option), _, ..] = fields
            && name == "command"
            && option == "-p"
        {
            state.started = Err(self.gap(line, "command -p looks for programs in folders of its own"));
            return Flow::Next;
        }
        let Some(first) = fields.first() else {
            // Every word expands to nothing.
            for word in assignments {
                self.assignment(state, word, line);
            }
            return Flow::Next;
        };
        let is_exec = first.as_deref() == Ok("exec");
        if assignments.is_empty() || is_exec {
            for word in assignments {
                self.assignment(state, word, line);
                if let Some((name, ..)) = word.split_assignment() {
                    state.mark_exported(name);
                }
            }
            return self.named(state, words, fields, has_input, line);
        }
        let mut saved = Vec::new();
        for word in assignments {
            if let Some((name, ..)) = word.split_assignment() {
                saved.push((name.to_owned(), state.variables.get(name).cloned()));
                self.assignment(state, word, line);
                state.mark_exported(name);
            }
        }
        let flow = self.named(state, words, fields, has_input, line);
        for (name, before) in saved {
            restore(state, &name, before);
        }
        flow
    }

    /// Runs a command by its name.
    pub(super) fn named(
        &mut self,
        state: &mut ShellState,
        words: &[Word],
        fields: &[Field],
        has_input: bool,
        line: usize,
    ) -> Flow {
        let Some((first, arguments)) = fields.split_first() else { return Flow::Next };
        if let Some(script) = self.surroundings.stand_in(fields, state) {
            return match script {
                Ok(script) => self.nested(state, |this, state| this.script(state, &script, line)),
                Err(gap) => {
                    self.doubt_all(state, &gap);
                    Flow::Next
                }
            };
        }
        let Ok(name) = first else {
            return self.program(state, fields, None, false, has_input, line);
        };
        if name == "exec" {
            return self.exec(state, arguments, has_input, line);
        }
        match state.functions.get(name).cloned() {
            Some(Some(body)) => return self.call(state, &body, arguments),
            Some(None) => {
                self.lose(state, line, &format!("only a shell can determine what the function {name} does"));
                return Flow::Next;
            }
            None => {}
        }
        let words = words.get(1..).unwrap_or_default();
        let call = BuiltinCall { name, words, fields: arguments, line };
        match self.builtin(state, &call) {
            Some(flow) => flow,
            None => self.program(state, fields, None, false, has_input, line),
        }
    }

    pub(super) fn exec(&mut self, state: &mut ShellState, mut fields: &[Field], has_input: bool, line: usize) -> Flow {
        let mut name = None;
        let mut is_login = false;
        while let [Ok(option), rest @ ..] = fields
            && option.starts_with('-')
        {
            fields = rest;
            if option == "--" {
                break;
            }
            let (letters, attached) = option.split_once('a').unwrap_or((option, ""));
            if option.contains('a') {
                name = if attached.is_empty() { rest.first().cloned() } else { Some(Ok(attached.to_owned())) };
                fields = rest.get(usize::from(attached.is_empty())..).unwrap_or_default();
            }
            is_login |= letters.contains('l');
            if letters.contains('c') {
                state.variables.values_mut().for_each(|variable| variable.is_exported = false);
            }
        }
        if fields.is_empty() {
            state.status = Some(0);
            return Flow::Next;
        }
        if is_login {
            name = name.or_else(|| fields.first().cloned()).map(|name| name.map(|name| format!("-{name}")));
        }
        self.program(state, fields, name.as_ref(), true, has_input, line)
    }

    pub(super) fn program(
        &mut self,
        state: &mut ShellState,
        fields: &[Field],
        called: Option<&Field>,
        replaces: bool,
        has_input: bool,
        line: usize,
    ) -> Flow {
        let name = fields.first().and_then(|field| field.as_deref().ok()).unwrap_or_default();
        let name = name.rsplit('/').next().unwrap_or_default();
        let mut fails = false;
        if self.captured > 0 {
            self.captured_program(state, name, fields, line);
        } else {
            self.spend_on(state);
            // It may read what the script reads.
            if !has_input && !is_among(name, DEPENDABLE) {
                let gap = self.gap(line, &format!("only a shell can determine what {name} leaves to read"));
                state.input = state.input.take().map(|_| Err(gap));
            }
            let call = ProgramCall { words: fields, name: called, place: self.place(line), has_input, replaces };
            match self.surroundings.run(&call, state) {
                Ok(None) => {}
                Ok(Some(mark)) => {
                    let before = state.started.as_ref().ok().copied().flatten();
                    fails = mark.fails;
                    // A program that only helps the script counts less than one that fails.
                    let own = (mark.rank.max(u8::from(fails)), mark.weight);
                    let counts = |before: StartMark| {
                        if replaces {
                            !fails || before.weight <= mark.weight
                        } else {
                            (before.rank, before.weight) <= own
                        }
                    };
                    if before.is_none_or(counts) {
                        state.started = Ok(Some(mark));
                    }
                }
                Err(gap) => state.started = Err(gap),
            }
            state.status = if fails { Some(127) } else { is_among(name, DEPENDABLE).then_some(0) };
            if !fails && self.may_add_programs(state, name, fields) {
                state.added = Some(self.gap(line, &format!("{name} may add programs to the image")));
            }
        }
        if !fails && !is_among(name, READERS) {
            self.spend_on_list(fields.len() * state.touched.len());
            for text in fields.iter().skip(1).flatten() {
                Self::touch(state, text);
            }
        }
        if replaces { Flow::Exit } else { Flow::Next }
    }

    /// True for a program after which another one may exist, or be executable.
    fn may_add_programs(&mut self, state: &ShellState, name: &str, fields: &[Field]) -> bool {
        // A Python that installs nothing only computes.
        if is_among(name, "python python3 torchrun") {
            return fields.iter().flatten().any(|word| matches!(word.as_str(), "pip" | "setup.py" | "install"));
        }
        if name != "chmod" {
            return !is_among(name, HARMLESS) && !is_among(name, DEPENDABLE);
        }
        let files = fields.iter().skip(2).map(|field| field.as_deref().ok());
        let mut kinds = files.map(|file| Some(self.surroundings.kind(&state.absolute(file?).ok()?)));
        kinds.any(|kind| match kind {
            Some(Ok(Some(FileKind::File { is_executable, .. }))) => !is_executable,
            Some(Ok(Some(FileKind::Directory))) => fields.iter().any(|field| field.as_deref() == Ok("-R")),
            Some(Ok(_)) => false,
            Some(Err(_)) | None => true,
        })
    }

    /// A program whose output is used.
    pub(super) fn captured_program(&mut self, state: &mut ShellState, name: &str, fields: &[Field], line: usize) {
        let words: Option<Vec<&str>> = fields.iter().map(|field| field.as_deref().ok()).collect();
        let words = words.unwrap_or_default();
        let unknown = self.gap(line, &format!("only a shell can determine what {name} prints"));
        let text = match (name, words.get(1..).unwrap_or_default()) {
            ("uname", [] | ["-s"]) => Ok("Linux".to_owned()),
            ("ls", [folder] | ["-A", folder]) => {
                let shows_all = words.len() == 3;
                self.listed(state, folder, shows_all, line)
            }
            ("cat", paths @ ([] | [_])) => self.lines(state, paths, |_| true, line),
            ("grep" | "egrep", ["-v", "^#", paths @ ..]) if paths.len() < 2 => {
                self.lines(state, paths, |line| !line.starts_with('#'), line)
            }
            ("xargs", []) => match state.input.take().unwrap_or(Err(unknown.clone())) {
                Ok(text) if text.contains(['"', '\'', '\\']) => Err(unknown),
                text => text.map(|text| text.split_whitespace().collect::<Vec<_>>().join(" ")),
            },
            ("dirname", [path]) => Ok(dirname(path)),
            ("basename", [path]) => Ok(basename(path).to_owned()),
            ("realpath", [path]) | ("readlink", ["-f", path]) => {
                state.absolute(path).and_then(|path| self.surroundings.resolve(&path))
            }
            ("command", ["-v", program]) | ("which", [program]) => match self.surroundings.program(program, state) {
                Ok(Some(path)) => Ok(path),
                Ok(None) => {
                    state.status = Some(1);
                    return;
                }
                Err(gap) => Err(gap),
            },
            _ => {
                state.input = state.input.take().map(|_| Err(unknown.clone()));
                state.status = None;
                return state.print(Err(unknown));
            }
        };
        state.status = text.is_ok().then_some(0);
        state.print(text.map(|text| text + "\n"));
    }

    /// The names in a folder, one a line.
    fn listed(&mut self, state: &ShellState, folder: &str, shows_all: bool, line: usize) -> Result<String, ShellGap> {
        let path = state.absolute(folder)?;
        if self.kind(state, &path, line)? != Some(FileKind::Directory) {
            return Err(self.gap(line, &format!("{path} is not a folder")));
        }
        let names = self.names(state, &path, line)?;
        Ok(names.into_iter().filter(|name| shows_all || !name.starts_with('.')).collect::<Vec<_>>().join("\n"))
    }

    /// The lines of a file, or else of the input, that are selected.
    fn lines(
        &mut self,
        state: &mut ShellState,
        paths: &[&str],
        is_selected: fn(&str) -> bool,
        line: usize,
    ) -> Result<String, ShellGap> {
        let unknown = self.gap(line, "only a shell can determine what a program reads");
        let text = match paths.first() {
            Some(path) => self.content(state, path, line),
            None => state.input.take().unwrap_or(Err(unknown)),
        }?;
        let text = text.trim_end_matches('\n');
        Ok(text.split('\n').filter(|line| is_selected(line)).collect::<Vec<_>>().join("\n"))
    }

    /// The text of a file.
    pub(super) fn content(&mut self, state: &ShellState, path: &str, line: usize) -> Result<String, ShellGap> {
        let path = state.absolute(path)?;
        let unknown = self.gap(line, &format!("only a shell can determine the content of {path}"));
        if Self::is_touched(state, &path) {
            return Err(unknown);
        }
        let source = self.surroundings.text(&path).unwrap_or(Err(unknown))?;
        self.spend_on_text(source.text.len());
        Ok(source.text)
    }

    /// Calls a function.
    pub(super) fn call(&mut self, state: &mut ShellState, body: &Redirected, arguments: &[Field]) -> Flow {
        let outer = std::mem::replace(&mut state.arguments, counted(arguments));
        let flow = self.nested(state, |this, state| this.redirected(state, body, false));
        state.arguments = outer;
        flow
    }
}

fn dirname(path: &str) -> String {
    let path = path.trim_end_matches('/');
    match path.rsplit_once('/') {
        Some((folder, _)) => {
            let folder = folder.trim_end_matches('/');
            if folder.is_empty() { "/".to_owned() } else { folder.to_owned() }
        }
        None if path.is_empty() => "/".to_owned(),
        None => ".".to_owned(),
    }
}

fn basename(path: &str) -> &str {
    path.trim_end_matches('/').rsplit('/').next().unwrap_or_default()
}
