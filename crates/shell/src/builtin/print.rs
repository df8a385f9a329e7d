//! `echo` and `printf`, whose output a command substitution uses.

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::gap::ShellGap;
use super::super::kind::ShellKind;
use super::super::state::ShellState;
use super::BuiltinCall;

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn echo(&self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        if state.output.is_none() {
            return;
        }
        let words: Result<Vec<String>, ShellGap> =
            call.fields.iter().map(|field| field.clone().map_err(|unknown| unknown.gap)).collect();
        let text = words.and_then(|words| {
            let (ending, words) = match words.split_first() {
                Some((option, rest)) if option == "-n" => ("", rest.to_vec()),
                _ => ("\n", words),
            };
            // dash prints other options.
            let is_option = state.kind != ShellKind::Dash && words.first().is_some_and(|word| word.starts_with('-'));
            let (is_option, words) = match words.split_first() {
                Some((option, rest)) if is_option && option == "-e" => (false, rest.to_vec()),
                _ => (is_option, words),
            };
            let text = words.join(" ");
            if is_option || text.contains('\\') {
                return Err(self.gap(call.line, "only a shell can determine what echo prints"));
            }
            Ok(text + ending)
        });
        state.print(text);
    }

    pub(super) fn printf(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) {
        let words: Vec<Option<&str>> = call.fields.iter().map(|field| field.as_deref().ok()).collect();
        if words.first() == Some(&Some("-v")) {
            let gap = self.gap(call.line, "only a shell can determine what printf makes");
            match words.get(1) {
                Some(Some(name)) => state.doubt(name, &gap),
                _ => self.doubt_all(state, &gap),
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
}
