//! The page on several images: totals, a table, and the findings by rule and by layer.

use std::collections::BTreeMap;

use maud::{Markup, html};

use crate::fix_text::one_line;
use crate::plain_text::short;
use crate::survey::{JudgedRow, RowState, Survey, SurveyFinding, SurveyLayer, SurveyRow};
use model::counted;

use super::{findings, page};

/// Maximum bytes of the findings by rule, so that the page on 2,000 images stays below 2 MB.
const RULES: usize = 600_000;
/// Maximum different messages shown of one rule.
const MESSAGES: usize = 5;
/// Maximum characters of a message, of a name and of a version.
const MESSAGE: usize = 400;
const NAME: usize = 160;
const VERSION: usize = 24;
/// Maximum layers.
const LAYERS: usize = 200;

pub(super) fn body(survey: &Survey) -> Markup {
    let mut order: Vec<usize> = (0..survey.rows.len()).collect();
    // The worst first; those with the same result in the order of the run.
    order.sort_by_key(|index| std::cmp::Reverse(survey.rows.get(*index).map(SurveyRow::rank)));
    let mut numbers = vec![0; order.len()];
    for (number, index) in order.iter().enumerate() {
        if let Some(slot) = numbers.get_mut(*index) {
            *slot = number + 1;
        }
    }
    let totals = survey.totals();
    let counts = [
        ("error", totals.unopened, "could not be opened"),
        ("fail", totals.failed, "failed"),
        ("incomplete", totals.incomplete, "incomplete"),
        ("pass", totals.passed - totals.open, "passed"),
        ("pass", totals.open, "passed with findings or missing answers"),
    ];
    html! {
        header {
            h1 { (counted(survey.rows.len(), "image", "images")) }
            p {
                @for (word, count, text) in counts.into_iter().filter(|(_, count, _)| *count > 0) {
                    span.badge.(word) { (count) " " (text) } " "
                }
            }
            ul { @for line in survey.provenance.lines() { li { (line) } } }
        }
        main {
            section {
                h2 { "Images" }
                div.scroll tabindex="0" role="region" aria-label="Images" {
                    table.sort.wide {
                        thead {
                            tr {
                                th.n { "#" } th { "verdict" } th { "image" } th { "torch" } th { "CUDA" } th { "NCCL" }
                                th.n { "errors" } th.n { "not read" } th { "first finding" }
                            }
                        }
                        tbody {
                            @for (number, index) in order.iter().enumerate() {
                                @if let Some(row) = survey.rows.get(*index) { (image(number + 1, row, survey)) }
                            }
                        }
                    }
                }
            }
            (by_rule(survey, &numbers))
            (by_layer(&survey.layers, &numbers))
        }
    }
}

fn image(number: usize, row: &SurveyRow, survey: &Survey) -> Markup {
    let word = row.word();
    html! {
        tr {
            td.n { (number) }
            td.(word) { (word) @if let Some(open) = row.judged().and_then(JudgedRow::open) { " with " (open) } }
            td.name { (short(&row.reference, NAME)) @if let Some(platform) = &row.platform { " " span.dim { (short(platform, VERSION)) } } }
            @match &row.state {
                RowState::Unopened(why) => { td {} td {} td {} td {} td {} td { (short(why, MESSAGE)) } }
                RowState::Judged(judged) => { (judged_cells(judged, survey)) }
            }
        }
    }
}

fn judged_cells(judged: &JudgedRow, survey: &Survey) -> Markup {
    let first = judged.findings.first().and_then(|index| survey.findings.get(*index));
    let more = judged.findings.len().saturating_sub(1);
    html! {
        td { (short(&judged.torch, VERSION)) }
        td { (short(&judged.cuda, VERSION)) }
        td { (short(&judged.nccl, VERSION)) }
        td.n { (judged.counts.errors) }
        td.n { @if judged.cached > 0 { (judged.cached) " of " (judged.layers) } }
        td { @if let Some(finding) = first { code { (finding.rule.id) } @if more > 0 { " and " (more) " more" } } }
    }
}

