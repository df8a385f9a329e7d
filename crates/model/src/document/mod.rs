//! Files that users write by hand. Each error has a position, and a suggestion if a valid name is close. All YAML is
//! parsed here.

mod entries;
mod file;
mod node;

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_yaml::Location;
pub use serde_yaml::Spanned;

use crate::{conceal, in_words, suggestion, without_content};

pub use entries::Entries;
pub use file::{FileError, read_text, read_text_from};
pub use node::{YamlNode, YamlValue};

/// Longest unknown name that a message shows.
const LONGEST_NAME: usize = 40;

/// A text and the name that messages use for it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'t> {
    /// Path of the file, or a name in its place.
    pub name: &'t str,
    /// Its content.
    pub text: &'t str,
}

/// An error at a position in a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// Name of the document.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// Description of the error.
    pub what: String,
    /// Suggested fix, if there is one.
    pub help: Option<String>,
    excerpt: Box<Excerpt>,
}

/// Part of a document that a message shows.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    /// The line, or the part of a long line around the position.
    line: String,
    /// Characters of the excerpt before the position.
    indent: usize,
    /// Number of characters to underline.
    width: usize,
}

impl std::error::Error for DocumentError {}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, help, excerpt } = self;
        let Excerpt { line: excerpt, indent, width } = &**excerpt;
        // The words of an option are a document that no user wrote.
        let is_of_option = file.starts_with("--");
        if is_of_option { write!(f, "{file}: {what}") } else { write!(f, "{file}:{line}:{column}: {what}") }?;
        if !is_of_option && !excerpt.trim().is_empty() {
            let margin = line.to_string();
            // A tab below each tab keeps the caret aligned, whatever the terminal's tab width.
            let before: String = excerpt.chars().take(*indent).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            let excerpt = conceal(excerpt);
            write!(f, "\n  {margin} | {excerpt}\n  {:1$} | {before}{2}", "", margin.len(), "^".repeat(*width))?;
        }
        help.iter().try_for_each(|help| write!(f, "\n  help: {help}"))
    }
}

/// Parses a table that a crate contains. `path` is its path in the repository, for messages.
///
/// # Panics
///
/// Panics if the text is not such a table. Each table's reader has a test that parses it.
#[expect(clippy::expect_used, reason = "constant documents, each read by a test")]
pub fn parse_table<T: DeserializeOwned>(path: &str, text: &str) -> T {
    Document { name: path, text }.parse().expect("a valid table")
}

impl Document<'_> {
    /// Parses YAML into a type, which defines what is allowed in it.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, DocumentError> {
        serde_yaml::from_str_with_options(self.text, options()).map_err(|error| self.refused(&error))
    }

    /// Parses all documents of a YAML stream.
    pub fn parse_all<T: DeserializeOwned>(self) -> Result<Vec<T>, DocumentError> {
        serde_yaml::from_multiple_with_options(self.text, options()).map_err(|error| self.refused(&error))
    }

    /// Creates an error at a value.
    pub fn mistake<T>(self, at: &Spanned<T>, what: impl Into<String>) -> DocumentError {
        self.mistake_in(self.extent(&at.referenced), what)
    }

    /// Creates an error at a part of a text value. `part` counts bytes of the parsed text, which YAML may have
    /// unquoted, folded or indented.
    pub fn mistake_within(self, text: &Spanned<String>, part: Range<usize>, what: impl Into<String>) -> DocumentError {
        let whole = self.extent(&text.referenced);
        let found = self.text.get(whole.clone()).and_then(|raw| locate(raw, &text.value, part));
        let extent = found.map_or(whole.clone(), |part| whole.start + part.start..whole.start + part.end);
        self.mistake_in(extent, what)
    }

    /// Creates an error in the document as a whole, at the line that begins with `key`.
    pub fn mistake_of(self, key: &str, what: impl Into<String>) -> DocumentError {
        let lines = self.text.split_inclusive('\n');
        let before = lines.take_while(|line| !line.starts_with(&format!("{key}:"))).map(str::len).sum::<usize>();
        let start = if before < self.text.len() { before } else { 0 };
        let mistake = self.mistake_in(start..start + key.len(), what);
        if key.is_empty() { mistake.without_excerpt() } else { mistake }
    }

    pub(crate) fn mistake_in(self, extent: Range<usize>, what: impl Into<String>) -> DocumentError {
        let before = self.text.get(..extent.start).unwrap_or(self.text);
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let excerpt = self.text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default();
        let column = before.get(start..).map_or(0, |indent| indent.chars().count());
        let wanted = self.text.get(extent).and_then(|text| text.lines().next()).map_or(0, |text| text.chars().count());
        let (excerpt, indent) = window(excerpt, column);
        let room = excerpt.chars().count().saturating_sub(indent);
        DocumentError {
            file: self.name.to_owned(),
            line: before.matches('\n').count() + 1,
            column: column + 1,
            what: what.into(),
            help: None,
            excerpt: Box::new(Excerpt { line: excerpt, indent, width: wanted.clamp(1, room.max(1)) }),
        }
    }

    /// Converts a position of the YAML parser, which counts characters, to bytes.
    fn extent(self, location: &Location) -> Range<usize> {
        let characters = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let bytes = |text: &str, count: usize| text.chars().take(count).map(char::len_utf8).sum::<usize>();
        let start = bytes(self.text, characters(location.span().offset()));
        let rest = self.text.get(start..).unwrap_or_default();
        start..start + bytes(rest, characters(location.span().len()))
    }

    fn refused(self, error: &serde_yaml::Error) -> DocumentError {
        let error = error.without_snippet();
        let text = error.to_string();
        // The position is shown separately.
        let what = &plain(text.rfind(" at line ").and_then(|end| text.get(..end)).unwrap_or(&text));
        let extent = error.location().map_or(0..0, |location| self.extent(&location));
        let shown = if is_about_name(what) && self.has_names() { in_words(what) } else { without_content(what) };
        let mistake = self.mistake_in(extent, shown);
        let help = choice(what).and_then(|(wrong, right)| suggestion(wrong, right.into_iter()));
        let help = help.or_else(|| unquoted(what, &mistake.excerpt.line).map(ToOwned::to_owned));
        DocumentError { help, ..mistake.without_excerpt() }
    }

    /// Returns true for a map, or a list of maps: the form of all files that are read here. The path of a file may lead
    /// to another one, which must not be quoted.
    fn has_names(self) -> bool {
        let read = serde_yaml::from_str_with_options(self.text, options());
        match read.unwrap_or(YamlValue::Null) {
            YamlValue::Map(_) => true,
            YamlValue::List(values) => values.iter().all(|node| matches!(node.value, YamlValue::Map(_))),
            YamlValue::Null | YamlValue::Scalar(_) => false,
        }
    }
}

