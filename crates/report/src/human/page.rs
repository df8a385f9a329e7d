//! Lines on a terminal or in a build log. All output of a report for people passes through this module, which escapes
//! all text from the image.

use std::io::{self, Write};

use anstyle::AnsiColor;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

use super::Style;
use crate::plain_text::clean;
use model::{Severity, command_guard};

/// Minimum and maximum width of a page: narrower ones leave no room for columns, wider lines are hard to read.
const WIDTHS: (usize, usize) = (40, 100);

/// Writer of a report's lines.
pub(crate) struct Page<'a> {
    out: &'a mut dyn Write,
    color: bool,
    width: usize,
}

/// A line and its indentation.
struct PageLine {
    indent: usize,
    text: String,
}

impl<'a> Page<'a> {
    pub(crate) fn new(out: &'a mut dyn Write, style: &Style) -> Self {
        Self { out, color: style.color, width: style.width.clamp(WIDTHS.0, WIDTHS.1) }
    }

    /// Number of columns from `indent` to the right edge.
    pub(crate) fn room(&self, indent: usize) -> usize {
        self.width.saturating_sub(indent)
    }

    pub(crate) fn blank(&mut self) -> io::Result<()> {
        writeln!(self.out)
    }

    /// Writes wrapped text.
    pub(crate) fn text(&mut self, indent: usize, text: &str) -> io::Result<()> {
        self.paragraph(indent, ("", anstyle::Style::new()), indent, indent, text)
    }

    /// Writes a highlighted word, and wrapped text after it.
    pub(crate) fn heading(&mut self, word: &str, look: anstyle::Style, text: &str) -> io::Result<()> {
        self.paragraph(0, (word, look), 0, 2, text)
    }

    /// Writes a label, and wrapped text in its own column.
    pub(crate) fn row(
        &mut self,
        indent: usize,
        label: (&str, anstyle::Style),
        column: usize,
        text: &str,
    ) -> io::Result<()> {
        self.paragraph(indent, label, column, column, text)
    }

    /// Writes a label, and a line that people copy, which is never wrapped.
    pub(crate) fn verbatim(
        &mut self,
        indent: usize,
        label: (&str, anstyle::Style),
        column: usize,
        line: &str,
    ) -> io::Result<()> {
        if label.0.is_empty() {
            return self.line(column, &clean(line));
        }
        let padding = column.saturating_sub(indent + label.0.width());
        self.lead(indent, &clean(label.0), label.1, padding, &clean(line))
    }

    /// Writes a line of a tree: the branch, a text that people copy, and a remark after it, or below it if there is no
    /// room. `below` replaces the branch on that second line.
    pub(crate) fn branch(
        &mut self,
        indent: usize,
        branch: &str,
        below: &str,
        text: &str,
        (end, look): (&str, anstyle::Style),
    ) -> io::Result<()> {
        let text = clean(text);
        let end = clean(end);
        let look = if self.color { look } else { anstyle::Style::new() };
        if indent + branch.width() + text.width() + 2 + end.width() <= self.width {
            return writeln!(self.out, "{:indent$}{branch}{text}: {look}{end}{look:#}", "");
        }
        writeln!(self.out, "{:indent$}{branch}{text}", "")?;
        writeln!(self.out, "{:indent$}{below}  {look}{end}{look:#}", "")
    }

    fn paragraph(
        &mut self,
        indent: usize,
        (label, look): (&str, anstyle::Style),
        column: usize,
        hang: usize,
        text: &str,
    ) -> io::Result<()> {
        let label = clean(label);
        let gap = if column == 0 { 1 } else { 2 };
        let start = if label.is_empty() { column } else { column.max(indent + label.width() + gap) };
        let mut lines = vec![PageLine { indent: start, text: String::new() }];
        for word in clean(text).split(' ').filter(|word| !word.is_empty()) {
            self.place(word, &mut lines, hang, indent + 2, label.is_empty());
        }
        let mut lines = lines.into_iter().peekable();
        if let Some(first) = lines.next_if(|_| !label.is_empty()) {
            let padding = if first.text.is_empty() { 0 } else { start - indent - label.width() };
            self.lead(indent, &label, look, padding, &first.text)?;
        }
        lines.try_for_each(|line| self.line(line.indent, &line.text))
    }

    /// Places a word where it fits: after the last one, else on a new line at the hanging indentation, else as far left
    /// as allowed. Words are never broken: half a path is useless.
    fn place(&self, word: &str, lines: &mut Vec<PageLine>, hang: usize, least: usize, may_start: bool) {
        let first = lines.len() == 1;
        let indent = if hang + word.width() <= self.width { hang } else { least.min(hang) };
        if let Some(line) = lines.last_mut() {
            let begun = !line.text.is_empty();
            if line.indent + line.text.width() + usize::from(begun) + word.width() <= self.width {
                line.text.push_str(if begun { " " } else { "" });
                line.text.push_str(word);
                return;
            }
            if first && !begun && may_start {
                *line = PageLine { indent, text: word.to_owned() };
                return;
            }
        }
        lines.push(PageLine { indent, text: word.to_owned() });
    }

    /// Writes a line with a label. Only the label is coloured: colour supports words and never replaces them.
    fn lead(&mut self, indent: usize, label: &str, look: anstyle::Style, padding: usize, text: &str) -> io::Result<()> {
        let look = if self.color { look } else { anstyle::Style::new() };
        writeln!(self.out, "{:indent$}{}{look}{label}{look:#}{:padding$}{text}", "", command_guard(label), "")
    }

    fn line(&mut self, indent: usize, text: &str) -> io::Result<()> {
        let indent = if text.is_empty() { 0 } else { indent };
        writeln!(self.out, "{:indent$}{}{text}", "", command_guard(text))
    }
}

/// A bold colour.
pub(crate) fn bold(color: AnsiColor) -> anstyle::Style {
    color.on_default().bold()
}

/// The style of a severity's name.
pub(crate) fn severity(severity: Severity) -> anstyle::Style {
    bold(match severity {
        Severity::Error => AnsiColor::Red,
        Severity::Warning => AnsiColor::Yellow,
        Severity::Info => AnsiColor::Cyan,
    })
}

/// A label with the style of labels.
pub(crate) fn label(text: &str) -> (&str, anstyle::Style) {
    (text, anstyle::Style::new().dimmed())
}

/// `text` cut to `room` columns.
pub(crate) fn cut(text: &str, room: usize) -> String {
    let text = clean(text);
    if text.width() <= room {
        return text;
    }
    let mut left = room.saturating_sub(1);
    let fits = text.chars().take_while(|character| {
        let width = character.width().unwrap_or_default();
        let fits = width <= left;
        left = left.saturating_sub(width);
        fits
    });
    format!("{}…", fits.collect::<String>().trim_end())
}
