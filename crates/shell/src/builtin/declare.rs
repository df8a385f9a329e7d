//! Commands that declare variables.

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::state::{Field, ShellState, ShellValue};
use super::super::word::{Word, name_length};
use super::BuiltinCall;

impl<S: Surroundings> Evaluator<'_, S> {
    /// `export`, `readonly`, `declare`, `typeset` and `local`.
    /// The status is 2 where an invalid name ends the shell.
    pub(super) fn declare(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> u8 {
        let plain = |field: &Field| field.as_ref().is_ok_and(|text| text.starts_with(['-', '+']));
        let options: Vec<&str> =
            call.fields.iter().take_while(|field| plain(field)).filter_map(|field| field.as_deref().ok()).collect();
        let has = |letter: char| options.iter().any(|option| option.starts_with('-') && option.contains(letter));
        if (call.name == "export" && has('f')) || (call.name != "export" && has('p')) || has('F') {
            return 0;
        }
        let mut status = 0;
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
                // `NAME[INDEX]` is a name for bash.
                if name.is_empty() || (name_length(&name) != name.len() && !name.contains('[')) {
                    status = 1;
                    if !state.kind.is_bash() {
                        return 2;
                    }
                    continue;
                }
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
                if call.name == "readonly" {
                    state.closed.insert(name.clone());
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
        status
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
                    Some((name, _)) => names.push(name.to_owned()),
                },
                Err(unknown) => {
                    let name = unknown.prefix.split('=').next().unwrap_or_default();
                    if unknown.prefix.contains('=') && name_length(name) == name.len() {
                        state.doubt(name, &unknown.gap);
                    } else {
                        self.doubt_all(state, &unknown.gap);
                    }
                }
            }
        }
        names
    }
}
