//! Changes of a Dockerfile: assignments removed or replaced, instructions added. Everything else stays as it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use similar::TextDiff;

use model::conceal;

use super::words::EnvPair;
use super::{Dockerfile, DockerfileStep};

/// Lines around each change that a diff shows, as `diff -u` does.
pub const CONTEXT: usize = 3;

/// Time for the smallest diff. A Dockerfile takes milliseconds; the diff of a hostile one is larger.
const PATIENCE: Duration = Duration::from_secs(1);

/// Changes of a Dockerfile, which is never written.
#[derive(Clone, Debug, Default)]
pub struct DockerfileChanges {
    /// Variables whose assignments go.
    unset: BTreeSet<String>,
    /// Replaced texts.
    edits: Vec<TextEdit>,
}

/// A range of the text, and what replaces it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TextEdit {
    range: Range<usize>,
    text: String,
}

/// Why an assignment cannot be changed mechanically.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeRefusal {
    /// No instruction of the final stage, or of those that it is built on, sets the variable.
    #[error("the base image sets {0}, not this Dockerfile")]
    Inherited(String),
    /// Another instruction expands the variable.
    #[error("line {line} uses ${name}")]
    Used {
        /// The variable.
        name: String,
        /// The line that uses it.
        line: usize,
    },
    /// The folder is not written in the assignment.
    #[error("{0} is not written in the Dockerfile")]
    NotWritten(String),
    /// The value of a build argument comes from the command that builds the image.
    #[error("ARG {0} has no default: --build-arg gives its value")]
    NoDefault(String),
    /// The files were made by another image, which `COPY --from` names.
    #[error("line {0} copies the files from another image")]
    Foreign(usize),
}

impl DockerfileChanges {
    /// True if nothing changes.
    pub fn is_empty(&self) -> bool {
        self.unset.is_empty() && self.edits.is_empty()
    }

    fn replace(&mut self, range: Range<usize>, text: String) {
        let edit = TextEdit { range, text };
        if !self.edits.contains(&edit) {
            self.edits.push(edit);
        }
    }
}

impl Dockerfile {
    /// Removes every assignment of a variable from the final stage and those that it is built on.
    pub fn unset(&self, name: &str, changes: &mut DockerfileChanges) -> Result<(), ChangeRefusal> {
        if self.pair(name).is_none() {
            return Err(ChangeRefusal::Inherited(name.to_owned()));
        }
        if let Some(line) = self.user_of(name) {
            return Err(ChangeRefusal::Used { name: name.to_owned(), line });
        }
        changes.unset.insert(name.to_owned());
        Ok(())
    }

    /// Gives a variable another value: where it is set last, or in a new instruction at the beginning of the final
    /// stage.
    pub fn set(&self, name: &str, value: &str, changes: &mut DockerfileChanges) {
        let text = format!("{name}={}", quoted(value, self.escape));
        match self.pair(name) {
            Some(pair) => changes.replace(pair.span.clone(), text),
            None => changes.replace(self.beginning..self.beginning, self.lines(&format!("ENV {text}"))),
        }
    }

    /// Gives a build argument another default, wherever it has one.
    pub fn set_argument(&self, name: &str, value: &str, changes: &mut DockerfileChanges) -> Result<(), ChangeRefusal> {
        let written = self.arguments.iter().filter(|pair| pair.name == name);
        let written: Vec<_> = written.filter(|pair| self.raw(&pair.span).contains('=')).collect();
        if written.is_empty() {
            return Err(ChangeRefusal::NoDefault(name.to_owned()));
        }
        for pair in written {
            changes.replace(pair.span.clone(), format!("{name}={}", quoted(value, self.escape)));
        }
        Ok(())
    }

    fn raw(&self, span: &Range<usize>) -> &str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Removes a folder from a list of folders, such as `LD_LIBRARY_PATH`, where the list is set last.
    pub fn remove_folder(
        &self,
        name: &str,
        folder: &str,
        changes: &mut DockerfileChanges,
    ) -> Result<(), ChangeRefusal> {
        let pair = self.pair(name).ok_or_else(|| ChangeRefusal::Inherited(name.to_owned()))?;
        let written = self.text.get(pair.span.clone()).unwrap_or_default();
        let edges = |character: char| matches!(character, ':' | '=' | '"' | '\'' | ' ' | '\t');
        let found = written.match_indices(folder).find(|(at, _)| {
            let (before, after) = written.split_at_checked(*at).unwrap_or_default();
            let after = after.get(folder.len()..).unwrap_or_default();
            before.ends_with(edges) && (after.is_empty() || after.starts_with([':', '"', '\'']))
        });
        let (at, _) = found.ok_or_else(|| ChangeRefusal::NotWritten(folder.to_owned()))?;
        let start = pair.span.start + at;
        let end = start + folder.len();
        // One of the colons around the folder goes with it.
        let range = if self.text.get(end..).is_some_and(|rest| rest.starts_with(':')) {
            start..end + 1
        } else if self.text.get(..start).is_some_and(|before| before.ends_with(':')) {
            start - 1..end
        } else {
            start..end
        };
        changes.replace(range, String::new());
        Ok(())
    }

