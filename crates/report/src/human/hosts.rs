//! One image on several hosts: the hosts with their verdicts, the rules whose outcomes differ between hosts, and the
//! judgements for all hosts.

use std::cmp::Reverse;
use std::io;

use anstyle::AnsiColor;

use super::colour;
use super::judgements::{self, JudgementEntry};
use super::page::{self, Page, label};
use crate::counts::OutcomeCounts;
use crate::{Report, Verdict};
use judge::rules::{Judgement, Outcome, Rule};
use judge::{SharedJudgement, across_hosts};
use model::counted;

/// Width of a host's column in the table: the longest word and two spaces.
const CELL: usize = 9;

/// A rule and its outcome on each host.
type HostRow<'a> = (&'a Rule, Vec<&'a Outcome>);

pub(super) fn write(reports: &[Report<'_>], verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let Some(first) = reports.first() else { return Ok(()) };
    page.blank()?;
    page.heading("hosts", page::bold(AnsiColor::Cyan), "")?;
    let words = reports.iter().map(|report| {
        let verdict = report.verdict()?;
        Some(OutcomeCounts::of(report.judgements?).verdict(verdict, &verdict.name().to_uppercase()))
    });
    let words: Vec<_> = words.collect();
    let column = 2 + words.iter().flatten().map(String::len).chain([10]).max().unwrap_or_default();
    for ((number, report), word) in reports.iter().enumerate().zip(words) {
        if let (Some(host), Some(verdict), Some(word)) = (report.host, report.verdict(), word) {
            let text = format!("{word:column$}{host}");
            page.verbatim(2, (&format!("{}", number + 1), colour(verdict)), 5, &text)?;
        }
    }
    let rows = rows(reports);
    if !rows.is_empty() {
        table(&rows, reports.len(), page)?;
    }
    judgements::write(&entries(reports), first, verbose, page)
}

/// The outcomes of all rules, with the hosts on which they differ.
fn entries<'a>(reports: &'a [Report<'a>]) -> Vec<JudgementEntry<'a>> {
    let judged: Vec<_> = reports.iter().filter_map(|report| report.judgements).collect();
    let name = |host: &usize| reports.get(*host)?.host.map(|host| &*host.name);
    let shared = across_hosts(&judged).into_iter();
    let entry = |shared: SharedJudgement<'a>| JudgementEntry {
        owner: shared.judgement.owner,
        rule: shared.judgement.rule,
        outcome: &shared.judgement.outcome,
        hosts: shared.hosts.iter().filter_map(name).collect(),
    };
    shared.map(entry).collect()
}

/// The rules whose outcomes differ between hosts and that have a problem on one of them, worst severity first.
fn rows<'a>(reports: &'a [Report<'a>]) -> Vec<HostRow<'a>> {
    let all: Vec<&[Judgement<'_>]> = reports.iter().filter_map(|report| report.judgements).collect();
    let row = |(index, judgement): (usize, &'a Judgement<'a>)| {
        let outcomes: Vec<&Outcome> = all.iter().filter_map(|all| Some(&all.get(index)?.outcome)).collect();
        let differs = outcomes.iter().any(|outcome| **outcome != judgement.outcome);
        let is_shown = differs && outcomes.iter().any(|outcome| is_problem(outcome));
        is_shown.then_some((judgement.rule, outcomes))
    };
    let mut rows: Vec<_> = all.first().copied().unwrap_or_default().iter().enumerate().filter_map(row).collect();
    rows.sort_by_key(|(rule, _)| Reverse(rule.severity));
    rows
}

const fn is_problem(outcome: &Outcome) -> bool {
    outcome.failure().is_some() || outcome.is_unknown()
}

fn table(rows: &[HostRow<'_>], hosts: usize, page: &mut Page<'_>) -> io::Result<()> {
    let column = 4 + rows.iter().map(|(rule, _)| rule.id.len()).max().unwrap_or_default();
    let line = |cells: &mut dyn Iterator<Item = String>| {
        let text = cells.fold(String::new(), |text, cell| text + &format!("{cell:CELL$}"));
        text.trim_end().to_owned()
    };
    page.blank()?;
    page.verbatim(2, label("host"), column, &line(&mut (1..=hosts).map(|number| number.to_string())))?;
    for (rule, outcomes) in rows {
        let mut cells = outcomes.iter().map(|outcome| match outcome {
            _ if outcome.failure().is_some() => rule.severity.name().to_owned(),
            Outcome::NotApplicable => "-".to_owned(),
            _ => outcome.name().to_owned(),
        });
        page.verbatim(2, label(&rule.id), column, &line(&mut cells))?;
    }
    Ok(())
}

/// Writes the last line: the number of hosts with each verdict.
pub(super) fn counts(reports: &[Report<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let Some(worst) = Verdict::worst(reports.iter().filter_map(Report::verdict)) else { return Ok(()) };
    let count = |verdict| reports.iter().filter(|report| report.verdict() == Some(verdict)).count();
    let parts: Vec<_> = [(Verdict::Fail, "failed"), (Verdict::Incomplete, "incomplete"), (Verdict::Pass, "passed")]
        .into_iter()
        .map(|(verdict, word)| format!("{} {word}", count(verdict)))
        .collect();
    let judged: Vec<_> = reports.iter().filter_map(|report| report.judgements).collect();
    let counts = OutcomeCounts::of(across_hosts(&judged).iter().map(|shared| shared.judgement));
    let word = counts.verdict(worst, super::last_word(worst)) + ":";
    page.blank()?;
    let text = format!("{}: {}", counted(reports.len(), "host", "hosts"), parts.join(", "));
    page.verbatim(0, (&word, colour(worst)), word.len() + 1, &text)
}
