//! Edits of launch files as text: what is not edited, comments and quotes among it, stays as it is written.

mod keys;
mod options;
mod secrets;
mod variables;

use std::ops::Range;

pub use keys::with_keys;
pub use options::{with_options, with_replaced};
pub use secrets::secret_lines;
pub use variables::with_variable;

/// A text with its lines.
struct Source<'t> {
    text: &'t str,
    /// Where each line begins, and where the text ends.
    starts: Vec<usize>,
}

impl<'t> Source<'t> {
    fn new(text: &'t str) -> Self {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).chain([text.len()]);
        Self { text, starts: starts.collect() }
    }

    /// The offset where a line begins, counted from 1, or the end of the text.
    fn start(&self, line: usize) -> usize {
        self.starts.get(line.saturating_sub(1)).copied().unwrap_or(self.text.len())
    }

    /// A line, without its end.
    fn line(&self, line: usize) -> &'t str {
        let line = self.text.get(self.start(line)..self.start(line + 1)).unwrap_or_default();
        line.trim_end_matches(['\n', '\r'])
    }

    /// The number of lines.
    const fn lines(&self) -> usize {
        self.starts.len() - 1
    }

    /// The end of a line that is added: that of the other lines.
    fn newline(&self) -> &'static str {
        if self.text.contains("\r\n") { "\r\n" } else { "\n" }
    }

    /// The text with these ranges replaced. Of several texts for one place, the order counts.
    fn replaced(&self, mut edits: Vec<(Range<usize>, String)>) -> String {
        edits.sort_by_key(|(range, _)| (range.start, range.end));
        let mut text = String::with_capacity(self.text.len());
        let mut end = 0;
        for (range, new) in edits {
            text.push_str(self.text.get(end..range.start).unwrap_or_default());
            if new.ends_with('\n') && range.start == self.text.len() && !text.ends_with('\n') {
                text.push_str(self.newline());
            }
            text.push_str(&new);
            end = range.end;
        }
        text.push_str(self.text.get(end..).unwrap_or_default());
        text
    }
}

#[cfg(test)]
mod tests;
