//! The report for people: the verdict, the overview, the judgements and the counts, in this order, so that the first
//! and the last line say the most.

pub(crate) mod cluster;
mod doctor;
mod facts;
mod findings;
mod hosts;
mod job;
mod judgements;
mod machine;
mod network;
pub(super) mod overview;
pub(super) mod page;
mod probe;
mod site;
pub(super) mod tree;

use std::collections::BTreeSet;
use std::io::{self, Write};

use anstyle::AnsiColor;

use super::collected::Collection;
use super::counts::OutcomeCounts;
use super::survey::RowState;
use super::table::{self, TableDetail};
use super::{Report, Verdict};
use crate::offer::Offer;
use ::facts::key;
use ::facts::machine::Record;
use judge::across_hosts;
use judge::rules::{Judgement, Outcome, Problem};
use judgements::JudgementEntry;
use model::counted;
use page::Page;

/// Layout of a report for people.
#[derive(Clone, Debug)]
pub struct Style {
    /// True to write colours.
    pub color: bool,
    /// Width of the terminal in columns.
    pub width: usize,
    /// True to show rules that passed or do not apply, absent facts, and all text that is cut otherwise.
    pub verbose: bool,
    /// True to write, for several images, each finding once, in place of a report on each image.
    pub brief: bool,
}

/// Writes what a machine offers.
pub(super) fn offers(offers: &[Offer], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    doctor::write(offers, &mut Page::new(out, style))
}

/// Writes a host record.
pub(super) fn machine(record: &Record, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    machine::write(record, &mut Page::new(out, style))
}