    /// Adds instructions for the files that the instruction in a line made: to its stage, below everything that the same
    /// user builds there, or to the end of the stage from which it copies them. Without a line, they begin the final stage.
    pub fn add(
        &self,
        line: Option<usize>,
        instructions: &str,
        changes: &mut DockerfileChanges,
    ) -> Result<(), ChangeRefusal> {
        let step = line.and_then(|line| self.steps.iter().find(|step| step.line == line));
        let offset = match step {
            None => self.beginning,
            Some(step @ DockerfileStep { copied_from: None, .. }) => self.end_of_build(step),
            Some(DockerfileStep { copied_from: Some(stage), line, .. }) => {
                let made = self.stages.iter().find(|(name, _)| name.eq_ignore_ascii_case(stage));
                made.map(|(_, end)| *end).ok_or(ChangeRefusal::Foreign(*line))?
            }
        };
        changes.replace(offset..offset, self.lines(instructions));
        Ok(())
    }

    /// The offset behind the last instruction that adds files in a step's stage, before another user takes over.
    fn end_of_build(&self, step: &DockerfileStep) -> usize {
        let below = self.steps.iter().filter(|other| other.stage == step.stage && other.start >= step.start);
        let by_same_user = below.take_while(|other| !other.text.starts_with("USER "));
        let builds =
            |other: &&DockerfileStep| ["RUN ", "COPY ", "ADD "].iter().any(|kind| other.text.starts_with(kind));
        by_same_user.filter(builds).last().map_or(step.end, |last| last.end)
    }

    /// The changed text.
    pub fn changed(&self, changes: &DockerfileChanges) -> String {
        let removed = self.steps.iter().flat_map(|step| self.without(step, &changes.unset));
        let mut edits: Vec<TextEdit> = changes.edits.iter().cloned().chain(removed).collect();
        edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
        let mut text = String::with_capacity(self.text.len());
        let mut end = 0;
        for edit in edits.into_iter().filter(|edit| edit.range.start <= edit.range.end) {
            // An edit within a removed instruction has nothing left to change.
            if edit.range.start < end {
                continue;
            }
            text.push_str(self.text.get(end..edit.range.start).unwrap_or_default());
            if !edit.text.is_empty() && edit.range.is_empty() && !text.is_empty() && !text.ends_with('\n') {
                text.push_str(self.newline());
            }
            text.push_str(&edit.text);
            end = edit.range.end;
        }
        text.push_str(self.text.get(end..).unwrap_or_default());
        text
    }

    /// The changes as a unified diff against the Dockerfile. Secrets in it are concealed.
    pub fn diff(&self, changes: &DockerfileChanges) -> String {
        conceal(&unified(&self.path, &self.text, &self.changed(changes), CONTEXT)).into_owned()
    }

    /// The value that the Dockerfile gives a variable last, as written, with the line.
    pub fn value(&self, name: &str) -> Option<(&str, usize)> {
        self.pair(name).map(|pair| (&*pair.value, self.line_at(pair.span.start)))
    }

    /// Names of the variables that the final stage and those below it set.
    pub fn variables(&self) -> BTreeSet<&str> {
        self.assignments().into_keys().collect()
    }

    /// The assignment that decides the value of each variable.
    pub(super) fn assignments(&self) -> BTreeMap<&str, &EnvPair> {
        self.steps.iter().flat_map(|step| &step.variables).map(|pair| (&*pair.name, pair)).collect()
    }

    /// The assignment that decides a variable's value.
    fn pair(&self, name: &str) -> Option<&EnvPair> {
        self.steps.iter().rev().flat_map(|step| step.variables.iter().rev()).find(|pair| pair.name == name)
    }