impl DocumentError {
    fn without_excerpt(mut self) -> Self {
        self.excerpt.line.clear();
        self
    }

    /// Sets a help of the whole form, where there is no suggestion.
    #[must_use]
    pub fn or_help(self, form: &str) -> Self {
        Self { help: self.help.or_else(|| Some(form.to_owned())), ..self }
    }

    /// Sets the suggestion.
    #[must_use]
    pub fn help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }
}

/// Serializes a value to YAML.
///
/// # Errors
///
/// Fails if YAML cannot represent the value.
pub fn to_yaml<T: Serialize>(value: &T) -> Result<String, String> {
    serde_yaml::to_string(value).map_err(|error| error.to_string())
}

/// Options for YAML 1.2, where `yes`, `no`, `on` and `off` are text.
fn options() -> serde_yaml::Options {
    serde_yaml::options! { strict_booleans: true }
}

/// Finds a part of a value in the YAML source. Both have the same characters, except for white space, quotation marks
/// and escapes. Returns `None` if an escape stands for another character.
fn locate(raw: &str, value: &str, part: Range<usize>) -> Option<Range<usize>> {
    let quote = raw.chars().next().filter(|first| matches!(first, '"' | '\''));
    let mut characters = raw.char_indices().skip(usize::from(quote.is_some())).peekable();
    let mut start = None;
    let mut end = None;
    for (offset, wanted) in value.char_indices().filter(|(_, wanted)| !wanted.is_whitespace()) {
        let (mut at, mut found) = characters.find(|(_, found)| !found.is_whitespace())?;
        let is_escape = matches!((quote, found), (Some('"'), '\\') | (Some('\''), '\''));
        if is_escape {
            (at, found) = characters.next()?;
        }
        if found != wanted {
            return None;
        }
        if offset >= part.start && start.is_none() {
            start = Some(at);
        }
        if offset < part.end.max(part.start + 1) {
            end = Some(at + found.len_utf8());
        }
    }
    // An empty part at the end of the value: something is missing there.
    let end = end?;
    Some(start.unwrap_or(end)..end.max(start.unwrap_or(end)))
}

/// Returns true if a message quotes only a name that cannot be a secret.
fn is_about_name(message: &str) -> bool {
    let name =
        ["unknown field ", "unknown variant ", "duplicate key "].iter().find_map(|what| message.strip_prefix(what));
    let name = name.map(|name| name.split(", expected ").next().unwrap_or(name).trim_matches('`'));
    let is_plain = |name: &str| {
        name.len() <= LONGEST_NAME
            && name.chars().all(|c| c.is_alphanumeric() || "_-./ ".contains(c))
            && conceal(name) == name
    };
    name.is_some_and(is_plain)
}

/// Rewrites messages of the YAML parser for users.
fn plain(message: &str) -> String {
    if let Some(key) = message.strip_prefix("duplicate mapping key: ") {
        return format!("duplicate key {}", key.split(", set ").next().unwrap_or(key));
    }
    if message.contains("null into string") {
        return "missing value: expected a string".to_owned();
    }
    if message.contains("multiple YAML documents") || message.contains("from_str_multiple") {
        return "the file has several YAML documents (separated by ---): expected one".to_owned();
    }
    match message {
        "expected mapping start" => "expected a map (KEY: VALUE)".to_owned(),
        "expected sequence start" => "expected a list".to_owned(),
        "expected string scalar" => "expected text".to_owned(),
        "invalid boolean (strict mode expects true/false)" => "expected true or false".to_owned(),
        _ => message.to_owned(),
    }
}