pub(super) fn write(reports: &[Report<'_>], style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let Some(report) = reports.first() else { return Ok(()) };
    if style.brief && report.judgements.is_some() {
        return Ok(());
    }
    let mut page = Page::new(out, style);
    headline(report, reports, &mut page)?;
    page.blank()?;
    let is_of_image = report.facts.are_of_image();
    if !report.image.layers.is_empty() || report.probe.is_none() && is_of_image {
        overview::image(report.image, style.verbose, &mut page)?;
    }
    match report.judgements {
        Some(judgements) => {
            match report.probe {
                Some(probe) => probe::summary(probe, report.facts, &mut page)?,
                None => overview::summary(report.facts, &mut page)?,
            }
            if reports.len() > 1 {
                hosts::write(reports, style.verbose, &mut page)?;
            } else {
                let entries: Vec<_> = judgements.iter().map(JudgementEntry::from).collect();
                judgements::write(&entries, report, style.verbose, &mut page)?;
            }
        }
        None => facts::write(report.facts, report.image, style.verbose, &mut page)?,
    }
    if let Some(probe) = report.probe {
        probe::tables(probe, report.facts, &mut page)?;
    }
    // By default it is left out: it differs between machines, and not between images.
    let sandbox = report.run.and_then(|run| run.sandbox.as_ref()).filter(|_| style.verbose);
    let sandbox = sandbox.map(|state| format!("the sandbox was {state}"));
    notes(report.image.notes.iter().chain(report.notices).chain(&sandbox), &mut page)?;
    match (report.verdict(), report.judgements) {
        (Some(_), Some(_)) if reports.len() > 1 => hosts::counts(reports, &mut page),
        (Some(verdict), Some(judgements)) => counts(verdict, judgements, &mut page),
        _ => Ok(()),
    }
}

/// Writes what is said once for several images: the findings, unless each image has a report with them, and the table.
pub(super) fn finish(collection: &Collection, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let survey = &collection.survey;
    if style.brief {
        findings::write(survey, &mut Page::new(&mut *out, style))?;
    } else if survey.rows.len() < 2 {
        return Ok(());
    } else if survey.rows.iter().any(|row| matches!(row.state, RowState::Judged(_))) {
        // After the reports on the images that were opened.
        writeln!(out)?;
    }
    table::rows(survey, TableDetail::First, style, out)
}

/// Writes the first line, which is never wrapped: the verdict, the image, and the numbers of layers or steps, rules and
/// hosts.
fn headline(report: &Report<'_>, reports: &[Report<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let image = report.image;
    let platform = image.platform.as_ref().map(|platform| format!(" ({platform})")).unwrap_or_default();
    let lines = report.facts.get(key::JOB_LINES).value().and_then(|lines| usize::try_from(*lines).ok());
    let layers = match (report.probe, lines) {
        (Some(probe), _) => counted(probe.steps.len(), "step", "steps"),
        (None, Some(lines)) => counted(lines, "line", "lines"),
        (None, None) if !report.facts.are_of_image() => "the launch alone".to_owned(),
        (None, None) => counted(image.layers.len(), "layer", "layers"),
    };
    // A verdict says nothing about rules that were not asked.
    let off = if report.rules.is_some_and(|rules| rules.off > 0) { " (others off)" } else { "" };
    let rules = report.judgements.map(|judgements| format!(", {}{off}", counted(judgements.len(), "rule", "rules")));
    let hosts = match (report.host, reports.len()) {
        (None, _) => String::new(),
        (Some(host), 1) => format!(", for {host}"),
        (Some(_), several) => format!(", {several} hosts"),
    };
    let text = format!("{}{platform}: {layers}{}{hosts}", image.reference, rules.unwrap_or_default());
    match Verdict::worst(reports.iter().filter_map(Report::verdict)) {
        None => page.verbatim(0, ("", anstyle::Style::new()), 0, &text),
        Some(verdict) => {
            let judged: Vec<_> = reports.iter().filter_map(|report| report.judgements).collect();
            let counts = OutcomeCounts::of(across_hosts(&judged).iter().map(|shared| shared.judgement));
            let word = counts.verdict(verdict, &verdict.name().to_uppercase()) + &omissions(verdict, &judged);
            page.verbatim(0, (&word, colour(verdict)), word.len() + 2, &text)
        }
    }
}

/// What a pass does not include: ` (no RDMA between hosts)`.
fn omissions(verdict: Verdict, judged: &[&[Judgement<'_>]]) -> String {
    let fails = |outcome: &Outcome| match outcome {
        Outcome::Fail(_) => true,
        Outcome::Consequence(consequence) => matches!(consequence.problem, Problem::Failure(_)),
        _ => false,
    };
    let failed = judged.iter().copied().flatten().filter(|judgement| fails(&judgement.outcome));
    let without: BTreeSet<&str> = failed.filter_map(|judgement| judgement.rule.without.as_deref()).collect();
    if verdict != Verdict::Pass || without.is_empty() {
        return String::new();
    }
    format!(" (no {})", without.into_iter().collect::<Vec<_>>().join(", no "))
}

fn notes<'n>(notes: impl IntoIterator<Item = &'n String>, page: &mut Page<'_>) -> io::Result<()> {
    let mut notes = notes.into_iter().peekable();
    if notes.peek().is_some() {
        page.blank()?;
    }
    notes.try_for_each(|note| page.heading("note:", page::bold(AnsiColor::Cyan), note))
}

/// Writes the last line, which people read and paste; it is never wrapped.
fn counts(verdict: Verdict, judgements: &[Judgement<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let counts = OutcomeCounts::of(judgements);
    let OutcomeCounts { errors, warnings, infos, unknown, waived, consequences, .. } = counts;
    let mut parts = Vec::new();
    // The word of a pass has the others.
    if verdict != Verdict::Pass || counts.problems().is_empty() {
        parts.extend([counted(errors, "error", "errors"), counted(warnings, "warning", "warnings")]);
        // Few images have one of these.
        let consequence = if consequences == 1 { "consequence" } else { "consequences" };
        let few = [(infos, "info"), (waived, "waived"), (consequences, consequence)];
        parts.extend(few.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")));
        parts.push(format!("{unknown} unknown"));
    }
    parts.push(format!("{} passed", counts.passed));
    parts.push(format!("{} not applicable", counts.not_applicable));
    let word = counts.verdict(verdict, last_word(verdict)) + ":";
    page.blank()?;
    page.verbatim(0, (&word, colour(verdict)), word.len() + 1, &parts.join(", "))
}

const fn last_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Pass => "PASSED",
        Verdict::Fail => "FAILED",
        Verdict::Incomplete => "INCOMPLETE",
    }
}

fn colour(verdict: Verdict) -> anstyle::Style {
    page::bold(match verdict {
        Verdict::Pass => AnsiColor::Green,
        Verdict::Fail => AnsiColor::Red,
        Verdict::Incomplete => AnsiColor::Magenta,
    })
}
