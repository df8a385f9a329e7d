//! A table with a row for each image, the worst last, where a terminal ends.

use std::io::{self, Write};

use anstyle::AnsiColor;
use unicode_width::UnicodeWidthStr as _;

use super::Style;
use super::collected::Collection;
use super::human::page::{bold, cut};
use super::survey::{JudgedRow, RowState, Survey, SurveyRow, Totals};
use judge::Verdict;
use model::command_guard;
use model::counted;

/// Minimum and maximum width in columns.
const WIDTHS: (usize, usize) = (60, 200);
/// Columns that a finding needs beside the image; with less it goes below.
const BESIDE: usize = 50;
/// Indentation of text below a row.
const BELOW: usize = 6;
/// Columns between two cells.
const GAP: usize = 2;
/// Cells before the image.
const CELLS: usize = 5;
const HEADS: [&str; CELLS] = ["verdict", "torch", "CUDA", "NCCL", "errors"];

/// How much of the findings a table shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TableDetail {
    /// The rule of the first finding of each image.
    First,
    /// Every finding of each image that does not pass.
    Every,
}

pub(super) fn write(collection: &Collection, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    rows(&collection.survey, TableDetail::Every, style, out)
}

/// Writes the table and the totals.
pub(super) fn rows(survey: &Survey, detail: TableDetail, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let layout = TableLayout::of(survey, style);
    let dim = if style.color { anstyle::Style::new().dimmed() } else { anstyle::Style::new() };
    let heads = layout.line(&HEADS.map(str::to_owned), "image");
    let heads = match layout.beside {
        Some(column) => format!("{heads:column$}finding"),
        None => heads,
    };
    writeln!(out, "{dim}{}{dim:#}", heads.trim_end())?;
    for row in survey.worst_last() {
        layout.row(row, &texts(survey, row, detail), out)?;
    }
    writeln!(out)?;
    for line in survey.provenance.lines() {
        writeln!(out, "{dim}{line}{dim:#}")?;
    }
    totals(survey.totals(), style, out)
}

/// Widths of the columns.
struct TableLayout {
    widths: [usize; CELLS],
    image: usize,
    /// Column of the findings if they are beside the image.
    beside: Option<usize>,
    width: usize,
    color: bool,
}

impl TableLayout {
    fn of(survey: &Survey, style: &Style) -> Self {
        let width = style.width.clamp(WIDTHS.0, WIDTHS.1);
        let widest = |cell: usize| {
            let texts = survey.rows.iter().map(|row| cells(row).get(cell).map_or(0, |text| text.width()));
            texts.chain(HEADS.get(cell).map(|head| head.len())).max().unwrap_or_default()
        };
        let widths = [0, 1, 2, 3, 4].map(widest);
        let start: usize = widths.iter().map(|width| width + GAP).sum();
        let room = width.saturating_sub(start);
        let name = survey.rows.iter().map(|row| row.reference.width()).max().unwrap_or_default().max("image".len());
        // A long name may take up to half of the room before findings move below the rows.
        let beside = room.checked_sub(name.min(room / 2) + GAP).is_some_and(|rest| rest >= BESIDE);
        let image = if beside { name.min(room / 2) } else { room };
        Self { widths, image, beside: beside.then_some(start + image + GAP), width, color: style.color }
    }

    fn line(&self, cells: &[String; CELLS], image: &str) -> String {
        let cells = cells
            .iter()
            .zip(self.widths)
            .map(|(text, width)| format!("{text}{:1$}", "", (width + GAP).saturating_sub(text.width())));
        cells.collect::<String>() + &middle_cut(image, self.image)
    }

    /// Writes a row, and its texts beside or below it.
    fn row(&self, row: &SurveyRow, texts: &[String], out: &mut dyn Write) -> io::Result<()> {
        let line = self.line(&cells(row), &row.reference);
        let word = row.word();
        let look = if self.color { colour(row.verdict()) } else { anstyle::Style::new() };
        let rest = line.strip_prefix(word).unwrap_or(&line);
        write!(out, "{look}{word}{look:#}{}", rest.trim_end())?;
        let column = self.beside.unwrap_or(BELOW);
        let mut lines = texts.iter().flat_map(|text| wrapped(text, self.width.saturating_sub(column))).peekable();
        if let Some(first) = lines.next_if(|_| self.beside.is_some()) {
            write!(out, "{:1$}{first}", "", column.saturating_sub(line.trim_end().width()))?;
        }
        writeln!(out)?;
        lines.try_for_each(|text| writeln!(out, "{:column$}{}{text}", "", command_guard(&text)))
    }
}

