//! What a command runs in turn: functions, files, texts and command substitutions; and what it assigns.

use super::super::builtin::BuiltinCall;
use super::super::fault::ScriptCause;
use super::super::gap::ShellGap;
use super::super::kind::ShellKind;
use super::super::state::{ShellState, ShellValue, ShellVariable, counted};
use super::super::word::{Piece, Word, name_length};
use super::{Evaluator, FileKind, Flow, Frame, Surroundings};

impl<S: Surroundings> Evaluator<'_, S> {
    /// Runs what `return` ends.
    pub(super) fn nested(
        &mut self,
        state: &mut ShellState,
        run: impl FnOnce(&mut Self, &mut ShellState) -> Flow,
    ) -> Flow {
        self.depth += 1;
        self.frames.push(Frame::Function { returned: Vec::new(), locals: Vec::new() });
        let flow = run(self, state);
        self.depth -= 1;
        let Some(Frame::Function { returned, locals }) = self.frames.pop() else { return flow };
        let gap = self.gap(0, "only a shell can determine where a function returns");
        let ends = flow == Flow::Exit;
        let mut returned = returned.into_iter();
        if ends && let Some(first) = returned.next() {
            let ended = std::mem::replace(state, first);
            self.end(&ended);
        } else if ends {
            return flow;
        }
        for other in returned {
            self.join(state, other, &gap);
        }
        for (name, before) in locals.into_iter().rev() {
            restore(state, &name, before);
        }
        if matches!(flow, Flow::Break(_) | Flow::Continue(_)) { flow } else { Flow::Next }
    }

    /// Makes a variable local to the current function.
    pub(crate) fn make_local(&mut self, state: &ShellState, name: &str) {
        let before = state.variables.get(name).cloned();
        let count = self.frames.last().map_or(0, |frame| match frame {
            Frame::Function { locals, .. } => locals.len(),
            _ => 0,
        });
        self.spend_on_list(count);
        if let Some(Frame::Function { locals, .. }) = self.frames.last_mut()
            && self.depth > 0
            && locals.iter().all(|(other, _)| other != name)
        {
            locals.push((name.to_owned(), before));
        }
    }

    /// `.` and `source`.
    pub(crate) fn source_file(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Flow {
        let why = "only a shell can determine which file is read";
        let name = match call.fields.first() {
            Some(Ok(name)) => name.clone(),
            Some(Err(unknown)) => {
                self.doubt_all(state, &unknown.gap.clone());
                return Flow::Next;
            }
            None => {
                state.status = Some(2);
                return Flow::Next;
            }
        };
        let path = if name.contains('/') { state.absolute(&name) } else { self.sourced(state, &name, call.line) };
        let path = match path {
            Ok(path) => path,
            Err(gap) => {
                self.doubt_all(state, &gap);
                return Flow::Next;
            }
        };
        if Self::is_touched(state, &path) {
            self.lose(state, call.line, why);
            return Flow::Next;
        }
        match self.surroundings.text(&path) {
            Some(Ok(source)) => {
                let arguments = call.fields.get(1..).unwrap_or_default();
                let outer = state.arguments.clone();
                if !arguments.is_empty() {
                    state.arguments = counted(arguments);
                }
                let flow = self.nested(state, |this, state| this.source(state, &source, &path));
                if !arguments.is_empty() {
                    state.arguments = outer;
                }
                flow
            }
            Some(Err(gap)) => {
                self.doubt_all(state, &gap);
                Flow::Next
            }
            None => {
                // A file that a run mounts may well name folders and functions.
                state.added = Some(self.gap(call.line, &format!("{path} is read, which does not exist in the image")));
                self.fail(
                    state,
                    call.line,
                    &format!("{} does not exist", path.trim_end()),
                    ScriptCause::of_word(&path),
                );
                // POSIX: a shell that is not interactive ends where a file to be read does not exist.
                let ends = state.kind != ShellKind::Bash;
                if ends { Flow::Exit } else { Flow::Next }
            }
        }
    }

    /// The file that a name without a slash leads to: in `PATH`, whether it may be executed or not, else in the working
    /// directory, where bash looks last.
    fn sourced(&mut self, state: &ShellState, name: &str, line: usize) -> Result<String, ShellGap> {
        for folder in state.text("PATH")?.split(':') {
            let path = state.absolute(&format!("{folder}/{name}"))?;
            if let Some(FileKind::File { .. }) = self.kind(state, &path, line)? {
                return Ok(path);
            }
        }
        state.absolute(name)
    }

    pub(crate) fn eval(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Flow {
        let words: Result<Vec<&str>, ShellGap> =
            call.fields.iter().map(|field| field.as_deref().map_err(|unknown| unknown.gap.clone())).collect();
        match words {
            Ok(words) => {
                let text = words.join(" ");
                self.depth += 1;
                state.status = Some(0);
                let flow = self.script(state, &text, call.line);
                self.depth -= 1;
                flow
            }
            Err(gap) => {
                self.doubt_all(state, &gap);
                Flow::Next
            }
        }
    }

    /// The output of a command substitution, without the newlines at its end.
    pub(crate) fn substitute(&mut self, state: &mut ShellState, script: &str, line: usize) -> Result<String, ShellGap> {
        let mut inner = self.copy(state);
        inner.output = Some(Ok(String::new()));
        // bash: `$(< FILE)`.
        let reads =
            state.kind.is_bash() && script.trim_start().starts_with('<') && !script.contains([';', '&', '|', '\n']);
        let script = if reads { &*format!("cat {script}") } else { script };
        self.depth += 1;
        self.captured += 1;
        self.substitutions += 1;
        self.frames.push(Frame::Subshell);
        self.script(&mut inner, script, line);
        self.frames.pop();
        self.captured -= 1;
        self.depth -= 1;
        state.status = inner.status;
        state.fault = inner.fault;
        state.touched = inner.touched;
        state.added = inner.added;
        state.input = inner.input;
        let output = inner.output.unwrap_or_else(|| Ok(String::new()));
        // A branch that ends the subshell has printed something else.
        let output = match inner.gap {
            Some(gap) if state.gap.is_none() => Err(gap),
            _ => output,
        };
        output.map(|text| text.trim_end_matches('\n').to_owned())
    }

    pub(super) fn assignment(&mut self, state: &mut ShellState, word: &Word, line: usize) {
        if let Some((name, is_appended, value)) = word.split_assignment() {
            self.assign_word(state, name, &value, is_appended, line);
        } else if let Some(Piece::Text { text, .. }) = word.pieces.first() {
            // `NAME[INDEX]=VALUE`.
            let gap = self.gap(line, "only a shell can determine the value of an array");
            let name = text.get(..name_length(text)).unwrap_or_default();
            state.doubt(name, &gap);
        }
    }

    /// Assigns the value of a word.
    pub(crate) fn assign_word(
        &mut self,
        state: &mut ShellState,
        name: &str,
        word: &Word,
        is_appended: bool,
        line: usize,
    ) {
        if state.closed.contains(name) {
            self.refused = Some(self.fault(line, &format!("{name} is read-only"), ScriptCause::Surroundings));
        }
        let value = if let [Piece::Array(words)] = word.pieces.as_slice() {
            self.array(state, words).map(ShellValue::List)
        } else {
            self.value(state, word).map(ShellValue::Text)
        };
        let value = if is_appended { appended(state, name, value) } else { value };
        let at = self.place(line);
        state.assign(name, value, at);
    }
}

pub(super) fn restore(state: &mut ShellState, name: &str, before: Option<ShellVariable>) {
    match before {
        Some(variable) => _ = state.variables.insert(name.to_owned(), variable),
        None => _ = state.variables.remove(name),
    }
}

fn appended(state: &ShellState, name: &str, value: Result<ShellValue, ShellGap>) -> Result<ShellValue, ShellGap> {
    let before = state.variable(name).map_err(Clone::clone)?.cloned();
    Ok(match (before, value?) {
        (None, value) => value,
        (Some(ShellValue::Text(text)), ShellValue::Text(more)) => ShellValue::Text(text + &more),
        (Some(ShellValue::List(list)), ShellValue::List(more)) => ShellValue::List([list, more].concat()),
        (Some(ShellValue::Text(text)), ShellValue::List(more)) => ShellValue::List([vec![text], more].concat()),
        (Some(ShellValue::List(mut list)), ShellValue::Text(more)) => {
            match list.first_mut() {
                Some(first) => first.push_str(&more),
                None => list.push(more),
            }
            ShellValue::List(list)
        }
    })
}
