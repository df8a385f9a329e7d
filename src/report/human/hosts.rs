//! One image on several hosts: the judgements that all hosts share, then the hosts with their verdicts and the rules
//! whose outcomes differ between hosts.

use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use super::{colour, counted, judgements};
use crate::judge::rules::{Judgement, Outcome, Rule};
use crate::report::{Report, Verdict};

/// Width of a host's column in the table: the longest word and two spaces.
const CELL: usize = 9;

/// A rule and its outcome on each host.
struct HostRow<'a> {
    rule: &'a Rule,
    outcomes: Vec<&'a Outcome>,
}

pub(super) fn write(reports: &[Report<'_>], verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    let (common, rows) = parted(reports);
    judgements::write(&common, first.image, verbose, page)?;
    page.blank()?;
    page.heading("hosts", page::bold(AnsiColor::Cyan), "")?;
    for (number, report) in reports.iter().enumerate() {
        if let (Some(host), Some(verdict)) = (report.host, report.verdict()) {
            let text = format!("{:12}{host}", verdict.name().to_uppercase());
            page.verbatim(2, (&format!("{}", number + 1), colour(verdict)), 5, &text)?;
        }
    }
    let rows: Vec<_> = rows.into_iter().filter(|row| row.outcomes.iter().any(|outcome| tells(outcome))).collect();
    if !rows.is_empty() {
        table(&rows, reports.len(), page)?;
    }
    rows.iter().try_for_each(|row| details(row, reports, verbose, page))
}

/// Splits the judgements into those that are equal on every host and those that differ.
fn parted<'a>(reports: &'a [Report<'a>]) -> (Vec<Judgement<'a>>, Vec<HostRow<'a>>) {
    let mut common = Vec::new();
    let mut rows = Vec::new();
    let all: Vec<&[Judgement<'_>]> = reports.iter().filter_map(|report| report.judgements).collect();
    for (index, judgement) in all.first().copied().unwrap_or_default().iter().enumerate() {
        let outcomes: Vec<&Outcome> = all.iter().filter_map(|all| Some(&all.get(index)?.outcome)).collect();
        if outcomes.iter().all(|outcome| **outcome == judgement.outcome) {
            common.push(Judgement { rule: judgement.rule, outcome: judgement.outcome.clone() });
        } else {
            rows.push(HostRow { rule: judgement.rule, outcomes });
        }
    }
    (common, rows)
}

const fn tells(outcome: &Outcome) -> bool {
    matches!(outcome, Outcome::Fail(_) | Outcome::Unknown(_))
}

fn table(rows: &[HostRow<'_>], hosts: usize, page: &mut Page<'_>) -> io::Result<()> {
    let column = 4 + rows.iter().map(|row| row.rule.id.len()).max().unwrap_or_default();
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let text = cells.fold(String::new(), |text, cell| text + &format!("{cell:CELL$}"));
        text.trim_end().to_owned()
    };
    page.blank()?;
    page.verbatim(2, label("host"), column, &line(&mut (1..=hosts).map(|number| number.to_string())))?;
    for row in rows {
        let mut cells = row.outcomes.iter().map(|outcome| match outcome {
            Outcome::Pass => "pass".to_owned(),
            Outcome::Fail(_) => row.rule.severity.name().to_owned(),
            Outcome::NotApplicable => "-".to_owned(),
            Outcome::Unknown(_) => "unknown".to_owned(),
            Outcome::Waived(_) => "waived".to_owned(),
        });
        page.verbatim(2, label(&row.rule.id), column, &line(&mut cells))?;
    }
    Ok(())
}

/// Writes a rule's findings on each host, and its fix once.
fn details(row: &HostRow<'_>, reports: &[Report<'_>], verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    let mut groups: Vec<(&Outcome, Vec<&str>)> = Vec::new();
    for (outcome, report) in row.outcomes.iter().zip(reports).filter(|(outcome, _)| tells(outcome)) {
        let name = report.host.map_or("", |host| &host.name);
        match groups.iter_mut().find(|(known, _)| known == outcome) {
            Some((_, names)) => names.push(name),
            None => groups.push((outcome, vec![name])),
        }
    }
    judgements::on_hosts(row.rule, &groups, first.image, verbose, page)
}

/// Writes the last line: the number of hosts with each verdict.
pub(super) fn counts(reports: &[Report<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let Some(worst) = Verdict::worst(reports.iter().filter_map(Report::verdict)) else { return Ok(()) };
    let count = |verdict| reports.iter().filter(|report| report.verdict() == Some(verdict)).count();
    let parts: Vec<_> = [(Verdict::Fail, "failed"), (Verdict::Incomplete, "incomplete"), (Verdict::Pass, "passed")]
        .into_iter()
        .map(|(verdict, word)| format!("{} {word}", count(verdict)))
        .collect();
    let word = super::last_word(worst);
    page.blank()?;
    let text = format!("{}: {}", counted(reports.len(), "host", "hosts"), parts.join(", "));
    page.verbatim(0, (word, colour(worst)), word.len() + 1, &text)
}
