//! What tests between nodes show, for people.

use std::io;

use anstyle::AnsiColor;

use super::cluster::names;
use super::judgements::COLUMN;
use super::page::{self, Page, label};
use crate::network::{NetworkPart, NetworkReport, NetworkTest, NetworkTogether, rate};
use model::{Severity, counted, size};

/// Most tests, and most texts of logs, that are shown.
const SHOWN: usize = 6;

pub(super) fn write(network: &NetworkReport, page: &mut Page<'_>) -> io::Result<()> {
    network.parts.iter().try_for_each(|part| self::part(part, network, page))?;
    page.blank()?;
    page.heading("between nodes:", page::bold(AnsiColor::Cyan), &summary(network))?;
    network.together.iter().try_for_each(|one| page.row(2, label("together"), COLUMN, &together(one)))?;
    for group in network.nccl.iter().take(SHOWN) {
        page.row(2, label("NCCL"), COLUMN, &format!("{}: {}", names(&group.nodes), group.text))?;
    }
    more(network.nccl.len(), page)
}

fn part(part: &NetworkPart, network: &NetworkReport, page: &mut Page<'_>) -> io::Result<()> {
    let (word, style) = match part.state {
        "bad" => ("error", page::severity(Severity::Error)),
        "common" => ("warning", page::severity(Severity::Warning)),
        _ => ("unknown", page::bold(AnsiColor::Magenta)),
    };
    page.blank()?;
    let heading = if part.state == "undecided" { format!("{word}:") } else { format!("{word}[cluster/network]:") };
    page.heading(&heading, style, &format!("{}: {}", part.title(), part.text))?;
    if let Some(cause) = &part.cause {
        page.row(2, label("cause"), COLUMN, &cause.text)?;
        let writes: Vec<_> = network.writes_of(cause).collect();
        writes.iter().take(SHOWN).try_for_each(|text| page.row(2, label("RDMA"), COLUMN, text))?;
        more(writes.len(), page)?;
    }
    let tests: Vec<_> = part.evidence.iter().filter_map(|test| network.tests.get(*test)).collect();
    for test in tests.iter().take(SHOWN) {
        page.row(2, label("test"), COLUMN, &measured(test))?;
    }
    more(tests.len(), page)
}

/// Says how many rows of a list are left out.
fn more(rows: usize, page: &mut Page<'_>) -> io::Result<()> {
    match rows.saturating_sub(SHOWN) {
        0 => Ok(()),
        more => page.row(2, label(""), COLUMN, &format!("and {more} more")),
    }
}

/// `n5 > n1: 24.1 MB/s; n1 > n5: 48.0 MB/s`.
fn measured(test: &NetworkTest) -> String {
    let [a, b] = &test.nodes;
    if let Some(why) = &test.failure {
        return format!("{a} and {b}: {why}");
    }
    let way = |from: &str, to: &str, rates: &mut dyn Iterator<Item = Option<u64>>| {
        let rates = rates.map(|bytes| bytes.map_or_else(|| "?".to_owned(), rate));
        format!("{from} > {to}: {}", rates.collect::<Vec<_>>().join(", "))
    };
    let there = way(a, b, &mut test.rates.iter().map(|[there, _]| *there));
    format!("{there}; {}", way(b, a, &mut test.rates.iter().map(|[_, back]| *back)))
}

/// How many tests there were, and what they can show.
fn summary(network: &NetworkReport) -> String {
    let rates: Vec<_> = network.references.iter().flatten().map(|bytes| rate(*bytes)).collect();
    let rails = match &*rates {
        [] => String::new(),
        [only] => format!("; {only} each way between sound nodes"),
        all => format!("; by rail {} each way between sound nodes", all.join(", ")),
    };
    let tests = counted(network.tests.len(), "test", "tests");
    format!("{tests} of pairs{rails}; a loss below {:.0} % is not seen", 100.0 * network.unseen_loss)
}

fn together(run: &NetworkTogether) -> String {
    let how = if run.over_sockets { " over sockets" } else { "" };
    let nodes = counted(run.nodes, "node", "nodes");
    if let Some(why) = &run.failure {
        return format!("{nodes}{how}: {why}");
    }
    let sizes: Vec<_> = run.busbw.iter().map(|one| format!("{} {}", size(one.bytes), rate(one.busbw))).collect();
    let pairs = run.of_pairs.map(|pairs| format!("; pairs {}", rate(pairs))).unwrap_or_default();
    let time = run.time().map(|time| format!("; {time}")).unwrap_or_default();
    format!("{nodes}{how}, all_reduce busbw by size: {}{pairs}{time}", sizes.join(", "))
}
