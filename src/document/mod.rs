//! Files that people write by hand: each mistake in them has a place, and a suggestion where one is near. The one door of
//! YAML.

mod entries;
mod file;
mod node;
pub(crate) mod shipped;

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_yaml::Location;
pub(crate) use serde_yaml::Spanned;

pub(crate) use entries::Entries;
pub(crate) use file::{FileError, read_text};
pub(crate) use node::YamlNode;

/// A text and what the user calls it.
#[derive(Clone, Copy, Debug)]
pub struct Document<'t> {
    /// Path of the file, or what stands for one.
    pub name: &'t str,
    /// Its content.
    pub text: &'t str,
}

/// What is wrong in a document, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentError {
    /// What the document is called.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong.
    pub what: String,
    /// What to write instead, where that is near.
    pub help: Option<String>,
    excerpt: Box<Excerpt>,
}

/// What a message shows of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Excerpt {
    /// The line, or what of a long one is around the place.
    line: String,
    /// Characters of it before the place.
    indent: usize,
    /// How many characters of it the mistake takes.
    width: usize,
}

impl std::error::Error for DocumentError {}

impl fmt::Display for DocumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, line, column, what, help, excerpt } = self;
        let Excerpt { line: excerpt, indent, width } = &**excerpt;
        write!(f, "{file}:{line}:{column}: {what}")?;
        if !excerpt.trim().is_empty() {
            let margin = line.to_string();
            // Tabs stay tabs under tabs, so that the caret is where the terminal shows the place.
            let before: String = excerpt.chars().take(*indent).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
            write!(f, "\n  {margin} | {excerpt}\n  {:1$} | {before}{2}", "", margin.len(), "^".repeat(*width))?;
        }
        help.iter().try_for_each(|help| write!(f, "\n  help: {help}"))
    }
}

impl Document<'_> {
    /// Reads YAML into a type, which says what is allowed in it.
    pub fn parse<T: DeserializeOwned>(self) -> Result<T, DocumentError> {
        serde_yaml::from_str_with_options(self.text, options()).map_err(|error| self.refused(&error))
    }

    /// Reads all documents of a stream.
    pub fn parse_all<T: DeserializeOwned>(self) -> Result<Vec<T>, DocumentError> {
        serde_yaml::from_multiple_with_options(self.text, options()).map_err(|error| self.refused(&error))
    }

    /// A mistake at a value.
    pub fn mistake<T>(self, at: &Spanned<T>, what: impl Into<String>) -> DocumentError {
        self.mistake_in(self.extent(&at.referenced), what)
    }

    /// A mistake in a part of a text that is a value here: `part` counts bytes of `text`, which YAML may have unquoted,
    /// folded or indented.
    pub fn mistake_within(self, text: &Spanned<String>, part: Range<usize>, what: impl Into<String>) -> DocumentError {
        let whole = self.extent(&text.referenced);
        let found = self.text.get(whole.clone()).and_then(|raw| locate(raw, &text.value, part));
        let extent = found.map_or(whole.clone(), |part| whole.start + part.start..whole.start + part.end);
        self.mistake_in(extent, what)
    }

    /// A mistake in a text as a whole, told at the line that begins with a key.
    pub fn mistake_of(self, key: &str, what: impl Into<String>) -> DocumentError {
        let lines = self.text.split_inclusive('\n');
        let before = lines.take_while(|line| !line.starts_with(&format!("{key}:"))).map(str::len).sum::<usize>();
        let start = if before < self.text.len() { before } else { 0 };
        self.mistake_in(start..start + key.len(), what)
    }

    fn mistake_in(self, extent: Range<usize>, what: impl Into<String>) -> DocumentError {
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

    /// Bytes of a place, which YAML's reader counts in characters.
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
        // The place is told apart.
        let what = &plain(text.rfind(" at line ").and_then(|end| text.get(..end)).unwrap_or(&text));
        let extent = error.location().map_or(0..0, |location| self.extent(&location));
        let mistake = self.mistake_in(extent, what);
        let help = choice(what).and_then(|(wrong, right)| suggestion(wrong, right.into_iter()));
        let help = help.or_else(|| unquoted(what, &mistake.excerpt.line).map(ToOwned::to_owned));
        DocumentError { help, ..mistake }
    }
}

impl DocumentError {
    /// The same with a suggestion.
    #[must_use]
    pub fn help(self, help: Option<String>) -> Self {
        Self { help, ..self }
    }
}

/// A value as YAML.
///
/// # Errors
///
/// What of the value YAML cannot tell.
pub(crate) fn to_yaml<T: Serialize>(value: &T) -> Result<String, String> {
    serde_yaml::to_string(value).map_err(|error| error.to_string())
}

