//! The page on several images: totals, the causes, and a table of the images.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::plain_text::short;
use crate::survey::{JudgedRow, RowState, Survey, SurveyFinding, SurveyRow, Totals};
use model::counted;

use super::causes;

/// Maximum characters of a message, of a name and of a version.
pub(super) const MESSAGE: usize = 400;
pub(super) const NAME: usize = 160;
const VERSION: usize = 24;
/// Maximum images in the table, rules of each, and runs of images in a list.
const IMAGES: usize = 5_000;
const RULES: usize = 3;
const RUNS: usize = 40;

/// The numbers by which the page names images and rules. They are also the targets of its links.
pub(super) struct Numbers<'s> {
    pub(super) survey: &'s Survey,
    /// Indexes of the rows in the order of the table: the worst first, and those with the same result in the order of
    /// the run.
    order: Vec<usize>,
    /// Number of each row.
    images: Vec<usize>,
    /// The worst first, and of one severity those in the most images first.
    pub(super) rules: Vec<RuleFindings<'s>>,
    /// Number of each rule, for failures and for missing answers.
    of_rules: BTreeMap<(&'s str, bool), usize>,
}

/// The failures of a rule, or its missing answers.
pub(super) struct RuleFindings<'s> {
    pub(super) first: &'s SurveyFinding,
    /// All of them, those in the most images first.
    pub(super) all: Vec<&'s SurveyFinding>,
    /// Indexes of the rows that have one of them, ascending.
    pub(super) images: BTreeSet<usize>,
}

impl<'s> RuleFindings<'s> {
    fn key(&self) -> (&'s str, bool) {
        (&self.first.rule.id, self.first.is_failure)
    }
}

/// The findings by rule and kind.
fn by_rule(survey: &Survey) -> Vec<RuleFindings<'_>> {
    let mut rules: BTreeMap<(&str, bool), RuleFindings<'_>> = BTreeMap::new();
    for finding in survey.worst_findings() {
        let new = || RuleFindings { first: finding, all: Vec::new(), images: BTreeSet::new() };
        let rule = rules.entry((&finding.rule.id, finding.is_failure)).or_insert_with(new);
        rule.all.push(finding);
        rule.images.extend(&finding.images);
    }
    let mut rules: Vec<_> = rules.into_values().collect();
    rules.sort_by_key(|rule| Reverse((rule.first.is_failure, rule.first.rule.severity, rule.images.len())));
    rules
}

impl<'s> Numbers<'s> {
    fn of(survey: &'s Survey) -> Self {
        let mut order: Vec<usize> = (0..survey.rows.len()).collect();
        order.sort_by_key(|index| Reverse(survey.rows.get(*index).map(SurveyRow::rank)));
        let mut images = vec![0; order.len()];
        for (number, index) in order.iter().enumerate() {
            if let Some(slot) = images.get_mut(*index) {
                *slot = number + 1;
            }
        }
        let rules = by_rule(survey);
        let number = |(index, rule): (usize, &RuleFindings<'s>)| (rule.key(), index + 1);
        let of_rules = rules.iter().enumerate().map(number).collect();
        Self { survey, order, images, rules, of_rules }
    }

    /// Links to images, with runs as ranges: `1, 4–9`. Of many runs the first are shown.
    pub(super) fn images<'r>(&self, rows: impl IntoIterator<Item = &'r usize>) -> Markup {
        let mut shown: Vec<usize> = rows.into_iter().filter_map(|row| self.images.get(*row)).copied().collect();
        shown.sort_unstable();
        let link = |number: usize| {
            html! { @if number <= IMAGES { a href={ "#i" (number) } { (number) } } @else { (number) } }
        };
        let runs: Vec<_> = shown.chunk_by(|a, b| a + 1 == *b).collect();
        let more: usize = runs.iter().skip(RUNS).map(|run| run.len()).sum();
        html! {
            @for (index, run) in runs.iter().take(RUNS).enumerate() {
                @if index > 0 { ", " }
                @if let Some(first) = run.first() { (link(*first)) }
                @if let [_, .., last] = run { "–" (link(*last)) }
            }
            @if more > 0 { " and " (more) " more" }
        }
    }

    /// A link to a rule.
    pub(super) fn rule(&self, id: &str, is_failure: bool) -> Markup {
        html! {
            @match self.of_rules.get(&(id, is_failure)) {
                Some(number) => a href={ "#r" (number) } { code { (id) } },
                None => code { (id) },
            }
        }
    }
}