/// Returns a hint for a value that YAML requires to be quoted.
fn unquoted(what: &str, line: &str) -> Option<&'static str> {
    let begins =
        |mark: &str| [": ", "- ", "[", ", ", "{"].iter().any(|before| line.contains(&format!("{before}{mark}")));
    if begins("!") {
        return Some("quote the value: an unquoted ! begins a YAML tag");
    }
    if what.contains("anchor") && (begins("*") || line.trim_start().starts_with('*')) {
        return Some("quote the value: an unquoted * begins a YAML alias");
    }
    what.contains("trailing content").then_some("quote the whole value with the other kind of quotation marks")
}

/// Cuts a long line to the part around a column that fits a terminal. Returns it with the column's position in it.
fn window(line: &str, column: usize) -> (String, usize) {
    const BEFORE: usize = 60;
    const WIDTH: usize = 120;
    let start = if line.chars().count() > WIDTH { column.saturating_sub(BEFORE) } else { 0 };
    let text: String = line.chars().skip(start).take(WIDTH).collect();
    (text, column - start)
}

/// Extracts the wrong name and the valid ones from serde's message: ``unknown field `a`, expected one of b, c``.
fn choice(message: &str) -> Option<(&str, Vec<&str>)> {
    let (_, rest) = message.split_once('`')?;
    let (wrong, rest) = rest.split_once('`')?;
    let right = rest.strip_prefix(", expected ")?;
    let right = right.strip_prefix("one of ").unwrap_or(right);
    let words = right.split([',', ' ']).map(|word| word.trim_matches('`'));
    Some((wrong, words.filter(|word| !word.is_empty() && *word != "or").collect()))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Rule {
        check: Spanned<String>,
    }

    fn read(text: &str) -> Result<Rule, DocumentError> {
        Document { name: "a.yaml", text }.parse()
    }

    #[test]
    fn parts_of_values_are_located_in_any_yaml_style() {
        for text in [
            "check: a && wrong\n",
            "# ü\ncheck: a &&\n  wrong # so\n",
            "check: >-\n  a\n  && wrong\n",
            "check: |-\n    a && wrong\n",
            "check: \"a && wrong\"\n",
            "check: 'a && wrong'",
        ] {
            let rule = read(text).unwrap();
            let start = rule.check.value.find("wrong").unwrap();
            let document = Document { name: "a.yaml", text };
            let mistake = document.mistake_within(&rule.check, start..start + 5, "no").to_string();
            let (above, below) = mistake.rsplit_once('\n').unwrap();
            let column = below.find('^').unwrap();
            let line = above.rsplit_once('\n').unwrap().1;
            assert_eq!(line.get(column..column + 5), Some("wrong"), "{mistake}");
            assert_eq!(below.matches('^').count(), 5, "{mistake}");
        }
    }

    #[test]
    fn type_errors_have_a_position_and_a_suggestion() {
        let mistake = read("chek: true\n").unwrap_err();
        assert_eq!(
            mistake.to_string(),
            "a.yaml:1:1: unknown key 'chek'; available: check\n  help: did you mean check?"
        );
        assert_eq!(read("\ncheck: [a]\n").map(|rule| rule.check.value).unwrap_err().line, 2);
        assert!(read("").is_err());
    }

    #[test]
    fn a_document_of_another_form_is_not_quoted() {
        for text in [
            "s3cret\n",
            "- s3cret\n",
            "TOKEN=s3cret\0HOME=/root\0",
            "[default]\nkey = s3cret\n",
            "{\"auths\": {\"x\": {\"auth\": \"s3cret\"}}}\n",
            "- name: s3cret\n  user: {token: s3cret}\n",
            "word 's3cret' \"s3cret\n",
            "s3cret: [\n",
            "check: &s3cret a\nb: *s3cret-b\n",
            "check: !s3cret [a]\n",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a: s3cret\n",
        ] {
            for mistake in [read(text).unwrap_err(), Document { name: "a", text }.parse::<Vec<u64>>().unwrap_err()] {
                let message = mistake.to_string();
                assert!(!message.contains("s3cret") && !message.contains("ghp_"), "{text:?}: {message}");
            }
        }
    }

    #[test]
    fn parts_of_values_are_located_behind_escapes() {
        let text = "check: \"x == \\\"a\\\" && wrong\"\n";
        let rule = read(text).unwrap();
        let start = rule.check.value.find("wrong").unwrap();
        let mistake = Document { name: "a", text }.mistake_within(&rule.check, start..start + 5, "no");
        assert_eq!(mistake.column, 23);
    }
}