/// The findings by rule, the worst first. Images are the numbers of the table.
fn by_rule(survey: &Survey, numbers: &[usize]) -> Markup {
    let findings = survey.worst_findings();
    let mut rules: Vec<(&SurveyFinding, Vec<&SurveyFinding>)> = Vec::new();
    let mut known: BTreeMap<(&str, bool), usize> = BTreeMap::new();
    for finding in findings {
        let index = *known.entry((&*finding.rule.id, finding.is_failure)).or_insert(rules.len());
        match rules.get_mut(index) {
            Some((_, all)) => all.push(finding),
            None => rules.push((finding, vec![finding])),
        }
    }
    let mut used = 0;
    let mut left_out = 0;
    let mut written = Vec::new();
    for (first, all) in &rules {
        let markup = rule(first, all, numbers);
        used += markup.0.len();
        if used > RULES { left_out += 1 } else { written.push(markup) }
    }
    html! {
        section {
            h2 { "By rule" }
            @if rules.is_empty() { p { "No rule found a problem." } }
            @for markup in written { (markup) }
            @if left_out > 0 { p { (counted(left_out, "more rule", "more rules")) " left out: the page would be too long." } }
        }
    }
}

fn rule(first: &SurveyFinding, all: &[&SurveyFinding], numbers: &[usize]) -> Markup {
    let word = first.word();
    let mut images: Vec<usize> = all.iter().flat_map(|finding| finding.images.iter().copied()).collect();
    images.sort_unstable();
    images.dedup();
    html! {
        details {
            summary {
                (page::badge(word)) " " code { (first.rule.id) } " " (first.rule.title) " "
                span.dim { "(" (counted(images.len(), "image", "images")) ")" }
            }
            article.(word) {
                @for finding in all.iter().take(MESSAGES) {
                    p {
                        (short(&finding.message, MESSAGE)) " "
                        @if !finding.hosts.is_empty() { "(on " (short(&finding.hosts.join("; "), MESSAGE)) ") " }
                        span.dim { "In " (ranges(&finding.images, numbers)) }
                    }
                }
                @if all.len() > MESSAGES {
                    p { (counted(all.len() - MESSAGES, "more message", "more messages")) ". All images: " (ranges(&images, numbers)) }
                }
                p.dim { "Owner: " (first.owner.name()) }
                p { (findings::prose(&one_line(&first.rule.why))) }
                @if first.is_failure { (findings::fix(&first.fix)) }
                (findings::references(&first.rule.references))
            }
        }
    }
}

/// The layers that bring failures, those with the most images first.
fn by_layer(layers: &BTreeMap<String, SurveyLayer>, numbers: &[usize]) -> Markup {
    let mut sorted: Vec<_> = layers.iter().map(|(name, layer)| (name, layer, layer.images())).collect();
    sorted.sort_by_key(|(_, _, images)| std::cmp::Reverse(images.len()));
    html! {
        section {
            h2 { "By layer" }
            @if sorted.is_empty() { p { "No finding comes from a layer." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Layers" {
                    table.wide {
                        thead { tr { th.n { "images" } th { "layer or step" } th { "brings" } th { "in" } } }
                        tbody {
                            @for (name, layer, images) in sorted.iter().take(LAYERS) {
                                tr {
                                    td.n { (images.len()) }
                                    td.name {
                                        code { (short(name, 32)) }
                                        @if let Some(step) = &layer.step { br; span.dim { (short(step, NAME)) } }
                                    }
                                    td { @for rule in layer.rules.keys() { code { (rule) } br; } }
                                    td { (ranges(images, numbers)) }
                                }
                            }
                        }
                    }
                }
            }
            @if sorted.len() > LAYERS { p { (sorted.len() - LAYERS) " more are left out." } }
        }
    }
}

/// The numbers of images, with runs as ranges: `1, 4–9`.
fn ranges(images: &[usize], numbers: &[usize]) -> String {
    let mut shown: Vec<usize> = images.iter().filter_map(|index| numbers.get(*index)).copied().collect();
    shown.sort_unstable();
    let runs = shown.chunk_by(|a, b| a + 1 == *b);
    let text = |run: &[usize]| match run {
        [] => String::new(),
        [one] => one.to_string(),
        [first, .., last] => format!("{first}–{last}"),
    };
    runs.map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_images_are_ranges() {
        let numbers: Vec<usize> = (1..=10).collect();
        assert_eq!(ranges(&[0, 2, 3, 4, 9], &numbers), "1, 3–5, 10");
        assert_eq!(ranges(&[], &numbers), "");
    }
}