/// The cells before the image.
fn cells(row: &SurveyRow) -> [String; CELLS] {
    let word = row.word().to_owned();
    match row.judged() {
        None => [word, "-".to_owned(), "-".to_owned(), "-".to_owned(), "-".to_owned()],
        Some(judged) => {
            let JudgedRow { torch, cuda, nccl, counts, .. } = judged;
            [word, cut(torch, 16), cut(cuda, 8), cut(nccl, 10), counts.errors.to_string()]
        }
    }
}

/// The findings of a row: a line for each, which may be wrapped.
fn texts(survey: &Survey, row: &SurveyRow, detail: TableDetail) -> Vec<String> {
    let judged = match &row.state {
        RowState::Unopened(why) => return vec![format!("could not be opened: {why}")],
        RowState::Judged(judged) => judged,
    };
    let findings: Vec<_> = judged.findings.iter().filter_map(|index| survey.findings.get(*index)).collect();
    let name = |finding: &super::survey::SurveyFinding| format!("{}[{}]", finding.word(), finding.rule.id);
    if detail == TableDetail::First || judged.verdict == Verdict::Pass {
        let more = if findings.len() > 1 { format!(" and {} more", findings.len() - 1) } else { String::new() };
        let first = findings.first().map(|first| name(first) + &more);
        // Missing answers that do not prevent a pass are not findings, and the row has no other place for them.
        let open = judged.open().map(|open| format!("with {open}"));
        let parts: Vec<_> = open.into_iter().chain(first).collect();
        return if parts.is_empty() { Vec::new() } else { vec![parts.join(": ")] };
    }
    // One missing answer often concerns many rules.
    let groups = findings.chunk_by(|a, b| !a.is_failure && !b.is_failure && a.message == b.message);
    let text = |group: &[&super::survey::SurveyFinding]| {
        let finding = group.first()?;
        let more = if group.len() > 1 { format!(" and {} more rules", group.len() - 1) } else { String::new() };
        let hosts =
            if finding.hosts.is_empty() { String::new() } else { format!(" (on {})", finding.hosts.join("; ")) };
        Some(format!("{}{more}: {}{hosts} (owner: {})", name(finding), finding.message, finding.owner.name()))
    };
    groups.filter_map(text).collect()
}

/// Writes the number of images with each result, after the worst of them.
pub(super) fn totals(totals: Totals, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let Totals { passed, open, failed, incomplete, unopened } = totals;
    let (word, verdict) = match (unopened, failed, incomplete) {
        (0, 0, 0) => ("PASSED:", Some(Verdict::Pass)),
        (0, 0, _) => ("INCOMPLETE:", Some(Verdict::Incomplete)),
        (0, ..) => ("FAILED:", Some(Verdict::Fail)),
        _ => ("ERROR:", None),
    };
    let parts = [(unopened, "could not be opened"), (failed, "failed"), (incomplete, "incomplete"), (passed, "passed")];
    let mut parts: Vec<_> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if open > 0 {
        parts.push(format!("{open} of these with findings or missing answers"));
    }
    let look = if style.color { colour(verdict) } else { anstyle::Style::new() };
    let images = counted(passed + failed + incomplete + unopened, "image", "images");
    writeln!(out, "{look}{word}{look:#} {images}: {}", parts.join(", "))
}

fn colour(verdict: Option<Verdict>) -> anstyle::Style {
    bold(match verdict {
        Some(Verdict::Pass) => AnsiColor::Green,
        Some(Verdict::Incomplete) => AnsiColor::Magenta,
        Some(Verdict::Fail) | None => AnsiColor::Red,
    })
}

/// A text without its middle, if it is too wide: the beginning of a reference names its registry, and the end, which
/// gets more room, its repository and tag.
fn middle_cut(text: &str, room: usize) -> String {
    if text.width() <= room {
        return text.to_owned();
    }
    let characters: Vec<char> = text.chars().collect();
    let tail = room * 2 / 3;
    let start = characters.len().saturating_sub(tail);
    let end: String = characters.get(start..).unwrap_or_default().iter().collect();
    cut(text, room.saturating_sub(end.width())) + &end
}

/// The lines of a text. A word that is wider than a line is not broken.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        // Lines after the first are indented.
        let indent = if lines.len() > 1 || lines.last().is_some_and(|line| line.width() + 1 + word.width() > width) {
            "  "
        } else {
            ""
        };
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(format!("{indent}{word}")),
        }
    }
    lines
}
