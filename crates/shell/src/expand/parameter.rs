//! Parameters: their values, and what stands in for a missing one (POSIX, "Parameter Expansion").

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::fault::ScriptCause;
use super::super::gap::ShellGap;
use super::super::kind::ShellKind;
use super::super::state::{ShellState, ShellValue, UnknownField};
use super::super::word::{Parameter, ParameterForm, Word, is_among};
use super::{Expanded, WORD, WordDraft};

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn parameter(
        &mut self,
        state: &mut ShellState,
        parameter: &Parameter,
        is_quoted: bool,
        line: usize,
        draft: &mut WordDraft,
    ) {
        let value = match self.expanded(state, parameter, line) {
            Ok(value) => value,
            Err(gap) => return draft.fail(gap),
        };
        self.spend_on_text(match &value {
            Expanded::Unset => 0,
            Expanded::Text(text) => text.len(),
            Expanded::Many(fields) => fields.iter().map(|field| field.as_ref().map_or(0, String::len) + WORD).sum(),
        });
        match &parameter.form {
            ParameterForm::Plain => {
                if state.options.refuses_unset && matches!(value, Expanded::Unset) {
                    return self.unset(&parameter.name, "which 'set -u' refuses", line, draft);
                }
                self.insert(state, value, is_quoted, draft);
            }
            ParameterForm::Length => {
                let length = match value {
                    Expanded::Unset => 0,
                    Expanded::Text(text) => text.chars().count(),
                    Expanded::Many(fields) => fields.len(),
                };
                draft.push(&length.to_string(), is_quoted);
            }
            ParameterForm::Conditional { sign, has_colon, word } => {
                let is_version = parameter.name == "BASH_VERSION" && matches!(value, Expanded::Many(_));
                let Some(is_there) = is_there(&value, *has_colon && !is_version) else {
                    return self.insert(state, value, is_quoted, draft);
                };
                match (sign, is_there) {
                    ('+', true) | ('-', false) => self.replacement(state, word, is_quoted, draft),
                    ('+', false) => self.insert(state, Expanded::Text(String::new()), is_quoted, draft),
                    (_, true) => self.insert(state, value, is_quoted, draft),
                    ('=', false) => self.assign_default(state, parameter, word, is_quoted, line, draft),
                    _ => self.unset(&parameter.name, "which ends the script", line, draft),
                }
            }
            _ => match self.transformed(state, parameter, value, line) {
                Ok(value) => self.insert(state, value, is_quoted, draft),
                Err(gap) => draft.fail(gap),
            },
        }
    }

    /// A variable that must be set and is not.
    fn unset(&mut self, name: &str, why: &str, line: usize, draft: &mut WordDraft) {
        let why = format!("{name} is not set, {why}");
        let place = self.place(line);
        if !self.surroundings.is_given(name, &place) {
            self.refused.get_or_insert(self.fault(line, &why, ScriptCause::Surroundings));
        }
        draft.fail(self.gap(line, &why));
    }

    /// `${NAME:=WORD}`, whose variable is not set.
    fn assign_default(
        &mut self,
        state: &mut ShellState,
        parameter: &Parameter,
        word: &Word,
        is_quoted: bool,
        line: usize,
        draft: &mut WordDraft,
    ) {
        match self.value(state, word) {
            Ok(text) => {
                let at = self.place(line);
                state.assign(&parameter.name, Ok(ShellValue::Text(text.clone())), at);
                self.splice(state, &text, is_quoted, draft);
            }
            Err(gap) => draft.fail(gap),
        }
    }

    /// The value of a parameter, whatever its form makes of it.
    pub(super) fn expanded(
        &self,
        state: &ShellState,
        parameter: &Parameter,
        line: usize,
    ) -> Result<Expanded, ShellGap> {
        let Parameter { name, index, .. } = parameter;
        let computed_gap = || self.gap(line, &format!("only a shell can determine the value of ${name}"));
        let computed = || Err(computed_gap());
        match name.as_str() {
            "@" => return Ok(Expanded::Many(state.arguments.clone()?)),
            // The number of arguments does not depend on their values.
            "*" => {
                let arguments = state.arguments.clone()?;
                if matches!(parameter.form, ParameterForm::Length | ParameterForm::Substring { .. }) {
                    return Ok(Expanded::Many(arguments));
                }
                let words: Result<Vec<_>, _> = arguments.into_iter().collect();
                // The separator is the first character of IFS.
                let is_default = matches!(state.variable("IFS"), Ok(None));
                let words = words.map_err(|unknown| unknown.gap)?;
                return if is_default { Ok(Expanded::Text(words.join(" "))) } else { computed() };
            }
            "#" => return Ok(Expanded::Text(state.arguments.as_ref().map_err(Clone::clone)?.len().to_string())),
            "0" => return Ok(Expanded::Text(state.name.clone())),
            "?" => return state.status.map_or_else(computed, |status| Ok(Expanded::Text(status.to_string()))),
            "!" | "$" | "-" => return computed(),
            _ => {}
        }
        if let Ok(number) = name.parse::<usize>() {
            let arguments = state.arguments.as_ref().map_err(Clone::clone)?;
            let argument = number.checked_sub(1).and_then(|at| arguments.get(at));
            return match argument {
                None => Ok(Expanded::Unset),
                Some(Ok(text)) => Ok(Expanded::Text(text.clone())),
                // The known beginning of an unknown word is kept.
                Some(Err(unknown)) => Ok(Expanded::Many(vec![Err(unknown.clone())])),
            };
        }
        if name == "BASH_SOURCE" && state.kind.is_bash() {
            // A script that is not sourced is called by its path, which `-c` has none of.
            let path = if self.source_path().is_empty() { &state.name } else { self.source_path() };
            let is_first = matches!(index.as_deref(), None | Some("0")) && path.contains('/');
            return if is_first { Ok(Expanded::Text(path.to_owned())) } else { computed() };
        }
        if name == "PWD" {
            return state.directory.clone().map(Expanded::Text);
        }
        if is_of_shell(name, state.kind) && !state.variables.contains_key(name) {
            // Images are for Linux.
            let prefix = if name == "OSTYPE" { "linux" } else { "" };
            let field = || UnknownField { prefix: prefix.to_owned(), gap: computed_gap() };
            let is_set = matches!(name.as_str(), "OSTYPE" | "BASH_VERSION");
            return if is_set { Ok(Expanded::Many(vec![Err(field())])) } else { computed() };
        }
        let value = state.variable(name).map_err(Clone::clone)?;
        match (value, index.as_deref()) {
            (None, _) => Ok(Expanded::Unset),
            (Some(ShellValue::List(list)), Some("@")) => Ok(Expanded::Many(list.iter().cloned().map(Ok).collect())),
            (Some(ShellValue::List(list)), None) => Ok(list.first().cloned().map_or(Expanded::Unset, Expanded::Text)),
            (Some(ShellValue::List(list)), Some(index)) => match index.parse::<usize>() {
                Ok(index) => Ok(list.get(index).cloned().map_or(Expanded::Unset, Expanded::Text)),
                Err(_) => computed(),
            },
            (Some(ShellValue::Text(text)), None | Some("0" | "@" | "*")) => Ok(Expanded::Text(text.clone())),
            (Some(ShellValue::Text(_)), Some(_)) => computed(),
        }
    }
}

