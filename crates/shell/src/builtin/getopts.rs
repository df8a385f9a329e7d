//! `getopts` (POSIX, "getopts").

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::state::{ShellState, ShellValue};
use super::BuiltinCall;

/// An option that was read.
struct OptionRead {
    letter: char,
    value: Option<String>,
    /// Arguments that it takes.
    count: usize,
}

impl<S: Surroundings> Evaluator<'_, S> {
    /// Reads the next option; the status, or `None` if it is unknown.
    pub(super) fn getopts(&mut self, state: &mut ShellState, call: &BuiltinCall<'_>) -> Option<u8> {
        let ([Ok(letters), Ok(name)] | [Ok(letters), Ok(name), ..]) = call.fields else {
            self.doubt_names(state, call);
            return None;
        };
        let at = self.place(call.line);
        let assign = |state: &mut ShellState, name: &str, text: String| {
            state.assign(name, Ok(ShellValue::Text(text)), at.clone());
        };
        let index = match state.variable("OPTIND") {
            Ok(None) => Some(1),
            Ok(Some(ShellValue::Text(text))) => text.parse::<usize>().ok().filter(|&index| index > 0),
            _ => None,
        };
        let given: Option<Vec<String>> = match call.fields.get(2..) {
            Some(given) if !given.is_empty() => given.iter().map(|field| field.clone().ok()).collect(),
            _ => state.arguments.as_ref().ok().and_then(|all| all.iter().map(|field| field.clone().ok()).collect()),
        };
        let read = index.zip(given).and_then(|(index, given)| {
            let rest = given.get(index - 1..).unwrap_or_default();
            Some((index, next(letters, rest)?))
        });
        match read {
            Some((index, Some(option))) => {
                assign(state, "OPTIND", (index + option.count).to_string());
                assign(state, name, option.letter.to_string());
                match option.value {
                    Some(value) => assign(state, "OPTARG", value),
                    None => state.unset("OPTARG"),
                }
                Some(0)
            }
            Some((index, None)) => {
                let ends = |given: &[String]| given.get(index - 1).is_some_and(|word| word == "--");
                let words: Vec<String> =
                    state.arguments.iter().flatten().filter_map(|field| field.clone().ok()).collect();
                let taken = usize::from(ends(&words));
                assign(state, "OPTIND", (index + taken).to_string());
                assign(state, name, "?".to_owned());
                Some(1)
            }
            None => {
                self.doubt_names(state, call);
                None
            }
        }
    }
}

/// The option at the beginning of some arguments, or none; `None` outside if it is an error or one of several in a word.
#[expect(clippy::option_option, reason = "unknown, or no option")]
fn next(letters: &str, rest: &[String]) -> Option<Option<OptionRead>> {
    let Some(word) = rest.first().filter(|word| word.starts_with('-') && word.len() > 1 && *word != "--") else {
        return Some(None);
    };
    let mut characters = word.chars().skip(1);
    let letter = characters.next()?;
    let attached: String = characters.collect();
    let mut behind = letters.trim_start_matches(':').split(letter).skip(1);
    let takes_value = behind.next()?.starts_with(':');
    let option = match (takes_value, attached.is_empty()) {
        (false, true) => OptionRead { letter, value: None, count: 1 },
        (true, false) => OptionRead { letter, value: Some(attached), count: 1 },
        (true, true) => OptionRead { letter, value: Some(rest.get(1)?.clone()), count: 2 },
        (false, false) => return None,
    };
    Some(Some(option))
}
