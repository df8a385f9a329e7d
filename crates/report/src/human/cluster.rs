//! The report on the nodes of a job for people: the first line names the nodes that differ.

use std::io::{self, Write};

use anstyle::AnsiColor;

use super::judgements::{COLUMN, fix};
use super::page::{self, Page, label};
use super::{Style, colour, last_word, network};
use crate::cluster::{ClusterReport, NodeDifference, NodeFinding, NodeGap, NodeGroup, OddNode};
use crate::fix_text::one_line;
use crate::network::NetworkPart;
use model::{Severity, counted};

/// Most nodes that the first line describes.
const DESCRIBED: usize = 3;
/// Most nodes that are named in a list.
const NAMED: usize = 8;

/// Writes the report.
pub(crate) fn write(report: &ClusterReport, style: &Style, out: &mut dyn Write) -> io::Result<()> {
    let mut page = Page::new(out, style);
    let word = report.outcome().name().to_uppercase();
    page.verbatim(0, (&word, colour(report.outcome())), word.len() + 2, &headline(report))?;
    for node in &report.nodes {
        if let Some(why) = &node.why {
            page.blank()?;
            let text = format!("{}: {}", node.name, why.lines().next().unwrap_or_default());
            page.heading(&format!("{}:", node.end), page::severity(Severity::Error), &text)?;
            why.lines().skip(1).try_for_each(|line| page.verbatim(2, label("said"), COLUMN, line))?;
        }
    }
    if let Some(found) = &report.network {
        network::write(found, &mut page)?;
    }
    for severity in [Severity::Error, Severity::Warning, Severity::Info] {
        let differences = report.differences.iter().filter(|difference| difference.severity == severity);
        differences.into_iter().try_for_each(|difference| self::difference(difference, &mut page))?;
        let findings = report.findings.iter().filter(|finding| finding.severity == severity);
        findings.into_iter().try_for_each(|one| finding(one, report, &mut page))?;
    }
    report.unknown.iter().try_for_each(|gap| unknown(gap, report, &mut page))?;
    last_line(report, &mut page)
}

/// Which nodes differ from most, or that none does.
pub(crate) fn headline(report: &ClusterReport) -> String {
    let nodes = counted(report.nodes.len(), "node", "nodes");
    let described = |odd: &OddNode| {
        let reason = odd.reasons.first().and_then(|reason| reason.lines().next()).unwrap_or_default();
        if odd.kind == "all" { reason.to_owned() } else { format!("{}: {reason}", odd.name) }
    };
    let named: Vec<_> = report.odd.iter().take(DESCRIBED).map(described).collect();
    let is_of_all = report.odd.iter().all(|odd| odd.kind == "all");
    let is_node = report.odd.iter().all(|odd| odd.kind == "node");
    let [one, many] = if is_node { ["odd node", "odd nodes"] } else { ["slow part", "odd nodes or slow parts"] };
    let part_in = |state| report.network.iter().flat_map(|network| &network.parts).find(|part| part.state == state);
    let doubt = part_in("undecided").map(|part| format!("{} undecided: {}", is_or_are(part), part.text));
    let doubt = doubt.or_else(|| part_in("common").map(|part| part.text.clone()));
    let has_split = report.differences.iter().any(|difference| !difference.has_majority);
    let none_ended = report.nodes.iter().all(|node| node.why.is_some());
    let text = match report.odd.len() {
        0 if none_ended => none_came(report),
        0 if has_split => "no odd node can be named: values differ, and none has a majority".to_owned(),
        0 => match doubt {
            Some(doubt) => format!("no odd node, but {doubt}"),
            None if report.nodes.len() == 1 => "no other node to compare it with".to_owned(),
            None => "no odd node".to_owned(),
        },
        _ if is_of_all => named.join("; "),
        1 => format!("the {one} is {}", named.join("")),
        count if count > DESCRIBED => format!("{count} {many}: {}; and {} more", named.join("; "), count - DESCRIBED),
        count => format!("{count} {many}: {}", named.join("; ")),
    };
    format!("{nodes}; {text}")
}

