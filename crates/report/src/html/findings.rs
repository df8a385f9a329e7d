//! The findings of one image, the worst first, and the rules that found nothing.

use maud::{Markup, html};

use crate::collected::Collected;
use crate::entry::{EntryState, RuleEntry};
use crate::fix_text::{self, FixBlock, one_line};
use model::counted;

use super::page::badge;

/// All entries of an image.
pub(super) fn all(image: &Collected) -> Markup {
    let failed = image.of_state(|state| *state == EntryState::Failed);
    let unknown = image.of_state(|state| *state == EntryState::Unknown);
    let consequences = image.of_state(|state| matches!(state, EntryState::Consequence { .. }));
    let waived = image.of_state(|state| matches!(state, EntryState::Waived { .. }));
    let passed = image.of_state(|state| *state == EntryState::Passed);
    let not_applicable = image.of_state(|state| *state == EntryState::NotApplicable);
    html! {
        section {
            h2 { "Findings" }
            @if failed.is_empty() && unknown.is_empty() { p { "No rule found a problem." } }
            @for entry in failed { (article(entry, entry.rule.severity.name())) }
            @for entry in unknown { (article(entry, "unknown")) }
        }
        (folded("Follow from another finding", &consequences))
        (folded("Waived", &waived))
        (quiet("Passed", &passed))
        (quiet("Not applicable", &not_applicable))
    }
}

fn folded(title: &str, entries: &[&RuleEntry]) -> Markup {
    html! {
        @if !entries.is_empty() {
            section {
                h2 { (title) }
                @for entry in entries {
                    details {
                        summary { code { (entry.rule.id) } " " (entry.rule.title) }
                        (article(entry, word(entry)))
                    }
                }
            }
        }
    }
}

fn word(entry: &RuleEntry) -> &'static str {
    if matches!(entry.state, EntryState::Waived { .. }) { "waived" } else { "consequence" }
}

/// The rules without a problem, by their ids.
fn quiet(title: &str, entries: &[&RuleEntry]) -> Markup {
    html! {
        @if !entries.is_empty() {
            details {
                summary { (title) ": " (counted(entries.len(), "rule", "rules")) }
                ul { @for entry in entries { li { code { (entry.rule.id) } " " span.dim { (entry.rule.title) } } } }
            }
        }
    }
}

fn article(entry: &RuleEntry, word: &'static str) -> Markup {
    html! {
        article.(word) {
            h3 { (badge(word)) " " code { (entry.rule.id) } " " (entry.rule.title) }
            p { (entry.message) }
            @if let Some(note) = &entry.note { p { "Note: " (note) } }
            @match &entry.state {
                EntryState::Waived { reason, terms, .. } => { p { "Waived: " (reason) " (" (terms) ")" } }
                EntryState::Consequence { cause } => { p { "Follows from " code { (cause) } } }
                _ => {}
            }
            @if !entry.hosts.is_empty() { p { "On: " (entry.hosts.join("; ")) } }
            @if !entry.sites.is_empty() { ul { @for site in &entry.sites { li { code { (site) } } } } }
            p.dim { "Owner: " (entry.owner.name()) }
            p { (prose(&one_line(&entry.rule.why))) }
            (fix(&entry.fix))
            (references(&entry.rule.references))
        }
    }
}

/// A text of a rule: what is between backticks is code.
pub(super) fn prose(text: &str) -> Markup {
    let parts = text.split('`').enumerate();
    html! { @for (index, part) in parts { @if index % 2 == 1 { code { (part) } } @else { (part) } } }
}

/// A fix, with what to copy in boxes.
pub(super) fn fix(text: &str) -> Markup {
    html! {
        @for block in fix_text::blocks(text) {
            @match block {
                FixBlock::Prose(text) => { p { (prose(&text)) } }
                FixBlock::Code(text) => { pre.copy tabindex="0" { (text) } }
            }
        }
    }
}

/// Links to the sources. Other texts are not links.
pub(super) fn references(references: &[String]) -> Markup {
    let is_web = |address: &str| address.starts_with("https://") || address.starts_with("http://");
    html! {
        @if !references.is_empty() {
            ul.dim {
                @for address in references {
                    li { @if is_web(address) { a href=(address) rel="noreferrer" { (address) } } @else { (address) } }
                }
            }
        }
    }
}
