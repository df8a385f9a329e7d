//! Conditions whose outcome follows from the image.

use model::{ImagePath, fixed_condition};

use super::expression::{CodeScope, split, string};
use super::files::ProcessFiles;

/// Most conditions within one another.
const NESTING: usize = 20;

/// What a condition is judged by.
#[derive(Clone, Copy)]
pub(super) struct ConditionScope<'s> {
    pub(super) code: &'s CodeScope<'s>,
    pub(super) files: &'s ProcessFiles<'s>,
    /// `sys.path`.
    pub(super) entries: &'s [ImagePath],
    /// True for the program itself.
    pub(super) is_main: bool,
}

/// The outcome of a condition; `None` if it is not known.
pub(super) fn outcome(text: &str, scope: &ConditionScope<'_>) -> Option<bool> {
    nested(text, scope, NESTING)
}

fn nested(text: &str, scope: &ConditionScope<'_>, left: usize) -> Option<bool> {
    let left = left.checked_sub(1)?;
    let text = text.trim();
    if !scope.code.budget.spend_on_text(text.len()) || text.contains(" if ") {
        return None;
    }
    if let Some(known) = fixed_condition(text) {
        return Some(known);
    }
    for (word, decides) in [(" or ", true), (" and ", false)] {
        if text.contains(word) {
            let outcomes: Vec<_> = text.split(word).map(|part| nested(part, scope, left)).collect();
            let is_decided = outcomes.contains(&Some(decides));
            return if is_decided { Some(decides) } else { outcomes.iter().all(Option::is_some).then_some(!decides) };
        }
    }
    if let Some(rest) = text.strip_prefix("not ") {
        return nested(rest, scope, left).map(|outcome| !outcome);
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')'))
        && split(inner, ',').is_some()
    {
        return nested(inner, scope, left);
    }
    for (word, is_in) in [(" not in ", false), (" in ", true)] {
        if let Some((item, list)) = text.split_once(word) {
            let item = string(item, scope.code)?;
            let has = match list.trim() {
                "sys.path" => scope.entries.contains(&scope.files.absolute(item.as_bytes())),
                "os.environ" => (scope.code.variable)(&item).ok()?.is_some(),
                _ => return None,
            };
            return Some(has == is_in);
        }
    }
    compared(text, scope)
}

fn compared(text: &str, scope: &ConditionScope<'_>) -> Option<bool> {
    let variable = |text: &str| {
        let name = ["os.environ.get(", "os.getenv("].iter().find_map(|call| text.trim().strip_prefix(call))?;
        let name = string(name.strip_suffix(')')?, scope.code)?;
        (scope.code.variable)(&name).ok()
    };
    for (sign, is_equal) in [("==", true), ("!=", false), (" is not ", false), (" is ", true)] {
        if let Some((one, other)) = text.split_once(sign) {
            if other.trim() == "None" {
                return Some(variable(one)?.is_none() == is_equal);
            }
            if one.trim() == "__name__" {
                return Some((scope.is_main && string(other, scope.code)? == "__main__") == is_equal);
            }
            let other = string(other, scope.code)?;
            return match variable(one) {
                Some(value) => Some((value.as_deref() == Some(&*other)) == is_equal),
                None => Some((string(one, scope.code)? == other) == is_equal),
            };
        }
    }
    if let Some(value) = variable(text) {
        return Some(value.is_some_and(|value| !value.is_empty()));
    }
    match text {
        "True" | "1" => return Some(true),
        "False" | "0" | "None" => return Some(false),
        _ => {}
    }
    let (function, argument) = text.split_once('(')?;
    let path = || Some(scope.files.absolute(string(argument.strip_suffix(')')?, scope.code)?.as_bytes()));
    match function {
        "os.path.exists" => Some(scope.files.exists(&path()?)),
        "os.path.isdir" => Some(scope.files.is_directory(&path()?)),
        "os.path.isfile" => Some(scope.files.is_file(&path()?)),
        _ => string(text, scope.code).map(|value| !value.is_empty()),
    }
}
