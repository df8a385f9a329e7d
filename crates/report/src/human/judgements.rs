//! Judgements: failures, worst first, then unknown outcomes by reason, then waived ones and, with `verbose`, the rest.

use std::collections::BTreeSet;
use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use super::site;
use crate::Report;
use crate::fix_text::{self, Part, one_line};
use judge::rules::{Finding, Judgement, Outcome, Problem, Rule, Waived};
use model::counted;
use model::{Gap, Owner, Severity};

/// Column of the text after `at`, `of` (the owner), `why` and `fix`.
pub(super) const COLUMN: usize = 7;
/// Column of the text after `help`.
const GAP_COLUMN: usize = 8;

/// One outcome of a rule.
pub(super) struct JudgementEntry<'a> {
    pub(super) rule: &'a Rule,
    pub(super) outcome: &'a Outcome,
    /// The party that has to settle a problem.
    pub(super) owner: Owner,
    /// Names of the hosts with this outcome; empty if all share it or no host is described.
    pub(super) hosts: Vec<&'a str>,
}

impl<'a> From<&'a Judgement<'a>> for JudgementEntry<'a> {
    fn from(judgement: &'a Judgement<'a>) -> Self {
        Self { rule: judgement.rule, outcome: &judgement.outcome, owner: judgement.owner, hosts: Vec::new() }
    }
}

impl JudgementEntry<'_> {
    const fn finding(&self) -> Option<&Finding> {
        match self.outcome {
            Outcome::Fail(finding) => Some(finding),
            _ => None,
        }
    }

    /// Writes the hosts on which this is the outcome.
    fn on(&self, column: usize, page: &mut Page<'_>) -> io::Result<()> {
        if self.hosts.is_empty() { Ok(()) } else { page.row(2, label("on"), column, &self.hosts.join("; ")) }
    }
}

/// Writes the entries. Those of one rule follow each other.
pub(super) fn write(
    entries: &[JudgementEntry<'_>],
    report: &Report<'_>,
    verbose: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let of_severity = |entry: &&JudgementEntry<'_>| entry.rule.severity == severity && entry.finding().is_some();
        let failures: Vec<_> = entries.iter().filter(of_severity).collect();
        for same in failures.chunk_by(|a, b| a.rule.id == b.rule.id) {
            failure(same, report, verbose, page)?;
            consequences(same, entries, page)?;
        }
    }
    unknowns(entries, page)?;
    entries.iter().try_for_each(|entry| match entry.outcome {
        Outcome::Waived(waived) => accepted(entry, waived, page),
        _ => Ok(()),
    })?;
    if verbose {
        let passed = |outcome: &_| matches!(outcome, Outcome::Pass);
        rest("passed: none of these problems was found", entries, &passed, page)?;
        let not_applicable = |outcome: &_| matches!(outcome, Outcome::NotApplicable);
        rest("not applicable: these problems cannot occur here", entries, &not_applicable, page)?;
    }
    Ok(())
}