pub(super) fn body(survey: &Survey) -> Markup {
    let numbers = Numbers::of(survey);
    html! {
        header {
            h1 { (counted(survey.rows.len(), "image", "images")) }
            (totals(survey.totals()))
            ul { @for line in survey.provenance.lines() { li { (line) } } }
        }
        main {
            (causes::by_rule(&numbers))
            (causes::by_layer(&numbers))
            (causes::by_team(&numbers))
            (images(&numbers))
        }
    }
}

/// The numbers of images by result, above a bar with their shares.
fn totals(totals: Totals) -> Markup {
    let counts = [
        ("error", totals.unopened, "could not be opened"),
        ("fail", totals.failed, "failed"),
        ("incomplete", totals.incomplete, "incomplete"),
        ("warning", totals.open, "passed with findings or missing answers"),
        ("pass", totals.passed - totals.open, "passed"),
    ];
    let counts = || counts.into_iter().filter(|(_, count, _)| *count > 0);
    html! {
        p { @for (word, count, text) in counts() { span.badge.(word) { (count) " " (text) } " " } }
        div.share aria-hidden="true" {
            @for (word, count, _) in counts() { span.(word) style={ "flex-grow:" (count) } {} }
        }
    }
}

fn images(numbers: &Numbers<'_>) -> Markup {
    html! {
        section {
            h2 { "Images" }
            div.scroll tabindex="0" role="region" aria-label="Images" {
                table.sort.wide {
                    thead {
                        tr {
                            th.n { "#" } th { "verdict" } th { "image" } th.n { "errors" } th { "findings" }
                            th { "torch" } th { "CUDA" } th { "NCCL" }
                        }
                    }
                    tbody {
                        @for (number, index) in numbers.order.iter().take(IMAGES).enumerate() {
                            @if let Some(row) = numbers.survey.rows.get(*index) { (image(number + 1, row, numbers)) }
                        }
                    }
                }
            }
            @if numbers.order.len() > IMAGES {
                p { (numbers.order.len() - IMAGES) " more images are left out. The format csv has them all." }
            }
        }
    }
}

fn image(number: usize, row: &SurveyRow, numbers: &Numbers<'_>) -> Markup {
    let word = row.word();
    html! {
        tr id={ "i" (number) } {
            td.n { (number) }
            td.(word) { (word) @if let Some(open) = row.judged().and_then(JudgedRow::open) { " with " (open) } }
            td.name { (short(&row.reference, NAME)) @if let Some(platform) = &row.platform { " " span.dim { (short(platform, VERSION)) } } }
            @match &row.state {
                RowState::Unopened(why) => { td {} td { (short(why, MESSAGE)) } td {} td {} td {} }
                RowState::Judged(judged) => { (judged_cells(judged, numbers)) }
            }
        }
    }
}

fn judged_cells(judged: &JudgedRow, numbers: &Numbers<'_>) -> Markup {
    let findings: Vec<_> = judged.findings.iter().filter_map(|index| numbers.survey.findings.get(*index)).collect();
    html! {
        td.n { (judged.counts.errors) }
        td.name {
            @for (index, finding) in findings.iter().take(RULES).enumerate() {
                @if index > 0 { ", " }
                (numbers.rule(&finding.rule.id, finding.is_failure))
            }
            @if findings.len() > RULES { " and " (findings.len() - RULES) " more" }
        }
        td { (short(&judged.torch, VERSION)) }
        td { (short(&judged.cuda, VERSION)) }
        td { (short(&judged.nccl, VERSION)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_links_with_runs_as_ranges() {
        let survey = Survey::default();
        let numbers = Numbers { images: (1..=99).collect(), ..Numbers::of(&survey) };
        let plain = |rows: &[usize]| numbers.images(rows).0.replace("</a>", "").replace("<a href=\"#i", "[");
        assert_eq!(plain(&[0, 2, 3, 4, 9]), "[1\">1, [3\">3–[5\">5, [10\">10");
        assert_eq!(plain(&[]), "");
        let apart: Vec<usize> = (0..45).map(|index| 2 * index).collect();
        assert!(plain(&apart).ends_with("[79\">79 and 5 more"), "{}", plain(&apart));
    }
}
