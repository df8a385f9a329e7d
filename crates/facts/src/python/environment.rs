//! Statements that change the variables of the process.

use super::expression::{CodeScope, closed, split, string};

/// What a statement does to the variables of its process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum VariableEffect {
    /// Sets a variable, to a value that may not be known.
    Set(String, Option<String>),
    /// Sets a variable unless it is set.
    Default(String, Option<String>),
    /// Removes a variable.
    Unset(String),
    /// Sets the variables of a file of `NAME=VALUE` lines: its path, empty for the `.env` that is nearest to the code, and true
    /// if they replace others.
    Load(Option<String>, bool),
    /// Sets variables whose names are not known.
    Unknown,
}

/// Functions that change variables, as they are called.
const FUNCTIONS: &[&str] = &[
    "os.environ.setdefault(",
    "os.environ.update(",
    "os.environ.pop(",
    "os.environ.clear(",
    "os.environ.__setitem__(",
    "os.putenv(",
    "os.unsetenv(",
    "dotenv.load_dotenv(",
    // The new program begins with the variables so far, and those that the loader reads count then.
    "os.execl",
    "os.execv",
];

/// The effects of a statement on variables; `None` if it has none.
pub(super) fn effects(text: &str, scope: &CodeScope<'_>) -> Option<Vec<VariableEffect>> {
    use VariableEffect::{Default, Load, Set, Unknown, Unset};
    if let Some(rest) = text.strip_prefix("os.environ[") {
        let (name, rest) = closed(rest)?;
        let rest = rest.trim_start();
        let value = rest.strip_prefix('=').filter(|value| !value.starts_with('='));
        let value = value.map(|value| string(value, scope)).or_else(|| rest.contains('=').then_some(None))?;
        return Some(vec![string(name, scope).map_or(Unknown, |name| Set(name, value))]);
    }
    if let Some(rest) = text.strip_prefix("del os.environ[") {
        return Some(vec![string(closed(rest)?.0, scope).map_or(Unknown, Unset)]);
    }
    if let Some(rest) = text.strip_prefix("os.environ") {
        if let Some(mapping) = rest.trim_start().strip_prefix("|=") {
            return Some(mapped(mapping.trim(), scope));
        }
        if rest.trim_start().strip_prefix('=').is_some_and(|value| !value.starts_with('=')) {
            return Some(vec![Unknown]);
        }
    }
    let (function, rest) = FUNCTIONS.iter().find_map(|function| Some((*function, text.split_once(function)?.1)))?;
    let arguments = closed(rest).and_then(|(arguments, _)| split(arguments, ','));
    let Some(arguments) = arguments else { return Some(vec![Unknown]) };
    let argument = |index: usize| arguments.get(index).and_then(|argument| string(argument, scope));
    let named = |effect: fn(String, Option<String>) -> VariableEffect| {
        argument(0).map_or(Unknown, |name| effect(name, argument(1)))
    };
    Some(match function {
        "os.environ.setdefault(" => vec![named(Default)],
        "os.environ.__setitem__(" | "os.putenv(" => vec![named(Set)],
        "os.environ.pop(" | "os.unsetenv(" => vec![argument(0).map_or(Unknown, Unset)],
        "os.environ.update(" => arguments.iter().flat_map(|argument| mapped(argument.trim(), scope)).collect(),
        "dotenv.load_dotenv(" => {
            let given = |name: &str| {
                let mut values = arguments.iter().filter_map(|argument| argument.trim().strip_prefix(name));
                values.find_map(|value| value.trim_start().strip_prefix('='))
            };
            let replaces = match given("override").map(str::trim) {
                None | Some("False") => false,
                Some("True") => true,
                Some(_) => return Some(vec![Unknown]),
            };
            let first = arguments.first().map(|first| first.trim()).filter(|first| !first.contains('='));
            match given("dotenv_path").or(first).map(str::trim) {
                None | Some("" | "None" | "dotenv.find_dotenv()") => vec![Load(None, replaces)],
                Some(file) => vec![string(file, scope).map_or(Unknown, |file| Load(Some(file), replaces))],
            }
        }
        _ => vec![Unknown],
    })
}

/// The settings of an argument of `os.environ.update`.
fn mapped(text: &str, scope: &CodeScope<'_>) -> Vec<VariableEffect> {
    use VariableEffect::{Set, Unknown};
    let inner = |open: &str, close: char| text.strip_prefix(open).and_then(|text| text.strip_suffix(close));
    let (pairs, sign) = match (inner("{", '}'), inner("dict(", ')')) {
        (Some(pairs), _) => (pairs, ':'),
        (None, Some(pairs)) => (pairs, '='),
        (None, None) => (text, '='),
    };
    let pairs = split(pairs, ',').unwrap_or_else(|| vec![pairs]);
    let pairs = pairs.into_iter().map(str::trim).filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| match split(pair, sign).as_deref() {
            Some([name, value]) if sign == '=' => Set(name.trim().to_owned(), string(value, scope)),
            Some([name, value]) => string(name, scope).map_or(Unknown, |name| Set(name, string(value, scope))),
            _ => Unknown,
        })
        .collect()
}
