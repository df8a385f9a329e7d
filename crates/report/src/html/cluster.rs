//! The page on the nodes of a job: what is slow or odd, a heat map of the tests between nodes, and all else that was found.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::findings::{advice, fix, prose};
use super::page::badge;
use crate::cluster::{ClusterReport, NodeGroup};
use crate::fix_text::one_line;
use crate::human::cluster::headline;
use crate::network::{NetworkReport, NetworkTest, rate};
use model::{counted, size};

/// Most nodes of the heat map. A larger job has the nodes of slow tests first.
const MOST: usize = 64;

pub(super) fn body(report: &ClusterReport) -> Markup {
    html! {
        header { h1 { (badge(report.outcome().name())) " " (headline(report)) } }
        main {
            (odd(report))
            @if let Some(network) = &report.network { (between(network, report)) }
            (differences(report))
            (findings(report))
            (unknown(report))
            (nodes(report))
        }
    }
}

fn odd(report: &ClusterReport) -> Markup {
    html! {
        @if !report.odd.is_empty() {
            section {
                h2 { "Odd nodes and slow parts" }
                @for odd in &report.odd {
                    article.(odd.severity.name()) {
                        h3 { (odd.name) }
                        ul { @for reason in &odd.reasons { li { (reason) } } }
                    }
                }
            }
        }
    }
}

fn between(network: &NetworkReport, report: &ClusterReport) -> Markup {
    html! {
        section {
            h2 { "Between nodes" }
            @for part in &network.parts {
                article.(if part.state == "bad" { "error" } else if part.state == "common" { "warning" } else { "unknown" }) {
                    h3 { (part.title()) ": " (part.text) }
                    @if let Some(cause) = &part.cause {
                        p { "Cause: " (cause.text) }
                        ul { @for text in network.writes_of(cause) { li { (text) } } }
                    }
                    @if !part.evidence.is_empty() {
                        details {
                            summary { (counted(part.evidence.len(), "test shows", "tests show")) " it" }
                            (tests(part.evidence.iter().filter_map(|test| network.tests.get(*test)).collect()))
                        }
                    }
                }
            }
            (heat_map(network, report))
            @for run in &network.together {
                p {
                    (counted(run.nodes, "sound node", "sound nodes")) " together"
                    @if run.over_sockets { " over sockets" }
                    @if let Some(why) = &run.failure { ": " (why) }
                    @for one in &run.busbw { ", " (size(one.bytes)) ": " (rate(one.busbw)) }
                    @if let Some(pairs) = run.of_pairs { "; pairs: " (rate(pairs)) }
                    @if let Some(time) = run.time() { "; " (time) }
                }
            }
            @if !network.nccl.is_empty() {
                h3 { "NCCL's logs" }
                (groups(&network.nccl))
            }
            details {
                summary { "All " (counted(network.tests.len(), "test", "tests")) }
                (tests(network.tests.iter().collect()))
            }
        }
    }
}

/// What nodes send to each other: the slowest rail of each test, as a share of what is sound; the worst of several tests.
fn heat_map(network: &NetworkReport, report: &ClusterReport) -> Markup {
    let mut cells: BTreeMap<(&str, &str), (u64, String)> = BTreeMap::new();
    for test in &network.tests {
        let [a, b] = &test.nodes;
        for (from, to, way) in [(a, b, 0), (b, a, 1)] {
            let share = share(test, way, network);
            if let Some(share) = share {
                let round = test.round.map(|round| format!(" in round {round}")).unwrap_or_default();
                let title =
                    format!("{from} to {to}{round}: {}", test.failure.clone().unwrap_or_else(|| rates(test, way)));
                let cell = cells.entry((from, to)).or_insert((u64::MAX, String::new()));
                if share < cell.0 {
                    *cell = (share, title);
                }
            }
        }
    }
    let mut worst: BTreeMap<&str, u64> = BTreeMap::new();
    for ((from, to), (share, _)) in &cells {
        for node in [from, to] {
            let known = worst.entry(node).or_insert(*share);
            *known = (*share).min(*known);
        }
    }
    let mut names: Vec<_> = report.nodes.iter().map(|node| node.name.as_str()).collect();
    names.retain(|name| worst.contains_key(name));
    if names.len() > MOST {
        names.sort_by_key(|name| worst.get(name).copied());
        names.truncate(MOST);
    }
    html! {
        figure {
            div.scroll tabindex="0" {
                table.heat {
                    thead { tr { th { "from / to" } @for name in &names { th { (name) } } } }
                    tbody {
                        @for from in &names {
                            tr {
                                th scope="row" { (from) }
                                @for to in &names {
                                    @match cells.get(&(*from, *to)) {
                                        Some((share, title)) => { td.(heat(*share)) title=(title) { (share) } }
                                        None => { td.self { @if from == to { "X" } @else { "-" } } }
                                    }
                                }
                            }
                        }
                    }
                }
            }
            figcaption {
                "What a node sends to another, in percent of the rate between sound nodes: the slowest rail of the slowest test. A dash was not tested. The title of a cell has the rates and the round."
                @if worst.len() > MOST { " The " (MOST) " nodes with the slowest tests of " (worst.len()) " are shown." }
            }
        }
    }
}

