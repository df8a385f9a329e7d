//! `set`: options of the shell, and its arguments.

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::state::{Field, ShellState, counted};
use super::BuiltinCall;

impl<S: Surroundings> Evaluator<'_, S> {
    /// `set`.
    pub(super) fn set(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) {
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
}
