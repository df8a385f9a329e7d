//! Commands of the shell itself (POSIX, "Special Built-In Utilities"; bash, "Shell Builtin Commands").

use crate::model::Gap;

use super::evaluate::{Evaluator, FileKind, Flow, Surroundings};
use super::state::{Field, ShellKind, ShellState, ShellValue, counted};
use super::word::{Word, name_length};

/// Commands that change nothing which is read here, and succeed.
const IDLE: &[&str] = &[
    ":", "true", "umask", "ulimit", "hash", "trap", "wait", "jobs", "disown", "bg", "fg", "history", "bind", "complete",
];

/// Commands of bash alone.
const OF_BASH: &[&str] = &[
    "source",
    "declare",
    "typeset",
    "shopt",
    "let",
    "mapfile",
    "readarray",
    "pushd",
    "popd",
    "builtin",
    "enable",
    "disown",
    "history",
    "bind",
    "complete",
];

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
        if state.kind == ShellKind::Posix && OF_BASH.contains(&name) {
            return None;
        }
        let mut status = Some(0);
        match name {
            _ if IDLE.contains(&name) => {}
            "false" => status = Some(1),
            "echo" => self.echo(state, call),
            "printf" => self.printf(state, call),
            "pwd" => {
                let directory = state.directory.clone();
                state.print(directory.map(|path| path + "\n"));
            }
            "[" | "test" => status = self.test_status(state, call),
            "export" | "readonly" | "declare" | "typeset" | "local" => self.declare(state, call),
            "unset" => unset(state, call),
            "set" => self.set(state, call),
            "shift" => status = shift(state, call),
            "cd" | "pushd" => status = self.change_directory(state, call),
            "popd" => state.directory = Err(self.gap(call.line, "only a shell can determine what popd returns to")),
            "." | "source" => return Some(self.source_file(state, call)),
            "eval" => return Some(self.eval(state, call)),
            "read" | "mapfile" | "readarray" | "getopts" | "let" => {
                self.doubt_names(state, call);
                status = None;
            }
            "shopt" => {
                if call.fields.iter().any(|field| field.as_deref() == Ok("nullglob")) {
                    state.options.drops_unmatched =
                        call.fields.first().is_some_and(|field| field.as_deref() == Ok("-s"));
                }
            }
            // Only an interactive bash expands aliases.
            "alias" | "unalias" => {
                if state.kind == ShellKind::Posix && !call.fields.is_empty() {
                    self.lose(state, call.line, "an alias may change any command");
                }
            }
            "exit" => {
                state.status = None;
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
        if state.kind == ShellKind::Posix && fields.iter().any(|field| field.as_deref() == Ok("==")) {
            return None;
        }
        self.test(state, fields, call.line, 0).ok().map(|holds| u8::from(!holds))
    }

    fn echo(&self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        if state.output.is_none() {
            return;
        }
        let words: Result<Vec<String>, Gap> =
            call.fields.iter().map(|field| field.clone().map_err(|unknown| unknown.gap)).collect();
        let text = words.and_then(|words| {
            let (ending, words) = match words.split_first() {
                Some((option, rest)) if option == "-n" => ("", rest.to_vec()),
                _ => ("\n", words),
            };
            let is_option = words.first().is_some_and(|word| word.starts_with('-'));
            let text = words.join(" ");
            if is_option || text.contains('\\') {
                return Err(self.gap(call.line, "only a shell can determine what echo prints"));
            }
            Ok(text + ending)
        });
        state.print(text);
    }

    fn printf(&self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        let words: Vec<Option<&str>> = call.fields.iter().map(|field| field.as_deref().ok()).collect();
        if words.first() == Some(&Some("-v")) {
            let gap = self.gap(call.line, "only a shell can determine what printf makes");
            match words.get(1) {
                Some(Some(name)) => state.doubt(name, &gap),
                _ => state.doubt_all(&gap),
            }
            return;
        }
        let text = match words.as_slice() {
            [Some("%s"), Some(text)] => Ok((*text).to_owned()),
            [Some("%s\\n"), Some(text)] => Ok(format!("{text}\n")),
            [Some(text)] if !text.contains(['%', '\\']) => Ok((*text).to_owned()),
            _ => Err(self.gap(call.line, "only a shell can determine what printf prints")),
        };
        state.print(text);
    }

    /// `export`, `readonly`, `declare`, `typeset` and `local`.
    fn declare(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        let plain = |field: &Field| field.as_ref().is_ok_and(|text| text.starts_with(['-', '+']));
        let options: Vec<&str> =
            call.fields.iter().take_while(|field| plain(field)).filter_map(|field| field.as_deref().ok()).collect();
        let has = |letter: char| options.iter().any(|option| option.starts_with('-') && option.contains(letter));
        if (call.name == "export" && has('f')) || (call.name != "export" && has('p')) || has('F') {
            return;
        }
        let is_local = call.name == "local" || (matches!(call.name, "declare" | "typeset") && !has('g'));
        let unexports = call.name == "export" && has('n') || options.iter().any(|option| option.starts_with("+x"));
        let exports = (call.name == "export" || has('x')) && !unexports;
        let at = self.place(call.line);
        for word in call.words {
            let assignment =
                word.split_assignment().map(|(name, is_appended, value)| (name.to_owned(), is_appended, value));
            let names: Vec<String> = match &assignment {
                Some((name, ..)) => vec![name.clone()],
                None => self.declared_names(state, word, call.line),
            };
            for name in names {
                if is_local {
                    self.make_local(state, &name);
                }
                if let Some((_, is_appended, value)) = &assignment {
                    self.assign_word(state, &name, value, *is_appended, call.line);
                } else if is_local && call.name == "local" {
                    state.unset(&name);
                }
                // Attributes such as -i, -l, -n and -r change what later assignments do.
                if call.name != "export"
                    && options
                        .iter()
                        .any(|option| option.starts_with('-') && option.contains(['i', 'l', 'u', 'n', 'A']))
                {
                    let gap = self.gap(call.line, &format!("only a shell can determine the value of {name}"));
                    state.doubt(&name, &gap);
                }
                if exports {
                    state.mark_exported(&name);
                    if let Some(variable) = state.variables.get_mut(&name) {
                        variable.at = Some(at.clone());
                    }
                } else if unexports && let Some(variable) = state.variables.get_mut(&name) {
                    variable.is_exported = false;
                }
            }
        }
    }

    /// The names in a word such as `NAME` or `"$NAMES"`.
    fn declared_names(&mut self, state: &mut ShellState, word: &Word, line: usize) -> Vec<String> {
        let mut names = Vec::new();
        for field in self.fields(state, std::slice::from_ref(word)) {
            match field {
                Ok(text) if text.starts_with(['-', '+']) => {}
                Ok(text) => match text.split_once('=') {
                    None => names.push(text),
                    Some((name, value)) if name_length(name) == name.len() => {
                        let at = self.place(line);
                        state.assign(name, Ok(ShellValue::Text(value.to_owned())), at);
                        names.push(name.to_owned());
                    }
                    Some(_) => {}
                },
                Err(unknown) => {
                    let name = unknown.prefix.split('=').next().unwrap_or_default();
                    if unknown.prefix.contains('=') && name_length(name) == name.len() {
                        state.doubt(name, &unknown.gap);
                    } else {
                        state.doubt_all(&unknown.gap);
                    }
                }
            }
        }
        names
    }

    /// `set`.
    fn set(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        let mut fields = call.fields.iter();
        let mut arguments: Option<Vec<Field>> = None;
        while let Some(field) = fields.next() {
            let Ok(text) = field else {
                state.arguments = Err(self.gap(call.line, "only a shell can determine the arguments"));
                return;
            };
            let is_option = text.len() > 1 && text.starts_with(['-', '+']);
            if text == "--" {
                arguments = Some(fields.cloned().collect());
                break;
            }
            if !is_option {
                arguments = Some(std::iter::once(field).chain(fields).cloned().collect());
                break;
            }
            let is_on = text.starts_with('-');
            for letter in text.chars().skip(1) {
                match letter {
                    'e' => state.options.exits_on_error = is_on,
                    'u' => state.options.refuses_unset = is_on,
                    'a' => state.options.exports_all = is_on,
                    'o' => match fields.next().map(|field| field.as_deref()) {
                        Some(Ok("errexit")) => state.options.exits_on_error = is_on,
                        Some(Ok("nounset")) => state.options.refuses_unset = is_on,
                        Some(Ok("noglob")) => state.options.expands_no_paths = is_on,
                        Some(Ok("allexport")) => state.options.exports_all = is_on,
                        _ => {}
                    },
                    'f' => state.options.expands_no_paths = is_on,
                    'n' => self.lose(state, call.line, "only a shell can determine what follows this option"),
                    _ => {}
                }
            }
        }
        if let Some(arguments) = arguments {
            state.arguments = counted(&arguments);
        }
    }

    fn change_directory(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
        let operands: Vec<&Field> = call
            .fields
            .iter()
            .filter(|field| !field.as_ref().is_ok_and(|text| text == "--" || text == "-P" || text == "-L"))
            .collect();
        let target = match operands.as_slice() {
            [] => state.text("HOME"),
            [Ok(text)] if text == "-" => state.text("OLDPWD"),
            [Ok(text)] => Ok(text.clone()),
            [Err(unknown)] => Err(unknown.gap.clone()),
            _ => return Some(1),
        };
        let path = target.and_then(|target| Self::absolute(state, &target));
        let path = match path {
            Ok(path) => path,
            Err(gap) => {
                state.directory = Err(gap);
                return None;
            }
        };
        let at = self.place(call.line);
        let before = state.directory.clone().map(ShellValue::Text);
        match self.kind(state, &path, call.line) {
            Ok(Some(FileKind::Directory)) => {}
            // The script has made it.
            Err(_) if state.touched.contains(&path) => {}
            Ok(_) => return Some(1),
            Err(gap) => {
                state.directory = Err(gap);
                return None;
            }
        }
        state.directory = Ok(path);
        state.assign("OLDPWD", before, at);
        Some(0)
    }

    /// Makes the variables unknown whose names are among the words of a command.
    fn doubt_names(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        let gap = self.gap(call.line, &format!("only a shell can determine what {} sets", call.name));
        for field in call.fields {
            let Ok(text) = field else { return state.doubt_all(&gap) };
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

fn unset(state: &mut ShellState, call: &BuiltinCall<'_>) {
    let is_function = call.fields.iter().any(|field| field.as_deref() == Ok("-f"));
    for field in call.fields {
        match field {
            Ok(name) if name.starts_with('-') => {}
            Ok(name) if is_function => _ = state.functions.remove(name),
            Ok(name) => {
                // Without a variable of this name, a function is removed.
                state.unset(name);
            }
            Err(unknown) => return state.doubt_all(&unknown.gap.clone()),
        }
    }
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