/// The slowest rail of a test in one direction, in percent of its reference; 0 if the test failed.
fn share(test: &NetworkTest, way: usize, network: &NetworkReport) -> Option<u64> {
    if test.failure.is_some() {
        return Some(0);
    }
    let rails = test.rates.iter().zip(&network.references);
    let shares = rails
        .filter_map(|(rates, reference)| Some(rates.get(way).copied()?? * 100 / reference.filter(|one| *one > 0)?));
    shares.min()
}

/// The class of a cell.
const fn heat(percent: u64) -> &'static str {
    match percent {
        90.. => "h0",
        80.. => "h2",
        60.. => "h3",
        40.. => "h4",
        _ => "h5",
    }
}

/// What the rails of a test carry in one direction.
fn rates(test: &NetworkTest, way: usize) -> String {
    let rates = test.rates.iter().map(|rail| rail.get(way).copied().flatten().map_or_else(|| "?".to_owned(), rate));
    rates.collect::<Vec<_>>().join(", ")
}

fn tests(tests: Vec<&NetworkTest>) -> Markup {
    html! {
        div.scroll tabindex="0" {
            table.wide {
                thead { tr { th { "round" } th { "first" } th { "second" } th { "first to second" } th { "second to first" } th { "failure" } } }
                tbody {
                    @for test in tests {
                        @let [a, b] = &test.nodes;
                        tr { td { @if let Some(round) = test.round { (round) } @else { "?" } } td { (a) } td { (b) } td { (rates(test, 0)) } td { (rates(test, 1)) } td { @if let Some(why) = &test.failure { (why) } } }
                    }
                }
            }
        }
    }
}

fn differences(report: &ClusterReport) -> Markup {
    html! {
        @if !report.differences.is_empty() {
            section {
                h2 { "Values that differ" }
                @for difference in &report.differences {
                    article.(difference.severity.name()) {
                        h3 { (badge(difference.severity.name())) " " code { (difference.id) } " " (difference.value) }
                        @if !difference.has_majority { p { "No value has a majority." } }
                        (groups(&difference.groups))
                        p { (prose(&one_line(&difference.why))) }
                        (fix(&difference.fix))
                    }
                }
            }
        }
    }
}

fn groups(groups: &[NodeGroup]) -> Markup {
    html! { ul { @for group in groups { li { (group.text) ": " span.dim { (group.nodes.join(", ")) } } } } }
}

fn findings(report: &ClusterReport) -> Markup {
    html! {
        @if !report.findings.is_empty() {
            section {
                h2 { "Findings" }
                @for finding in &report.findings {
                    article.(finding.severity.name()) {
                        h3 { (badge(finding.severity.name())) " " code { (finding.rule) } }
                        (groups(&finding.groups))
                        @if finding.is_everywhere && report.nodes.len() > 1 { p { "All nodes have it, so that no single node is at fault." } }
                        dl.facts {
                            (advice(Some(finding.owner), &finding.why, "", &[]))
                            @if !finding.fixes.is_empty() { dt { "fix" } dd { @for text in &finding.fixes { (fix(text)) } } }
                        }
                    }
                }
            }
        }
    }
}

fn unknown(report: &ClusterReport) -> Markup {
    html! {
        @if !report.unknown.is_empty() {
            section {
                h2 { "Unknown" }
                @for gap in &report.unknown {
                    article.unknown {
                        p { (gap.why) }
                        p.dim { "On: " (gap.nodes.join(", ")) }
                        @if !gap.values.is_empty() { p { "Not compared: " (gap.values.join(", ")) } }
                        @if !gap.rules.is_empty() { p { "Not ruled out: " (gap.rules.join(", ")) } }
                    }
                }
            }
        }
    }
}

fn nodes(report: &ClusterReport) -> Markup {
    html! {
        section {
            h2 { "Nodes" }
            div.scroll tabindex="0" {
                table {
                    thead { tr { th { "node" } th { "end" } th { "why" } } }
                    tbody {
                        @for node in &report.nodes {
                            tr { td { (node.name) } td { (node.end) } td { @if let Some(why) = &node.why { (why) } } }
                        }
                    }
                }
            }
        }
    }
}