/// That no node came to its end, why the first did not, and the last line that it wrote to standard error.
fn none_came(report: &ClusterReport) -> String {
    let first = report.nodes.iter().find_map(|node| Some((&node.name, node.why.as_ref()?)));
    let why = first.map(|(name, why)| {
        let said = why.lines().skip(1).last().map(|line| format!(": {line}"));
        format!("; {name}: {}{}", why.lines().next().unwrap_or_default(), said.unwrap_or_default())
    });
    format!("none came to its end{}", why.unwrap_or_default())
}

fn is_or_are(part: &NetworkPart) -> String {
    format!("{} {}", part.title(), if part.kind == "all" { "are" } else { "is" })
}

fn difference(difference: &NodeDifference, page: &mut Page<'_>) -> io::Result<()> {
    let NodeDifference { id, severity, value, has_majority, groups, why, fix: text, .. } = difference;
    page.blank()?;
    let what = if *has_majority { "differs" } else { "differs, and no value has a majority" };
    page.heading(&format!("{}[{id}]:", severity.name()), page::severity(*severity), &format!("{value}: {what}"))?;
    for group in groups {
        page.row(2, label("on"), COLUMN, &format!("{}: {}", names(&group.nodes), group.text))?;
    }
    page.row(2, label("why"), COLUMN, &one_line(why))?;
    for (index, line) in text.lines().enumerate() {
        page.verbatim(2, label(if index == 0 { "fix" } else { "" }), COLUMN, line)?;
    }
    Ok(())
}

fn finding(finding: &NodeFinding, report: &ClusterReport, page: &mut Page<'_>) -> io::Result<()> {
    let NodeFinding { rule, severity, owner, is_everywhere, groups, why, fixes } = finding;
    page.blank()?;
    for group in groups {
        page.heading(&format!("{}[{rule}]:", severity.name()), page::severity(*severity), &group.text)?;
        page.row(2, label("on"), COLUMN, &share(group, report))?;
    }
    let is_shared = *is_everywhere && report.nodes.len() > 1;
    let of = if is_shared { "; all nodes have it, so that no single node is at fault" } else { "" };
    page.row(2, label("of"), COLUMN, &format!("{}{of}", owner.name()))?;
    page.row(2, label("why"), COLUMN, &one_line(why))?;
    fixes.iter().try_for_each(|text| fix(text, page))
}

fn unknown(gap: &NodeGap, report: &ClusterReport, page: &mut Page<'_>) -> io::Result<()> {
    page.blank()?;
    page.heading("unknown:", page::bold(AnsiColor::Magenta), &gap.why)?;
    let group = NodeGroup { text: String::new(), nodes: gap.nodes.clone() };
    page.row(2, label("on"), COLUMN, &share(&group, report))?;
    if !gap.values.is_empty() {
        page.row(2, label("not compared"), COLUMN, &gap.values.join(", "))?;
    }
    if gap.rules.is_empty() { Ok(()) } else { page.row(2, label("not ruled out"), COLUMN, &gap.rules.join(", ")) }
}

/// `7 of 8 nodes: n0, n1, …`.
fn share(group: &NodeGroup, report: &ClusterReport) -> String {
    let all = report.nodes.len();
    if all == 1 {
        return names(&group.nodes);
    }
    if group.nodes.len() == all {
        return format!("all {all} nodes");
    }
    format!("{} of {}: {}", group.nodes.len(), counted(all, "node", "nodes"), names(&group.nodes))
}

pub(super) fn names(nodes: &[String]) -> String {
    let named = nodes.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = nodes.len().saturating_sub(NAMED);
    if more == 0 { named } else { format!("{named} and {more} more") }
}

/// Writes the last line, which people read and paste.
fn last_line(report: &ClusterReport, page: &mut Page<'_>) -> io::Result<()> {
    let word = format!("{}:", last_word(report.outcome()));
    let ended = report.nodes.iter().filter(|node| node.why.is_none()).count();
    let parts = [
        format!("{ended} of {} ended", counted(report.nodes.len(), "node", "nodes")),
        format!("{} of {} equal", report.equal, counted(report.compared, "value", "values")),
        counted(report.findings.len(), "finding", "findings"),
        format!("{} unknown", report.unknown.len()),
    ];
    page.blank()?;
    page.verbatim(0, (&word, colour(report.outcome())), word.len() + 1, &parts.join(", "))
}