/// YAML 1.2: `yes`, `no`, `on` and `off` are text.
fn options() -> serde_yaml::Options {
    serde_yaml::options! { strict_booleans: true }
}

/// Finds a part of a value in the YAML that it was read from: both have the same characters, but for white space and the
/// marks and escapes of quotes. `None` where an escape stands for another character.
fn locate(raw: &str, value: &str, part: Range<usize>) -> Option<Range<usize>> {
    let quote = raw.chars().next().filter(|first| matches!(first, '"' | '\''));
    let mut characters = raw.char_indices().skip(usize::from(quote.is_some())).peekable();
    let (mut start, mut end) = (None, None);
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
    // Behind the last character, where something is missing.
    let end = end?;
    Some(start.unwrap_or(end)..end.max(start.unwrap_or(end)))
}

/// What the reader of YAML says to programmers, said to users.
fn plain(message: &str) -> String {
    if let Some(key) = message.strip_prefix("duplicate mapping key: ") {
        return format!("the key {} is there twice", key.split(", set ").next().unwrap_or(key));
    }
    if message.contains("null into string") {
        return "there is nothing here, and a text is needed".to_owned();
    }
    if message.contains("multiple YAML documents") || message.contains("from_str_multiple") {
        return "there is more than one document in this file: a line of three dashes parts them".to_owned();
    }
    match message {
        "expected mapping start" => "there must be a map here, KEY: VALUE".to_owned(),
        "expected sequence start" => "there must be a list here".to_owned(),
        _ => message.to_owned(),
    }
}

/// What must be quoted in YAML and was not.
fn unquoted(what: &str, line: &str) -> Option<&'static str> {
    let begins =
        |mark: &str| [": ", "- ", "[", ", ", "{"].iter().any(|before| line.contains(&format!("{before}{mark}")));
    if begins("!") {
        return Some("quote it: an unquoted ! begins a tag of YAML");
    }
    if what.contains("anchor") && (begins("*") || line.trim_start().starts_with('*')) {
        return Some("quote it: an unquoted * names an anchor of YAML");
    }
    what.contains("trailing content").then_some("put the whole value in quotes of the other kind")
}

/// As much of a line as a terminal shows, with the column in it; and where the column is then.
fn window(line: &str, column: usize) -> (String, usize) {
    const BEFORE: usize = 60;
    const WIDTH: usize = 120;
    let start = if line.chars().count() > WIDTH { column.saturating_sub(BEFORE) } else { 0 };
    let text: String = line.chars().skip(start).take(WIDTH).collect();
    (text, column - start)
}

/// What a message of serde says was written, and what could be: ``unknown field `a`, expected one of b, c``.
fn choice(message: &str) -> Option<(&str, Vec<&str>)> {
    let (_, rest) = message.split_once('`')?;
    let (wrong, rest) = rest.split_once('`')?;
    let right = rest.strip_prefix(", expected ")?;
    let right = right.strip_prefix("one of ").unwrap_or(right);
    let words = right.split([',', ' ']).map(|word| word.trim_matches('`'));
    Some((wrong, words.filter(|word| !word.is_empty() && *word != "or").collect()))
}

/// `did you mean …?`, if one of the names is near what was written: one edit, or one in three letters.
pub(crate) fn suggestion<'n>(wrong: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    let allowed = (wrong.chars().count() / 3).max(1);
    let distances = names.map(|name| (strsim::osa_distance(wrong, name), name));
    let (_, nearest) = distances.filter(|(distance, _)| *distance <= allowed).min()?;
    Some(format!("did you mean {nearest}?"))
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
    fn a_part_of_a_text_is_found_however_it_is_written() {
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
            let (column, line) = (below.find('^').unwrap(), above.rsplit_once('\n').unwrap().1);
            assert_eq!(line.get(column..column + 5), Some("wrong"), "{mistake}");
            assert_eq!(below.matches('^').count(), 5, "{mistake}");
        }
    }

    #[test]
    fn what_a_type_refuses_has_a_place_and_a_suggestion() {
        let mistake = read("chek: true\n").unwrap_err();
        assert_eq!(
            mistake.to_string(),
            "a.yaml:1:1: unknown field `chek`, expected one of check\n  1 | chek: true\n    | ^^^^\n  help: did you mean check?"
        );
        assert_eq!(read("\ncheck: [a]\n").map(|rule| rule.check.value).unwrap_err().line, 2);
        assert!(read("").is_err());
    }

    #[test]
    fn what_quotes_escape_is_found_too() {
        let text = "check: \"x == \\\"a\\\" && wrong\"\n";
        let rule = read(text).unwrap();
        let start = rule.check.value.find("wrong").unwrap();
        let mistake = Document { name: "a", text }.mistake_within(&rule.check, start..start + 5, "no");
        assert_eq!(mistake.column, 23);
    }
}
