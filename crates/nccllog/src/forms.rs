//! The forms of NCCL's lines: the table `patterns.yaml`, with an example of each and the source file that writes it.

use std::collections::BTreeMap;
use std::sync::{LazyLock, OnceLock};

use regex::{Regex, RegexSet};
use serde::Deserialize;

use super::symptoms::quoted_form;
use super::table::Table;

/// A row of the table: the form of a line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LinePattern {
    pub(super) id: String,
    /// First release whose source has this form.
    #[expect(dead_code, reason = "for readers of the table")]
    since: String,
    /// Last release whose source has this form.
    #[serde(default)]
    #[expect(dead_code, reason = "for readers of the table")]
    until: Option<String>,
    #[serde(rename = "regex")]
    pattern: String,
    example: String,
    pub(super) meaning: String,
    #[cfg_attr(not(test), expect(dead_code, reason = "for readers of the table"))]
    source: String,
    #[serde(skip)]
    compiled: OnceLock<Regex>,
}

pub(super) static PATTERNS: Table<Vec<LinePattern>> = Table::new(include_str!("../tables/patterns.yaml"), |patterns| {
    compile(patterns)?;
    patterns.iter().try_for_each(|row| Regex::new(&quoted_form(&row.pattern)).map(drop))
});

/// The patterns, each at the start of a text.
#[expect(clippy::expect_used, reason = "a test compiles those of the crate, and Table those of other tables")]
static SET: LazyLock<RegexSet> = LazyLock::new(|| compile(&PATTERNS).expect("patterns that parse"));

fn compile(patterns: &[LinePattern]) -> Result<RegexSet, regex::Error> {
    RegexSet::new(patterns.iter().map(LinePattern::at_start))
}

/// The forms that a text has which starts with `NCCL` and the level, or that is a line without NCCL's prefix.
pub(super) fn forms_of(text: &str) -> impl Iterator<Item = &'static LinePattern> + use<> {
    SET.matches(text).into_iter().filter_map(|index| PATTERNS.get(index))
}

impl LinePattern {
    /// The expression at the start of a text, compiled when it is first needed.
    #[expect(clippy::expect_used, reason = "the table is compiled in, and a test reads it")]
    pub(super) fn regex(&self) -> &Regex {
        self.compiled.get_or_init(|| Regex::new(&self.at_start()).expect("a pattern that parses"))
    }

    fn at_start(&self) -> String {
        format!("^(?:{})", self.pattern)
    }
}

/// The form of a line, for people.
#[derive(Debug)]
pub struct LineForm {
    pattern: &'static LinePattern,
    /// The meaning of the line.
    pub meaning: &'static str,
}

/// The form with this ID in the table.
pub fn line_form(id: &str) -> Option<LineForm> {
    let pattern = PATTERNS.iter().find(|pattern| pattern.id == id)?;
    Some(LineForm { pattern, meaning: &pattern.meaning })
}

/// The ids of all forms.
pub(super) fn form_ids() -> impl Iterator<Item = &'static str> {
    PATTERNS.iter().map(|pattern| &*pattern.id)
}

impl LineForm {
    /// The expression of the whole line.
    pub(super) fn expression(&self) -> &'static str {
        &self.pattern.pattern
    }

    const LEVELS: [&'static str; 2] = ["NCCL WARN ", "NCCL INFO "];

    /// Returns true for a line of this form, with or without NCCL's prefix.
    pub fn matches(&self, line: &str) -> bool {
        self.groups(line).is_some()
    }

    /// The message in a line of this form, with or without NCCL's prefix, and the named groups that it has.
    pub fn groups(&self, line: &str) -> Option<(String, BTreeMap<&'static str, String>)> {
        let start = Self::LEVELS.iter().find_map(|level| line.find(level)).unwrap_or_default();
        let line = line.get(start..).unwrap_or_default();
        let prefixed = Self::LEVELS.iter().map(|level| format!("{level}{line}"));
        std::iter::once(line.to_owned()).chain(prefixed).find_map(|line| {
            let captures = self.pattern.regex().captures(&line)?;
            let groups = self.pattern.regex().capture_names().flatten();
            let groups = groups.filter_map(|name| Some((name, captures.name(name)?.as_str().to_owned())));
            let whole = captures.get(0)?.as_str();
            let message =
                whole.strip_prefix("NCCL WARN ").or_else(|| whole.strip_prefix("NCCL INFO ")).unwrap_or(whole);
            Some((message.trim().to_owned(), groups.collect()))
        })
    }

    /// The message in an example of the line, without the prefix.
    pub fn message(&self) -> &'static str {
        let parts = Self::LEVELS.iter().find_map(|level| self.pattern.example.split_once(level));
        parts.map_or(&*self.pattern.example, |(_, message)| message)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_form_matches_its_example() {
        let mut ids = BTreeSet::new();
        for row in PATTERNS.iter() {
            let form = line_form(&row.id).unwrap();
            assert!(form.matches(&row.example), "{}: {}", row.id, row.example);
            assert!(ids.insert(&row.id) && !row.source.is_empty(), "{}", row.id);
        }
        assert!(PATTERNS.len() > 90);
    }
}
