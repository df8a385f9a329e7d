//! Python expressions that name a directory, as startup files use them.

use std::collections::BTreeMap;

use model::{Gap, ImagePath};

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
    /// A variable of the environment, if it is set; an error if that is unknown.
    pub(super) variable: &'s dyn Fn(&str) -> Result<Option<String>, Gap>,
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
    if let Some(text) = literal(text).or_else(|| formatted(text, scope)) {
        return Some(text);
    }
    if let Some(inner) = text.strip_prefix('(').and_then(|text| text.strip_suffix(')')) {
        return string(inner, scope);
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
    if let Some(folder) = path_method(text, scope) {
        return Some(folder);
    }
    let (name, rest) = text.split_once(['(', '['])?;
    let inner = rest.strip_suffix([')', ']'])?;
    let arguments = split(inner, ',')?;
    let mut values = arguments.iter().map(|argument| string(argument, scope));
    match name {
        "os.environ" | "os.environ.get" | "os.getenv" => match *arguments {
            [name] => (scope.variable)(&literal(name.trim())?).ok()?,
            [name, default] if name != "os.environ" => {
                let value = (scope.variable)(&literal(name.trim())?).ok()?;
                value.or_else(|| string(default, scope))
            }
            _ => None,
        },
        "os.path.join" => values.try_fold(String::new(), |base, part| Some(join(&base, &part?))),
        "os.path.abspath" | "os.path.normpath" | "os.path.realpath" => {
            let only = values.next()?.filter(|_| arguments.len() == 1)?;
            Some(path(&scope.directory.join(only.as_bytes())))
        }
        "os.path.dirname" => {
            let only = values.next()?.filter(|_| arguments.len() == 1)?;
            Some(folder_of(&only))
        }
        "str" if inner.bytes().all(|byte| byte.is_ascii_digit()) => Some(inner.to_owned()),
        "os.path.expanduser" | "str" | "os.fspath" | "pathlib.Path" => {
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

/// `os.path.dirname`.
fn folder_of(path: &str) -> String {
    match path.rsplit_once('/') {
        Some(("", _)) => "/".to_owned(),
        Some((folder, _)) => folder.to_owned(),
        None => String::new(),
    }
}

/// What a method or an attribute of `pathlib.Path` gives, and `/` between paths.
fn path_method(text: &str, scope: &CodeScope<'_>) -> Option<String> {
    if let [first, parts @ ..] = split(text, '/')?.as_slice()
        && !parts.is_empty()
    {
        let mut parts = parts.iter().map(|part| string(part, scope));
        return parts.try_fold(string(first, scope)?, |base, part| Some(join(&base, &part?)));
    }
    if let Some(path) = text.strip_suffix(".parent") {
        return string(path, scope).map(|path| folder_of(&path));
    }
    if let Some((path, index)) = text.strip_suffix(']').and_then(|text| text.rsplit_once(".parents[")) {
        let index: usize = index.parse().ok().filter(|index| *index < 20)?;
        return Some((0..=index).fold(string(path, scope)?, |path, _| folder_of(&path)));
    }
    let path = [".resolve()", ".absolute()"].iter().find_map(|end| text.strip_suffix(end))?;
    let path = scope.directory.join(string(path, scope)?.as_bytes());
    Some(format!("/{}", String::from_utf8_lossy(path.as_bytes())))
}

/// A format string whose fields are expressions without a format.
fn formatted(text: &str, scope: &CodeScope<'_>) -> Option<String> {
    let text = literal(text.strip_prefix(['f', 'F'])?)?;
    let mut parts = text.split('{');
    let mut value = parts.next()?.to_owned();
    for part in parts {
        let (field, rest) = part.split_once('}')?;
        value.push_str(&string(field, scope).filter(|_| !rest.contains('}'))?);
        value.push_str(rest);
    }
    Some(value)
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

/// What is within a bracket that was opened before the text, and what is behind it.
pub(super) fn closed(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0_usize;
    let mut quote = None;
    for (at, character) in text.char_indices() {
        match (quote, character) {
            (Some(open), _) if open == character => quote = None,
            (None, '\'' | '"') => quote = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') if depth == 0 => return Some((text.get(..at)?, text.get(at + 1..)?)),
            (None, ')' | ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    None
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
        let variable = |name: &str| Ok((name == "ROOT").then(|| "/data".to_owned()));
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
            ("os.environ.get('NONE', '/none')", Some("/none")),
            ("os.getenv('ROOT', '/none')", Some("/data")),
            ("str(8)", Some("8")),
            ("pathlib.Path(__file__).resolve().parent.parent", Some("/")),
            ("str(pathlib.Path(HERE, 'x'))", None),
            ("pathlib.Path(HERE) / 'x' / 'y'", Some("/here/x/y")),
            ("pathlib.Path('/a/b/c').parents[1]", Some("/a")),
            ("f'{HERE}/x'", Some("/here/x")),
            ("f'{HERE!r}/x'", None),
            ("'\\x2f'", None),
            ("'a' 'b'", None),
            ("('/a' + '/b')", Some("/a/b")),
            ("('/a')('/b')", None),
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