/// Writes the findings of one rule, and each of their fixes once: hosts may need different ones.
fn failure(entries: &[&JudgementEntry<'_>], report: &Report<'_>, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let Some(first) = entries.first() else { return Ok(()) };
    let mut fixes: Vec<&str> = Vec::new();
    page.blank()?;
    for entry in entries {
        let Some(finding) = entry.finding() else { continue };
        if !fixes.contains(&&*finding.fix) {
            fixes.push(&finding.fix);
        }
        message(entry.rule, finding, page)?;
        entry.on(COLUMN, page)?;
        site::write(&finding.at, report, COLUMN, verbose, page)?;
        if let Some(note) = &finding.note {
            page.row(2, label("but"), COLUMN, note)?;
        }
    }
    page.row(2, label("of"), COLUMN, first.owner.name())?;
    page.row(2, label("why"), COLUMN, &one_line(&first.rule.why))?;
    fixes.into_iter().try_for_each(|text| fix(text, page))
}

/// Writes what follows from the findings of one rule: other findings by their messages, missing answers by their number.
fn consequences(causes: &[&JudgementEntry<'_>], entries: &[JudgementEntry<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let Some(cause) = causes.first() else { return Ok(()) };
    let mut messages = Vec::new();
    let mut unanswered = BTreeSet::new();
    for entry in entries {
        let Outcome::Consequence(consequence) = entry.outcome else { continue };
        match &consequence.problem {
            _ if consequence.cause != cause.rule.id => {}
            Problem::Failure(finding) => messages.push(format!("{} ({})", finding.message, entry.rule.id)),
            Problem::Unknown(_) => {
                unanswered.insert(&entry.rule.id);
            }
        }
    }
    if !unanswered.is_empty() {
        let rules = counted(unanswered.len(), "rule has", "rules have");
        messages.push(format!("{rules} no answer; --format json lists them"));
    }
    for (index, message) in messages.iter().enumerate() {
        page.row(2, label(if index == 0 { "so" } else { "" }), COLUMN, message)?;
    }
    Ok(())
}

/// Writes a waived problem in a few lines, since it needs no action now.
fn accepted(entry: &JudgementEntry<'_>, waived: &Waived, page: &mut Page<'_>) -> io::Result<()> {
    let what = match &waived.problem {
        Problem::Failure(finding) => finding.message.clone(),
        Problem::Unknown(gaps) => gaps.first().map_or_else(String::new, ToString::to_string),
    };
    let until = waived.expires.as_ref().map(|date| format!(", until {date}")).unwrap_or_default();
    page.blank()?;
    page.heading(&format!("waived[{}]:", entry.rule.id), page::bold(AnsiColor::Blue), &what)?;
    entry.on(COLUMN, page)?;
    page.row(2, label("why"), COLUMN, &format!("{} ({}{until})", waived.reason, waived.place))
}

fn message(rule: &Rule, finding: &Finding, page: &mut Page<'_>) -> io::Result<()> {
    page.heading(&format!("{}[{}]:", rule.severity.name(), rule.id), page::severity(rule.severity), &finding.message)
}

/// Writes a fix: prose is wrapped, lines to copy are not.
pub(super) fn fix(text: &str, page: &mut Page<'_>) -> io::Result<()> {
    for (index, part) in fix_text::parts(text).iter().enumerate() {
        let name = label(if index == 0 { "fix" } else { "" });
        match part {
            Part::Prose(paragraph) => page.row(2, name, COLUMN, paragraph)?,
            Part::Code(line) => page.verbatim(2, name, COLUMN, line)?,
            Part::Blank => page.blank()?,
        }
    }
    Ok(())
}

/// Writes the unknown outcomes by their reasons: one missing answer often concerns many rules.
fn unknowns(entries: &[JudgementEntry<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let mut groups: Vec<(&[Gap], Vec<&JudgementEntry<'_>>)> = Vec::new();
    for entry in entries {
        let Outcome::Unknown(gaps) = entry.outcome else { continue };
        match groups
            .iter_mut()
            .find(|(known, entries)| *known == gaps && entries.iter().all(|e| e.hosts == entry.hosts))
        {
            Some((_, entries)) => entries.push(entry),
            None => groups.push((gaps, vec![entry])),
        }
    }
    groups.iter().try_for_each(|(gaps, entries)| unknown(gaps, entries, page))
}

/// Writes the reasons, and the rules that have no answer for these reasons.
fn unknown(gaps: &[Gap], entries: &[&JudgementEntry<'_>], page: &mut Page<'_>) -> io::Result<()> {
    page.blank()?;
    for gap in gaps {
        page.heading("unknown:", page::bold(AnsiColor::Magenta), &gap.why)?;
        if let Some(settle) = &gap.settle {
            page.row(2, label("help"), GAP_COLUMN, settle)?;
        }
    }
    entries.first().map_or(Ok(()), |entry| entry.on(GAP_COLUMN, page))?;
    page.text(2, "not ruled out:")?;
    titles(&entries.iter().map(|entry| entry.rule).collect::<Vec<_>>(), page)
}

/// Writes rules without a finding.
fn rest(
    heading: &str,
    entries: &[JudgementEntry<'_>],
    wanted: &dyn Fn(&Outcome) -> bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let everywhere = |entry: &&JudgementEntry<'_>| entry.hosts.is_empty() && wanted(entry.outcome);
    let rules: Vec<_> = entries.iter().filter(everywhere).map(|entry| entry.rule).collect();
    if rules.is_empty() {
        return Ok(());
    }
    page.blank()?;
    page.text(0, heading)?;
    titles(&rules, page)
}

/// Lists rules with their titles, which name the problem.
fn titles(rules: &[&Rule], page: &mut Page<'_>) -> io::Result<()> {
    let column = 4 + rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    rules.iter().try_for_each(|rule| page.row(2, label(&rule.id), column, &rule.title))
}
