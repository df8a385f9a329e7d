//! Python expressions that name a directory, as startup files use them.

use std::collections::BTreeMap;

use model::ImagePath;

use super::budget::StartBudget;

/// Values of names in the process that evaluates an expression.
#[derive(Clone, Copy)]
pub(super) struct CodeScope<'s> {
    /// The directory of the `.pth` file: the variable `sitedir`, which other code does not have.
    pub(super) folder: Option<&'s ImagePath>,
    /// `sys.prefix`.
    pub(super) prefix: &'s ImagePath,
    /// The working directory.
    pub(super) directory: &'s ImagePath,
    /// The home directory, if known.
    pub(super) home: Option<&'s str>,
    /// `__file__`, which code in a `.pth` file does not have.
    pub(super) file: Option<&'s ImagePath>,
    /// A variable of the environment, if it is set and known.
    pub(super) variable: &'s dyn Fn(&str) -> Option<String>,
    /// Variables of the code.
    pub(super) names: &'s BTreeMap<String, String>,
    /// What the code may cost.
    pub(super) budget: &'s StartBudget,
}

/// Most brackets within one another. CPython's tokenizer takes 200; folders are named with a few.
const NESTING: u32 = 50;

/// The string that an expression gives; `None` if it is not understood, or once the steps are spent.
pub(super) fn string(text: &str, scope: &CodeScope<'_>) -> Option<String> {
    if !scope.budget.spend_on_text(text.len()) {
        return None;
    }
    let parts = split(text, '+')?;
    parts.into_iter().map(|part| term(part.trim(), scope)).collect()
}

/// The strings of a list or tuple display.
pub(super) fn strings(text: &str, scope: &CodeScope<'_>) -> Option<Vec<String>> {
    let inner = text.trim().strip_prefix('[').and_then(|text| text.strip_suffix(']'))?;
    let parts = split(inner, ',')?.into_iter().map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| string(part, scope)).collect()
}

fn term(text: &str, scope: &CodeScope<'_>) -> Option<String> {
    if let Some(text) = literal(text) {
        return Some(text);
    }
    if let Some(text) = scope.names.get(text) {
        return scope.budget.spend_on_text(text.len()).then(|| text.clone());
    }
    let path = |path: &ImagePath| format!("/{}", String::from_utf8_lossy(path.as_bytes()));
    match text {
        "sitedir" | "sys._getframe(1).f_locals['sitedir']" => return scope.folder.map(path),
        "sys.prefix" | "sys.exec_prefix" => return Some(path(scope.prefix)),
        "os.getcwd()" => return Some(path(scope.directory)),
        "__file__" => return scope.file.map(path),
        _ => {}
    }
    let (name, rest) = text.split_once(['(', '['])?;
    let inner = rest.strip_suffix([')', ']'])?;
    let arguments = split(inner, ',')?;
    let mut values = arguments.iter().map(|argument| string(argument, scope));
    match name {
        "os.environ" | "os.environ.get" | "os.getenv" => match arguments.as_slice() {
            [name] => (scope.variable)(&literal(name.trim())?),
            _ => None,
        },
        "os.path.join" => values.try_fold(String::new(), |base, part| Some(join(&base, &part?))),
        "os.path.abspath" | "os.path.normpath" => {
            let only = values.next()?.filter(|_| arguments.len() == 1)?;
            Some(path(&scope.directory.join(only.as_bytes())))
        }
        "os.path.dirname" => {
            let only = values.next()?.filter(|_| arguments.len() == 1)?;
            Some(only.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned())
        }
        "os.path.expanduser" | "str" | "os.fspath" => {
            let only = values.next()?.filter(|_| arguments.len() == 1)?;
            match only.strip_prefix('~').filter(|_| name == "os.path.expanduser") {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => {
                    Some(format!("{}{rest}", scope.home?.trim_end_matches('/')))
                }
                Some(_) => None,
                None => Some(only),
            }
        }
        _ => None,
    }
}