    /// The line of an instruction that expands a variable.
    fn user_of(&self, name: &str) -> Option<usize> {
        let expands = |line: &str| {
            line.match_indices(name).any(|(at, _)| {
                let (before, after) = line.split_at_checked(at).unwrap_or_default();
                let after = after.get(name.len()..).unwrap_or_default();
                (before.ends_with('$') || before.ends_with("${"))
                    && !after.starts_with(|next: char| next.is_ascii_alphanumeric() || next == '_')
            })
        };
        let mut lines = self.text.lines().zip(1..);
        lines.find(|(line, _)| !line.trim_start().starts_with('#') && expands(line)).map(|(_, number)| number)
    }

    pub(super) fn line_at(&self, offset: usize) -> usize {
        1 + self.newlines.partition_point(|newline| *newline < offset)
    }

    /// The edits that remove assignments from one instruction.
    fn without(&self, step: &DockerfileStep, names: &BTreeSet<String>) -> Vec<TextEdit> {
        let pairs = &step.variables;
        let goes = |pair: &EnvPair| names.contains(&pair.name);
        if pairs.is_empty() || !pairs.iter().any(goes) {
            return Vec::new();
        }
        if pairs.iter().all(goes) {
            return vec![TextEdit { range: self.line_start(step.start)..step.end, text: String::new() }];
        }
        let mut edits = Vec::new();
        let mut before: Option<&EnvPair> = None;
        let mut rest = pairs.as_slice();
        while let Some(first) = rest.first() {
            let count = rest.iter().take_while(|pair| goes(pair)).count();
            let (run, after) = rest.split_at_checked(count).unwrap_or_default();
            if let Some(last) = run.last() {
                let range = self.gap(before, first.span.start..last.span.end, after.first());
                edits.push(TextEdit { range, text: String::new() });
            }
            before = after.first();
            rest = after.get(1..).unwrap_or_default();
        }
        edits
    }

    /// What to remove with neighbouring assignments, so that the instruction stays complete and comments stay.
    fn gap(&self, before: Option<&EnvPair>, own: Range<usize>, after: Option<&EnvPair>) -> Range<usize> {
        let between = |range: Range<usize>| self.text.get(range).unwrap_or_default();
        match (before, after) {
            (None, Some(after)) if between(own.end..after.span.start).contains('#') => own,
            (_, Some(after)) if !between(own.end..after.span.start).contains('\n') => own.start..after.span.start,
            (None, Some(after)) => own.start..after.span.start,
            (Some(before), Some(_)) if between(before.span.end..own.start).contains('\n') => {
                self.line_start(own.start)..self.line_end(own.end)
            }
            (Some(before), _) => before.span.end..own.end,
            (None, None) => own,
        }
    }

    fn line_start(&self, offset: usize) -> usize {
        self.text.get(..offset).and_then(|before| before.rfind('\n')).map_or(0, |newline| newline + 1)
    }

    /// The offset behind the line that contains an offset.
    fn line_end(&self, offset: usize) -> usize {
        line_end(&self.text, offset)
    }

    /// Instructions as lines of this file.
    fn lines(&self, instructions: &str) -> String {
        instructions.lines().flat_map(|line| [line, self.newline()]).collect()
    }

    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }
}

/// The offset behind the line of a text that contains an offset.
pub(super) fn line_end(text: &str, offset: usize) -> usize {
    text.get(offset..).and_then(|rest| rest.find('\n')).map_or(text.len(), |newline| offset + newline + 1)
}

/// The change from one text of a file to another, as `patch -p0` and `git apply -p0` read it; empty if there is none. So many
/// lines around each change are shown.
pub fn unified(path: &str, before: &str, after: &str, context: usize) -> String {
    // A line ends where `patch` ends it, not at a carriage return.
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let before = lines(before);
    let after = lines(after);
    let mut differ = TextDiff::configure();
    let diff = differ.timeout(PATIENCE).newline_terminated(true).diff_slices(&before, &after);
    diff.unified_diff().context_radius(context).header(path, path).to_string()
}

/// A value as a word of `ENV`.
fn quoted(value: &str, escape: char) -> String {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._/:=,+^@%-".contains(character);
    if value.chars().all(is_plain) {
        return value.to_owned();
    }
    let escaped = value.chars().flat_map(|character| {
        let is_special = matches!(character, '"' | '$') || character == escape;
        is_special.then_some(escape).into_iter().chain([character])
    });
    format!("\"{}\"", escaped.collect::<String>())
}

#[cfg(test)]
mod tests;
