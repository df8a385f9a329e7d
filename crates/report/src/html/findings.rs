//! The findings of one image, the worst first, and the rules that found nothing.

use maud::{Markup, html};

use crate::collected::Collected;
use crate::entry::{EntryState, RuleEntry};
use crate::fix_text::{self, FixBlock, one_line};
use model::{Owner, counted};

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
            dl.facts {
                @if !entry.hosts.is_empty() { dt { "on" } dd { (entry.hosts.join("; ")) } }
                @if !entry.sites.is_empty() { dt { "at" } dd { @for site in &entry.sites { div { code { (site) } } } } }
                (advice(Some(entry.owner), &entry.rule.why, &entry.fix, &entry.rule.references))
            }
        }
    }
}

/// The rows that a rule adds to what it found: whose it is, why it matters, what to do, and the sources.
pub(super) fn advice(owner: Option<Owner>, why: &str, fix: &str, sources: &[String]) -> Markup {
    html! {
        @if let Some(owner) = owner { dt { "owner" } dd { (owner.name()) } }
        @if !why.is_empty() { dt { "why" } dd { (prose(&one_line(why))) } }
        @if !fix.is_empty() { dt { "fix" } dd { (self::fix(fix)) } }
        @if !sources.is_empty() { dt { "sources" } dd { (references(sources)) } }
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
fn references(references: &[String]) -> Markup {
    let is_web = |address: &str| address.starts_with("https://") || address.starts_with("http://");
    html! {
        @if !references.is_empty() {
            @for address in references {
                div { @if is_web(address) { a href=(address) rel="noreferrer" { (address) } } @else { (address) } }
            }
        }
    }
}