/// True if a value counts as set; `None` if only its beginning is known.
fn is_there(value: &Expanded, has_colon: bool) -> Option<bool> {
    Some(match value {
        Expanded::Unset => false,
        Expanded::Text(text) => !(has_colon && text.is_empty()),
        Expanded::Many(fields) => match fields.as_slice() {
            [] => false,
            [Ok(only)] => !(has_colon && only.is_empty()),
            [Err(unknown)] if has_colon && unknown.prefix.is_empty() => return None,
            _ => true,
        },
    })
}

/// True for a variable that the shell itself sets.
pub(crate) fn is_of_shell(name: &str, kind: ShellKind) -> bool {
    const BOTH: &str = "PPID OPTIND OPTARG PS2 PS4 LINENO OLDPWD _";
    const BASH: &str = "UID EUID GROUPS RANDOM SRANDOM SECONDS HOSTNAME HOSTTYPE MACHTYPE OSTYPE SHELLOPTS SHLVL \
        SHELL DIRSTACK PIPESTATUS FUNCNAME EPOCHSECONDS EPOCHREALTIME TERM COMP_WORDBREAKS";
    is_among(name, BOTH)
        || (kind.is_bash() && (is_among(name, BASH) || (name.starts_with("BASH") && name != "BASH_ENV")))
}
