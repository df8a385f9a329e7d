//! The summary of a run for people: as text, or in Markdown.

use std::borrow::Cow;
use std::io::{self, Write};

use model::{counted, printable, size};

use super::aggregate::AuditSums;
use super::document::{AuditCounts, AuditRow};
use super::plan::AuditPlan;

/// Lines of each table.
pub(super) const SHOWN: usize = 20;

/// The name, the verdict and the first finding of an image.
pub(super) fn brief(row: &AuditRow) -> [String; 3] {
    let worst = row.findings.iter().max_by_key(|finding| finding.severity);
    let unavailable = row.unavailable.as_ref().map(|unavailable| (&*unavailable.kind, &*unavailable.why));
    let first = worst.map(|finding| (&*finding.rule, &*finding.message)).or(unavailable);
    let first = first.map(|(rule, message)| format!("{rule}: {}", message.lines().next().unwrap_or_default()));
    [row.names.first().cloned().unwrap_or_default(), row.verdict.clone(), first.unwrap_or_default()]
}

/// Writes the summary of a run. `failing` are the first failing images.
pub(super) fn write(
    plan: &AuditPlan,
    sums: &AuditSums,
    failing: Vec<[String; 3]>,
    is_markdown: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let AuditCounts { images, pass, fail, incomplete, unavailable, pending } = sums.counts;
    let line = format!(
        "{}: {pass} pass, {fail} fail, {incomplete} incomplete, {unavailable} unavailable, {pending} pending",
        counted(images, "image", "images")
    );
    if is_markdown {
        writeln!(out, "# Audit {}\n\n{line}", plain(&plan.run))?;
    } else {
        writeln!(out, "run {}\n{line}", plain(&plan.run))?;
    }
    for (name, why) in &plan.unresolved {
        writeln!(out, "not resolved: {}: {}", plain(name), plain(why.lines().next().unwrap_or_default()))?;
    }
    let layers = sums.layers().into_iter().map(|layer| {
        let owner = layer.owner.as_ref().zip(layer.owner_from.as_ref());
        vec![
            layer.images.to_string(),
            layer.severity.name().to_owned(),
            layer.rule.clone(),
            layer.layer.split(':').next_back().unwrap_or_default().chars().take(12).collect(),
            size(layer.size),
            owner.map_or_else(String::new, |(owner, from)| format!("{owner} (by {from})")),
            layer.step.as_deref().unwrap_or_default().chars().take(60).collect(),
        ]
    });
    let titles = ["images", "severity", "rule", "layer", "size", "owner", "build step"];
    table("Layers that bring findings", &titles, layers.collect(), is_markdown, out)?;
    let rules = sums.rules().into_iter().map(|rule| {
        let counts = [rule.images.to_string(), rule.layers.to_string()];
        let [images, layers] = counts;
        vec![images, rule.severity.name().to_owned(), rule.rule.clone(), layers, rule.example.clone()]
    });
    table("Rules", &["images", "severity", "rule", "layers", "such as"], rules.collect(), is_markdown, out)?;
    let teams = sums.teams().into_iter().map(|team| {
        let worst = team.rules.iter().max_by_key(|(_, count)| **count).map(|(rule, _)| rule.clone());
        let counts = team.counts;
        vec![
            team.team.clone().unwrap_or_else(|| "(no team)".to_owned()),
            counts.images.to_string(),
            counts.fail.to_string(),
            counts.incomplete.to_string(),
            worst.unwrap_or_default(),
        ]
    });
    table("Teams", &["team", "images", "fail", "incomplete", "most frequent"], teams.collect(), is_markdown, out)?;
    let failing = failing.into_iter().map(Vec::from).collect();
    let titles = ["image", "verdict", "finding"];
    table_of("Images that fail or are unavailable", &titles, failing, fail + unavailable, is_markdown, out)
}

/// Writes a table, unless it is empty.
pub(super) fn table(
    title: &str,
    titles: &[&str],
    rows: Vec<Vec<String>>,
    is_markdown: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let count = rows.len();
    table_of(title, titles, rows, count, is_markdown, out)
}

/// Writes the table of `count` rows, of which at least the first [`SHOWN`] are given.
fn table_of(
    title: &str,
    titles: &[&str],
    rows: Vec<Vec<String>>,
    count: usize,
    is_markdown: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let shown = rows.len().min(SHOWN);
    let rest = count.saturating_sub(shown);
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .take(shown)
        .map(|row| row.iter().map(|cell| if is_markdown { escaped(cell) } else { plain(cell).into_owned() }).collect())
        .collect();
    if is_markdown {
        writeln!(out, "\n## {title}\n\n| {} |\n|{}", titles.join(" | "), "---|".repeat(titles.len()))?;
        for row in &rows {
            writeln!(out, "| {} |", row.join(" | "))?;
        }
    } else {
        writeln!(out, "\n{title}")?;
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count());
            cells.chain(titles.get(column).map(|title| title.len())).max().unwrap_or_default()
        };
        let widths: Vec<_> = (0..titles.len()).map(width).collect();
        let line = |cells: Vec<&str>| {
            let padded = cells.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
            format!("  {}", padded.collect::<Vec<_>>().join("  ")).trim_end().to_owned()
        };
        writeln!(out, "{}", line(titles.to_vec()))?;
        for row in &rows {
            writeln!(out, "{}", line(row.iter().map(String::as_str).collect()))?;
        }
    }
    if rest > 0 {
        let blank = if is_markdown { "\n" } else { "  " };
        let help = "--format json has all";
        writeln!(out, "{blank}and {rest} more: {help}")?;
    }
    Ok(())
}

/// A text on one line that cannot control a terminal.
fn plain(text: &str) -> Cow<'_, str> {
    match printable(text) {
        Cow::Borrowed(text) if !text.contains(['\n', '\t']) => Cow::Borrowed(text),
        text => Cow::Owned(text.replace(['\n', '\t'], " ")),
    }
}

/// A text as a cell of a Markdown table.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in plain(text).chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' | '#' | '!' | '~' => escaped.extend(['\\', character]),
            '@' => escaped.push_str("&#64;"),
            other => escaped.push(other),
        }
    }
    escaped
}
