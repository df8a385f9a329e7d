//! Judgements: failures, worst first, then unknown outcomes, then waived ones and, with `verbose`, the rest.

use std::io;

use anstyle::AnsiColor;

use super::page::{self, Page, label};
use super::site;
use crate::judge::rules::{Finding, Judgement, Outcome, Problem, Rule, Waived};
use crate::model::ImageSummary;
use crate::model::{Gap, Severity};
use crate::report::fix_text::{self, Part, one_line};

/// Column of the text after `at`, `why` and `fix`.
const COLUMN: usize = 7;
/// Column of the text after `why` and `help`.
const GAP_COLUMN: usize = 10;

pub(super) fn write(
    judgements: &[Judgement<'_>],
    image: &ImageSummary,
    verbose: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        for judgement in judgements {
            if let (true, Outcome::Fail(finding)) = (judgement.rule.severity == severity, &judgement.outcome) {
                failure(judgement.rule, finding, image, verbose, page)?;
            }
        }
    }
    unknowns(judgements, page)?;
    judgements.iter().try_for_each(|judgement| match &judgement.outcome {
        Outcome::Waived(waived) => accepted(judgement.rule, waived, page),
        _ => Ok(()),
    })?;
    if verbose {
        rest(
            "passed: none of these problems was found",
            judgements,
            &|outcome| matches!(outcome, Outcome::Pass),
            page,
        )?;
        let not_applicable = |outcome: &_| matches!(outcome, Outcome::NotApplicable);
        rest("not applicable: these problems cannot occur here", judgements, &not_applicable, page)?;
    }
    Ok(())
}

fn failure(rule: &Rule, finding: &Finding, image: &ImageSummary, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    page.blank()?;
    message(rule, finding, page)?;
    site::write(&finding.at, image, COLUMN, verbose, page)?;
    if let Some(note) = &finding.note {
        page.row(2, label("but"), COLUMN, note)?;
    }
    advice(rule, page)
}

/// Writes a waived problem in two lines, since it needs no action now.
fn accepted(rule: &Rule, waived: &Waived, page: &mut Page<'_>) -> io::Result<()> {
    let what = match &waived.problem {
        Problem::Failure(finding) => finding.message.clone(),
        Problem::Unknown(gaps) => gaps.first().map_or_else(String::new, ToString::to_string),
    };
    let until = waived.expires.as_ref().map(|date| format!(", until {date}")).unwrap_or_default();
    page.blank()?;
    page.heading(&format!("waived[{}]:", rule.id), page::bold(AnsiColor::Blue), &what)?;
    page.row(2, label("why"), COLUMN, &format!("{} ({}{until})", waived.reason, waived.place))
}

fn message(rule: &Rule, finding: &Finding, page: &mut Page<'_>) -> io::Result<()> {
    page.heading(&format!("{}[{}]:", rule.severity.name(), rule.id), page::severity(rule.severity), &finding.message)
}

fn advice(rule: &Rule, page: &mut Page<'_>) -> io::Result<()> {
    page.row(2, label("why"), COLUMN, &one_line(&rule.why))?;
    fix(&rule.fix, page)
}

/// Writes one rule for several hosts: its findings and gaps on each, and its fix once.
pub(super) fn on_hosts(
    rule: &Rule,
    groups: &[(&Outcome, Vec<&str>)],
    image: &ImageSummary,
    verbose: bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let failures = groups.iter().filter_map(|(outcome, hosts)| match outcome {
        Outcome::Fail(finding) => Some((finding, hosts)),
        _ => None,
    });
    let failures: Vec<_> = failures.collect();
    if !failures.is_empty() {
        page.blank()?;
        for (finding, hosts) in failures {
            message(rule, finding, page)?;
            page.row(2, label("on"), COLUMN, &hosts.join("; "))?;
            site::write(&finding.at, image, COLUMN, verbose, page)?;
        }
        advice(rule, page)?;
    }
    for (outcome, hosts) in groups {
        if let Outcome::Unknown(gaps) = outcome {
            page.blank()?;
            page.heading(&format!("unknown[{}]:", rule.id), page::bold(AnsiColor::Magenta), &rule.title)?;
            page.row(2, label("on"), GAP_COLUMN, &hosts.join("; "))?;
            reasons(gaps, page)?;
        }
    }
    Ok(())
}

/// Writes a fix: prose is wrapped, lines to copy are not.
fn fix(text: &str, page: &mut Page<'_>) -> io::Result<()> {
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

/// Writes the rules with unknown outcomes. A gap that several rules share is written once, below all of them.
fn unknowns(judgements: &[Judgement<'_>], page: &mut Page<'_>) -> io::Result<()> {
    let mut groups: Vec<(&[Gap], Vec<&Rule>)> = Vec::new();
    for judgement in judgements {
        let Outcome::Unknown(gaps) = &judgement.outcome else { continue };
        match groups.iter_mut().find(|(known, _)| known == gaps) {
            Some((_, rules)) => rules.push(judgement.rule),
            None => groups.push((gaps, vec![judgement.rule])),
        }
    }
    groups.iter().try_for_each(|(gaps, rules)| unknown(rules, gaps, page))
}

fn unknown(rules: &[&Rule], gaps: &[Gap], page: &mut Page<'_>) -> io::Result<()> {
    page.blank()?;
    for rule in rules {
        page.heading(&format!("unknown[{}]:", rule.id), page::bold(AnsiColor::Magenta), &rule.title)?;
    }
    reasons(gaps, page)
}

fn reasons(gaps: &[Gap], page: &mut Page<'_>) -> io::Result<()> {
    for gap in gaps {
        page.row(2, label("why"), GAP_COLUMN, &gap.why)?;
        if let Some(settle) = &gap.settle {
            page.row(2, label("help"), GAP_COLUMN, settle)?;
        }
    }
    Ok(())
}

/// Writes rules without a finding, by their titles, which name the problem.
fn rest(
    heading: &str,
    judgements: &[Judgement<'_>],
    wanted: &dyn Fn(&Outcome) -> bool,
    page: &mut Page<'_>,
) -> io::Result<()> {
    let rules: Vec<_> =
        judgements.iter().filter(|judgement| wanted(&judgement.outcome)).map(|judgement| judgement.rule).collect();
    let column = 4 + rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    if !rules.is_empty() {
        page.blank()?;
        page.text(0, heading)?;
    }
    rules.iter().try_for_each(|rule| page.row(2, label(&rule.id), column, &rule.title))
}
