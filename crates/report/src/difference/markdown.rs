//! The comparison of two images in Markdown, for a comment on a pull request.

use std::cmp::Reverse;
use std::io::{self, Write};

use super::{counts, message};
use crate::fix_text;
use crate::markdown::{MarkdownText, code, folded, html, severity_mark};
use judge::{Change, ChangeKind, ChangedFact, ChangedRule, Difference, Verdict};
use model::counted;

/// Maximum lines shown for one fact.
const LINES: usize = 20;

pub(super) fn write(difference: &Difference<'_>, out: &mut dyn Write) -> io::Result<()> {
    let (mark, word) = match difference.verdict() {
        Verdict::Pass => ("✅", "Not worse"),
        Verdict::Fail => ("❌", "Worse"),
        Verdict::Incomplete => ("❔", "Incomplete"),
    };
    let changed = difference.rules();
    let before = code(difference.before.reference);
    let after = code(difference.after.reference);
    let mut text = MarkdownText::default();
    text.section(&format!(
        "### {mark} {word}: {after} compared with {before}\n\n{}\n\n",
        counts(&changed, difference.fail_on)
    ));
    for kind in [ChangeKind::New, ChangeKind::Changed, ChangeKind::Fixed] {
        let mut of_kind: Vec<_> = changed.iter().filter(|changed| changed.kind() == kind).collect();
        of_kind.sort_by_key(|changed| Reverse(changed.after.rule.severity));
        for changed in of_kind {
            text.section(&rule(changed));
        }
    }
    let facts: Vec<_> = difference.facts().map(|fact| fact_lines(&fact)).collect();
    if !facts.is_empty() {
        let differ = counted(facts.len(), "fact differs", "facts differ");
        text.section(&folded(&differ, &facts.join("\n")));
    }
    out.write_all(text.finish().as_bytes())
}

/// What happened to a rule, collapsed: the finding and, if it is new, its reason and fix.
fn rule(changed: &ChangedRule<'_>) -> String {
    let rule = changed.after.rule;
    let before = changed.before.outcome.name();
    let after = changed.after.outcome.name();
    let (mark, word) = match changed.kind() {
        ChangeKind::New => (severity_mark(rule.severity), format!("new {}", rule.severity.name())),
        ChangeKind::Fixed => ("✅", "fixed".to_owned()),
        ChangeKind::Changed => ("❔", format!("{before} before, {after} now")),
    };
    let summary = format!("{mark} {word}: <code>{}</code> {}", html(&rule.id), html(&rule.title));
    let found = code(message(changed));
    let body = match changed.after.outcome.finding() {
        Some(finding) if changed.kind() == ChangeKind::New => {
            let why = fix_text::one_line(&rule.why);
            let fix = fix_text::markdown(&finding.fix);
            format!("{found}\n\n**Why:** {why}\n\n**Fix:**\n\n{fix}")
        }
        _ => found,
    };
    folded(&summary, &body)
}

/// A fact and what disappeared and appeared in it, as a list.
fn fact_lines(fact: &ChangedFact<'_>) -> String {
    let line = |change: &Change| match change {
        Change::Gone(text) => format!("  - before: {}", code(text)),
        Change::New(text) => format!("  - now: {}", code(text)),
    };
    let more = fact.changes.len().checked_sub(LINES).filter(|more| *more > 0);
    let lines = fact.changes.iter().take(LINES).map(line).chain(more.map(|more| format!("  - and {more} more")));
    std::iter::once(format!("- {}", code(fact.name))).chain(lines).collect::<Vec<_>>().join("\n")
}
