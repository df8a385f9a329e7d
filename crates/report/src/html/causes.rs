//! What images fail by: the rules, the layers that bring it, and the teams that own the images. Each links to the images
//! and to the rules.

use std::cmp::Reverse;

use maud::{Markup, html};

use crate::plain_text::short;
use crate::survey::{SurveyLayer, SurveyTeam};
use model::{counted, size};

use super::many::{MESSAGE, NAME, Numbers, RuleFindings};
use super::{findings, page};

/// Maximum bytes of the findings by rule, so that the page on 2,000 images stays below 2 MB.
const RULES: usize = 600_000;
/// Maximum different messages shown of one rule.
const MESSAGES: usize = 5;
/// Maximum layers.
const LAYERS: usize = 200;

/// The findings by rule, the worst first.
pub(super) fn by_rule(numbers: &Numbers<'_>) -> Markup {
    let mut room = RULES;
    html! {
        section {
            h2 { "By rule" }
            @if numbers.rules.is_empty() { p { "No rule found a problem." } }
            @for (index, found) in numbers.rules.iter().enumerate() { (rule(index + 1, found, numbers, &mut room)) }
        }
    }
}

/// A rule, with its findings while there is room for them.
fn rule(number: usize, found: &RuleFindings<'_>, numbers: &Numbers<'_>, room: &mut usize) -> Markup {
    let word = found.first.word();
    let rule = &found.first.rule;
    let content = content(found, numbers);
    let fits = room.checked_sub(content.0.len());
    *room = fits.unwrap_or_default();
    html! {
        details id={ "r" (number) } {
            summary {
                span.cause {
                    (page::badge(word))
                    span { code { (rule.id) } " " (rule.title) }
                    span.n { (counted(found.images.len(), "image", "images")) }
                    (bar(word, found.images.len(), numbers.survey.rows.len()))
                }
            }
            @if fits.is_some() { (content) } @else { p { "Its findings are left out: the page would be too long." } }
        }
    }
}

fn content(found: &RuleFindings<'_>, numbers: &Numbers<'_>) -> Markup {
    let RuleFindings { first, all, images } = found;
    html! {
        article.(first.word()) {
            @for finding in all.iter().take(MESSAGES) {
                p {
                    (short(&finding.message, MESSAGE)) " "
                    @if !finding.hosts.is_empty() { "(on " (short(&finding.hosts.join("; "), MESSAGE)) ") " }
                    span.dim { "In " (numbers.images(&finding.images)) }
                }
            }
            @if all.len() > MESSAGES {
                p { (counted(all.len() - MESSAGES, "more message", "more messages")) ". All images: " (numbers.images(images)) }
            }
            // Who has to settle a missing answer is unknown for a rule that the program does not have.
            @let owner = (first.is_failure || !first.rule.title.is_empty()).then_some(first.owner);
            @let fix = if first.is_failure { &*first.fix } else { "" };
            dl.facts { (findings::advice(owner, &first.rule.why, fix, &first.rule.references)) }
        }
    }
}

/// The layers that bring failures, those with the most images first.
pub(super) fn by_layer(numbers: &Numbers<'_>) -> Markup {
    let layers = &numbers.survey.layers;
    let mut sorted: Vec<_> = layers.iter().map(|(name, layer)| (name, layer, layer.images())).collect();
    sorted.sort_by_key(|(_, _, images)| Reverse(images.len()));
    html! {
        section {
            h2 { "By layer" }
            @if sorted.is_empty() { p { "No finding comes from a layer." } }
            @else {
                div.scroll tabindex="0" role="region" aria-label="Layers" {
                    table.wide {
                        thead { tr { th.n { "images" } th.track.spare {} th { "layer or step" } th { "brings" } th { "in" } } }
                        tbody {
                            @for (name, layer, images) in sorted.iter().take(LAYERS) {
                                tr {
                                    td.n { (images.len()) }
                                    td.track.spare { (bar("fail", images.len(), numbers.survey.rows.len())) }
                                    td.name { (layer_name(name, layer)) }
                                    td.name { @for rule in layer.rules.keys() { (numbers.rule(rule, true)) br; } }
                                    td { (numbers.images(images)) }
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

fn layer_name(name: &str, layer: &SurveyLayer) -> Markup {
    html! {
        code { (short(name, 32)) }
        @if let Some(bytes) = layer.size { " " (size(bytes)) }
        @if let Some(owner) = &layer.owner { " of " (short(owner, NAME)) }
        @if let Some(step) = &layer.step { br; span.dim { (short(step, NAME)) } }
    }
}

/// The teams, those with the most failing images first; nothing without a map of teams.
pub(super) fn by_team(numbers: &Numbers<'_>) -> Markup {
    let mut teams: Vec<_> = numbers.survey.teams().into_iter().collect();
    if teams.iter().all(|(team, _)| team.is_none()) {
        return html! {};
    }
    teams.sort_by_key(|(_, team)| Reverse(team.failed));
    let most = teams.iter().map(|(_, team)| team.images.len()).max().unwrap_or_default();
    html! {
        section {
            h2 { "By team" }
            div.scroll tabindex="0" role="region" aria-label="Teams" {
                table.wide {
                    thead { tr { th { "team" } th.n { "failed" } th.n { "of" } th {} th { "most frequent" } th { "images" } } }
                    tbody {
                        @for (name, team) in &teams {
                            tr {
                                td.name { (name.as_deref().map_or("(no team)".to_owned(), |name| short(name, NAME))) }
                                td.n { (team.failed) }
                                td.n { (team.images.len()) }
                                td.track { (bar("fail", team.failed, most)) }
                                td.name { (most_frequent(team, numbers)) }
                                td { (numbers.images(&team.images)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn most_frequent(team: &SurveyTeam<'_>, numbers: &Numbers<'_>) -> Markup {
    html! {
        @if let Some((rule, images)) = team.rules.iter().min_by_key(|(rule, images)| (Reverse(**images), **rule)) {
            (numbers.rule(rule, true)) " (" (images) ")"
        }
    }
}

/// A bar as long as a share of all.
fn bar(word: &'static str, count: usize, all: usize) -> Markup {
    let percent = count * 100 / all.max(1);
    html! { span.bar.(word) style={ "width:" (percent) "%" } {} }
}
