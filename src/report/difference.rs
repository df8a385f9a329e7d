//! Renders the comparison of two images, for people and as JSON.

use std::io::{self, Write};

use anstyle::AnsiColor;
use serde_json::{Value as Json, json};

use super::human::{
    self,
    page::{self, Page},
};
use super::{Format, Style, json as form};
use crate::judge::rules::Judgement;
use crate::judge::{Change, ChangedRule, Difference, Verdict};
use crate::model::Fact;

/// Maximum lines shown for one fact without `--verbose`.
const LINES: usize = 12;

/// Writes a comparison as one JSON object, or as text for people.
pub fn write_difference(
    difference: &Difference<'_>,
    format: Format,
    style: &Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    match format {
        Format::Json => form::write_value(&json(difference), out),
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
    for changed in &changed {
        rule(changed, &mut page)?;
    }
    page.blank()?;
    let new = changed.iter().filter(|changed| changed.is_new()).count();
    let fixed = changed.iter().filter(|changed| changed.is_fixed()).count();
    let (word, color) = match difference.verdict() {
        Verdict::Pass => ("NOT WORSE:", AnsiColor::Green),
        Verdict::Fail => ("WORSE:", AnsiColor::Red),
        Verdict::Incomplete => ("INCOMPLETE:", AnsiColor::Magenta),
    };
    let text = format!("{}, {fixed} fixed", human::counted(new, "new finding", "new findings"));
    page.verbatim(0, (word, page::bold(color)), word.len() + 1, &text)
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

fn rule(changed: &ChangedRule<'_>, page: &mut Page<'_>) -> io::Result<()> {
    let (before, after) = (changed.before.outcome.name(), changed.after.outcome.name());
    let finding = changed.after.outcome.finding().or_else(|| changed.before.outcome.finding());
    let text = finding.map_or(&changed.after.rule.title, |finding| &finding.message);
    let word = if before == after { format!("{after}, changed") } else { format!("{before} → {after}") };
    let rule = changed.after.rule;
    let heading = format!("{}[{}]:", rule.severity.name(), rule.id);
    page.heading(&heading, page::severity(rule.severity), &format!("{word}: {text}"))
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
        Fact::Seen { value, .. } => json!(form::ValueJson::from(value)),
    }
}
