//! What names mean in the code of a program.

use std::collections::BTreeMap;

use super::super::expression::{CodeScope, split, string, strings};
use super::ProgramRun;

/// Longest statement in which the display of a dictionary is read, in bytes.
const LONGEST: usize = 1_000;

/// What names mean in the code that runs: full names and their texts, and shorter names.
#[derive(Clone, Default)]
pub(super) struct ProgramNames {
    pub(super) texts: BTreeMap<String, String>,
    /// Displays of dictionaries and lists.
    displays: BTreeMap<String, String>,
    pub(super) full: BTreeMap<String, String>,
}

impl ProgramRun<'_, '_> {
    /// Notes the value of a name.
    pub(super) fn assign(&mut self, text: &str) {
        let Some(parts) = split(text, '=') else { return };
        let [targets @ .., value] = parts.as_slice() else { return };
        let is_plain = |target: &str| target.chars().all(|c| c.is_alphanumeric() || c == '_');
        for target in targets {
            let name = target.split(':').next().unwrap_or_default().trim();
            if is_plain(name) && targets.len() == 1 {
                let written = self.written(value.trim());
                let text = self.scoped(|scope| string(&written, scope));
                self.bind(name, text);
                if written.starts_with(['{', '[', '(']) && !self.path.is_doubtful {
                    let full = format!("{}{name}", self.module.prefix);
                    self.names.displays.insert(full, written);
                }
            } else {
                let words = name.split(|c: char| !c.is_alphanumeric() && c != '_');
                words.filter(|word| !word.is_empty()).for_each(|word| self.bind(word, None));
            }
        }
    }

    /// Gives a name of the module a value, or takes it where the statement may not run.
    pub(super) fn bind(&mut self, name: &str, value: Option<String>) {
        let is_certain = !self.path.is_doubtful;
        self.give(name, value.filter(|_| is_certain));
    }

    /// Gives a name of the module a value, or takes it.
    pub(super) fn give(&mut self, name: &str, value: Option<String>) {
        let full = format!("{}{name}", self.module.prefix);
        self.names.displays.remove(&full);
        match value {
            Some(value) => _ = self.names.texts.insert(full.clone(), value),
            None => _ = self.names.texts.remove(&full),
        }
        self.names.full.insert(name.to_owned(), full);
    }

    /// A text with the full names of what it names.
    pub(super) fn written(&self, text: &str) -> String {
        let mut written = String::with_capacity(text.len());
        let mut quote = None;
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let mut length = c.len_utf8();
            let mut replaced = None;
            match quote {
                Some(open) if c == open => quote = None,
                None if matches!(c, '\'' | '"') => quote = Some(c),
                None if c.is_alphabetic() || c == '_' => {
                    length = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                    let word = rest.get(..length).unwrap_or_default();
                    if !written.ends_with('.') {
                        replaced = self.names.full.get(word);
                    }
                }
                Some(_) | None => {}
            }
            written.push_str(replaced.map_or_else(|| rest.get(..length).unwrap_or_default(), String::as_str));
            rest = rest.get(length..).unwrap_or_default();
        }
        self.displayed(written)
    }

    /// A text with the display of a dictionary or a list in place of its name, where it is read.
    fn displayed(&self, text: String) -> String {
        let names = text.split(['(', ')']).map(|name| name.trim().trim_end_matches(".items"));
        let mut shown = names.filter(|_| !self.names.displays.is_empty() && text.len() < LONGEST);
        let shown = shown.find_map(|name| Some((name, self.names.displays.get(name)?)));
        let is_read = !text.contains('=') || text.contains("environ.update(");
        match shown {
            Some((name, display)) if is_read => text.replacen(name, display, 1),
            _ => text,
        }
    }
}

/// The values of the targets of a loop over a display; `None` if it is not understood.
pub(super) fn rows(list: &str, targets: usize, scope: &CodeScope<'_>) -> Option<Vec<Vec<Option<String>>>> {
    let list = list.trim();
    if let Some(pairs) = list.strip_suffix(".items()").and_then(|list| list.strip_prefix('{')?.strip_suffix('}')) {
        let pairs = split(pairs, ',')?.into_iter().map(str::trim).filter(|pair| !pair.is_empty());
        let row = |pair| match split(pair, ':')?.as_slice() {
            [name, value] => Some(vec![string(name, scope), string(value, scope)]),
            _ => None,
        };
        return pairs.map(row).collect::<Option<Vec<_>>>().filter(|_| targets == 2);
    }
    let inner = list.strip_prefix('(').and_then(|list| list.strip_suffix(')'));
    let list = inner.map_or_else(|| list.to_owned(), |inner| format!("[{inner}]"));
    let values = strings(&list, scope).filter(|_| targets == 1)?;
    Some(values.into_iter().map(|value| vec![Some(value)]).collect())
}
