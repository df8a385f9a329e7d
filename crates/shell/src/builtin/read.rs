//! `read`: a line of the standard input, split into variables (POSIX, `read`).

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::state::{ShellState, ShellValue};
use super::BuiltinCall;

impl<S: Surroundings> Evaluator<'_, S> {
    /// `read`; its status is `None` if what it sets is unknown.
    pub(super) fn read(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
        let Some((names, line, rest)) = next_line(state, call) else {
            self.doubt_names(state, call);
            let gap = self.gap(call.line, "only a shell can determine what is left to read");
            state.input = state.input.take().map(|_| Err(gap));
            return None;
        };
        let at = self.place(call.line);
        self.spend_on_text(line.iter().map(String::len).sum());
        for (name, value) in names.iter().zip(line) {
            state.assign(name, Ok(ShellValue::Text(value)), at.clone());
        }
        let status = u8::from(rest.is_none());
        state.input = Some(Ok(rest.unwrap_or_default()));
        Some(status)
    }
}

/// The variables, their values, and what is left of the input; that is `None` where the line has no end.
fn next_line(state: &ShellState, call: &BuiltinCall<'_>) -> Option<(Vec<String>, Vec<String>, Option<String>)> {
    let words: Vec<&str> = call.fields.iter().map(|field| field.as_deref().ok()).collect::<Option<_>>()?;
    let count = words.iter().take_while(|word| word.starts_with('-')).count();
    let (options, names) = words.split_at(count);
    let Some(Ok(text)) = &state.input else { return None };
    let separators = match state.variable("IFS").ok()? {
        None => " \t\n",
        Some(ShellValue::Text(text)) => text,
        Some(ShellValue::List(_)) => return None,
    };
    let (line, rest) = text.split_once('\n').map_or((&**text, None), |(line, rest)| (line, Some(rest.to_owned())));
    let is_read = options.iter().all(|option| *option == "-r") && (count > 0 || !line.contains('\\'));
    if names.is_empty() || !is_read {
        return None;
    }
    Some((names.iter().map(|name| (*name).to_owned()).collect(), split(line, separators, names.len())?, rest))
}

/// The values of a line; the last one has the rest. `None` where it ends with a separator, which shells may remove.
fn split(line: &str, separators: &str, count: usize) -> Option<Vec<String>> {
    let is_blank = |c: char| separators.contains(c) && c.is_ascii_whitespace();
    let is_separator = |c: char| separators.contains(c);
    let mut rest = line.trim_matches(is_blank);
    let mut values = Vec::new();
    for _ in 1..count {
        let (value, behind) = rest.split_at(rest.find(is_separator).unwrap_or(rest.len()));
        values.push(value.to_owned());
        let behind = behind.trim_start_matches(is_blank);
        rest = behind.strip_prefix(is_separator).unwrap_or(behind).trim_start_matches(is_blank);
    }
    if rest.ends_with(is_separator) {
        return None;
    }
    values.push(rest.to_owned());
    Some(values)
}
