//! Renders the comparison of two images.

mod github;
mod markdown;

use std::cmp::Reverse;
use std::io::{self, Write};

use anstyle::AnsiColor;
use serde_json::{Value as Json, json};

use super::human::page::{self, Page};
use super::{Format, Style, json as form};
use judge::rules::Judgement;
use judge::{Change, ChangeKind, ChangedRule, Difference, Verdict};
use model::{Fact, FailOn, counted};

/// Maximum lines shown for one fact without `--verbose`.
const LINES: usize = 12;
/// Column of the text after `new`, `changed` and `fixed`.
const COLUMN: usize = 9;

/// Writes a comparison in one of [`Format::OF_DIFFERENCE`].
pub fn write_difference(
    difference: &Difference<'_>,
    format: Format,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Json => form::write_value(&json(difference), out),
        Format::Markdown => markdown::write(difference, out),
        Format::Github => github::write(difference, out),
        _ => human(difference, style, out),
    }
}

fn human(difference: &Difference<'_>, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::new(out, style);
    page.verbatim(0, ("-", AnsiColor::Red.on_default()), 2, difference.before.reference)?;
    page.verbatim(0, ("+", AnsiColor::Green.on_default()), 2, difference.after.reference)?;
    facts(difference, style, &mut page)?;
    let changed = difference.rules();
    if !changed.is_empty() {
        page.blank()?;
    }
    for kind in [ChangeKind::New, ChangeKind::Changed, ChangeKind::Fixed] {
        let mut of_kind: Vec<_> = changed.iter().filter(|changed| changed.kind() == kind).collect();
        of_kind.sort_by_key(|changed| Reverse(changed.after.rule.severity));
        of_kind.iter().try_for_each(|changed| rule(changed, &mut page))?;
    }
    page.blank()?;
    let (word, color) = match difference.verdict() {
        Verdict::Pass => ("NOT WORSE:", AnsiColor::Green),
        Verdict::Fail => ("WORSE:", AnsiColor::Red),
        Verdict::Incomplete => ("INCOMPLETE:", AnsiColor::Magenta),
    };
    page.verbatim(0, (word, page::bold(color)), word.len() + 1, &counts(&changed, difference.fail_on))
}

fn facts(difference: &Difference<'_>, style: &Style, page: &mut Page<'_>) -> io::Result<()> {
    let mut area = "";
    for changed in difference.facts() {
        let own = changed.name.split('.').next().unwrap_or_default();
        if own != area {
            area = own;
            page.blank()?;
        }
        page.text(0, changed.name)?;
        let lines = &changed.changes;
        let shown = if style.verbose { lines.len() } else { lines.len().min(LINES) };
        for line in lines.iter().take(shown) {
            let (sign, color, text) = match line {
                Change::Gone(text) => ("-", AnsiColor::Red, text),
                Change::New(text) => ("+", AnsiColor::Green, text),
            };
            page.row(2, (sign, color.on_default()), 4, text)?;
        }
        if shown < lines.len() {
            page.text(4, &format!("… and {} more (--verbose shows all)", lines.len() - shown))?;
        }
    }
    Ok(())
}

/// Numbers of new and of fixed findings, and of the new ones that do not make the later image worse.
fn counts(changed: &[ChangedRule<'_>], fail_on: FailOn) -> String {
    let of_kind = |kind| changed.iter().filter(move |changed| changed.kind() == kind);
    let new = counted(of_kind(ChangeKind::New).count(), "new finding", "new findings");
    let low = of_kind(ChangeKind::New).filter(|changed| !fail_on.includes(changed.after.rule.severity)).count();
    let low = if low > 0 { format!(" ({low} not counted with --fail-on {})", fail_on.name()) } else { String::new() };
    format!("{new}{low}, {} fixed", of_kind(ChangeKind::Fixed).count())
}

/// The finding of the later image, that of the earlier one, or the title of the rule.
fn message<'a>(changed: &'a ChangedRule<'_>) -> &'a str {
    let finding = changed.after.outcome.finding().or_else(|| changed.before.outcome.finding());
    finding.map_or(&changed.after.rule.title, |finding| &finding.message)
}

/// Writes what happened to a rule, and its finding or, without one, its title.
fn rule(changed: &ChangedRule<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let (word, color) = match changed.kind() {
        ChangeKind::New => ("new", AnsiColor::Red),
        ChangeKind::Fixed => ("fixed", AnsiColor::Green),
        ChangeKind::Changed => ("changed", AnsiColor::Yellow),
    };
    let rule = changed.after.rule;
    let before = changed.before.outcome.name();
    let after = changed.after.outcome.name();
    // The words say how a new and a fixed rule changed.
    let states = if changed.kind() == ChangeKind::Changed && before != after {
        format!("{before} → {after}: ")
    } else {
        String::new()
    };
    let text = format!("{} ({}): {states}{}", rule.id, rule.severity.name(), message(changed));
    page.row(0, (word, page::bold(color)), COLUMN, &text)
}

fn json(difference: &Difference<'_>) -> Json {
    let facts = difference
        .facts()
        .map(|fact| json!({"fact": fact.name, "before": plain(fact.before), "after": plain(fact.after)}));
    let changed = difference.rules();
    let rules = changed.iter().map(|changed| {
        let message = |judgement: &Judgement<'_>| judgement.outcome.finding().map(|finding| finding.message.clone());
        json!({
            "rule": changed.after.rule.id, "severity": changed.after.rule.severity,
            "before": changed.before.outcome.name(), "after": changed.after.outcome.name(),
            "message_before": message(changed.before), "message_after": message(changed.after),
        })
    });
    let verdict = match difference.verdict() {
        Verdict::Pass => "not-worse",
        Verdict::Fail => "worse",
        Verdict::Incomplete => "incomplete",
    };
    json!({
        "schema": "ncclcheck-diff/1", "before": difference.before.reference, "after": difference.after.reference,
        "verdict": verdict,
        "facts": facts.collect::<Vec<_>>(), "rules": rules.collect::<Vec<_>>(),
    })
}

fn plain(fact: &Fact) -> Json {
    match fact {
        Fact::Absent => Json::Null,
        Fact::Unknown(gap) => json!({"unknown": gap.to_string()}),
        Fact::Seen { value, .. } => json!(value),
    }
}