/// `os.path.join` of two parts.
fn join(base: &str, part: &str) -> String {
    match base {
        _ if part.starts_with('/') || base.is_empty() => part.to_owned(),
        _ if base.ends_with('/') => format!("{base}{part}"),
        _ => format!("{base}/{part}"),
    }
}

/// A string literal without escapes, prefixed by `r` or not.
fn literal(text: &str) -> Option<String> {
    let text = text.trim();
    let text = text.strip_prefix(['r', 'R', 'u']).filter(|rest| rest.starts_with(['\'', '"'])).unwrap_or(text);
    let quote = text.chars().next().filter(|first| matches!(first, '\'' | '"'))?;
    let inner = text.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains([quote, '\\'])).then(|| inner.to_owned())
}

/// Splits at a separator outside of quotes and brackets; `None` if they are unbalanced or too many within one another.
pub(super) fn split(text: &str, separator: char) -> Option<Vec<&str>> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut depth = 0_u32;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') if depth < NESTING => depth += 1,
            (None, '(' | '[' | '{') => return None,
            (None, ')' | ']' | '}') => depth = depth.checked_sub(1)?,
            (None, _) if character == separator && depth == 0 => {
                parts.push(text.get(start..at)?);
                start = at + character.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text.get(start..)?);
    (depth == 0 && quote.is_none()).then_some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_name_a_directory() {
        let folder = ImagePath::from("venv/lib/site-packages");
        let prefix = ImagePath::from("venv");
        let directory = ImagePath::from("work");
        let file = ImagePath::from("etc/x.py");
        let variable = |name: &str| (name == "ROOT").then(|| "/data".to_owned());
        let scope = CodeScope {
            folder: Some(&folder),
            prefix: &prefix,
            directory: &directory,
            home: Some("/root"),
            file: Some(&file),
            variable: &variable,
            names: &BTreeMap::from([("HERE".to_owned(), "/here".to_owned())]),
            budget: &StartBudget::new(1_000),
        };
        for (text, value) in [
            ("'/srv/a b'", Some("/srv/a b")),
            ("r\"/srv\"", Some("/srv")),
            ("'/a' + '/b'", Some("/a/b")),
            ("os.path.join('/a', 'b', 'c')", Some("/a/b/c")),
            ("os.path.join(sitedir, '..', 'x')", Some("/venv/lib/site-packages/../x")),
            ("os.path.join('/a', '/b')", Some("/b")),
            ("os.path.expanduser('~/code')", Some("/root/code")),
            ("os.path.expanduser('~ann/code')", None),
            ("os.path.abspath('x/../y')", Some("/work/y")),
            ("os.path.dirname(os.path.abspath(__file__))", Some("/etc")),
            ("os.getcwd()", Some("/work")),
            ("HERE + '/x'", Some("/here/x")),
            ("sys.prefix + '/code'", Some("/venv/code")),
            ("os.environ['ROOT']", Some("/data")),
            ("os.environ.get('NONE')", None),
            ("os.environ['ROOT'] + '/x'", Some("/data/x")),
            ("'\\x2f'", None),
            ("'a' 'b'", None),
            ("f'/srv/{x}'", None),
            ("unknown('/a')", None),
            ("os.path.join('/a'", None),
            ("", None),
        ] {
            assert_eq!(string(text, &scope).as_deref(), value, "{text}");
        }
        assert_eq!(strings("['/a', '/b' ,]", &scope), Some(vec!["/a".to_owned(), "/b".to_owned()]));
        assert_eq!(strings("['/a', x]", &scope), None);
    }

    #[test]
    fn separators_in_quotes_and_brackets_do_not_split() {
        assert_eq!(split("a;'b;c';f(d;e)", ';').unwrap(), ["a", "'b;c'", "f(d;e)"]);
        assert_eq!(split("a'", ';'), None);
        assert_eq!(split("a)", ';'), None);
        assert_eq!(split("", ';').unwrap(), [""]);
        let nested = |depth| "(".repeat(depth) + &")".repeat(depth);
        assert!(split(&nested(50), ';').is_some());
        assert_eq!(split(&nested(51), ';'), None);
    }
}
