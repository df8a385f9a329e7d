//! The results of a run: topology, pairs, bandwidths and durations.

use maud::{Markup, html};

use facts::Facts;
use probe::recording::Recording;
use probe::wire::StepBody as _;
use probe::wire::collectives::{CollectivesBody, FORCED_NETWORK};
use probe::wire::topology::TopologyBody;

use crate::measured::{self, MeasuredTable};
use crate::plain_text::clean;

use super::{bandwidth, pairs, timeline, topology};

/// The drawings of a run.
pub(super) fn sections(probe: &Recording, facts: &Facts) -> Markup {
    let topology = probe.result::<TopologyBody>();
    let collectives = probe.find(CollectivesBody::STEP);
    let network = probe.find(FORCED_NETWORK);
    html! {
        @if let Some((_, body)) = &topology {
            (titled("Topology", &html! {
                (topology::figure(body))
                @if let Some(matrix) = body.matrix.value() { (pairs::devices(matrix)) }
            }))
        }
        @if let Some(step) = collectives {
            (titled("Collectives", &html! {
                (bandwidth::figure(step, "All transports"))
                (pairs::ranks(step, "Transports between ranks"))
            }))
            (titled("First call", &timeline::first_call(step)))
        }
        @if let Some(step) = network {
            (titled("Over the network alone", &html! {
                (bandwidth::figure(step, "Network alone"))
                (pairs::ranks(step, "Transports between ranks, over the network alone"))
            }))
        }
        @for found in measured::undrawn(probe, facts) { (titled(&capitalized(&found.title), &table(&found))) }
        (titled("Steps", &timeline::steps(probe)))
    }
}

fn table(table: &MeasuredTable) -> Markup {
    let (head, rows) = if table.has_head { table.rows.split_at(1) } else { table.rows.split_at(0) };
    html! {
        div.scroll {
            table {
                thead { @for row in head { tr { @for cell in row { th { (clean(cell)) } } } } }
                tbody { @for row in rows { tr { @for cell in row { td { (clean(cell)) } } } } }
            }
        }
        @for note in &table.notes { p { (clean(note)) } }
    }
}

fn capitalized(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// A section with a title; nothing if it would be empty. One rank has no collectives to draw.
fn titled(title: &str, content: &Markup) -> Markup {
    html! {
        @if !content.0.is_empty() {
            section {
                h2 { (title) }
                (content)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_section_is_empty() {
        for (name, has_collectives) in [("healthy", false), ("both-healthy", true)] {
            let path = format!("{}/../../fixtures/probe/h100-x2/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
            let page = sections(&Recording::replay(&std::fs::read(path).unwrap()).unwrap(), &Facts::default()).0;
            assert!(!page.contains("</h2></section>"), "{name}");
            assert_eq!(page.contains("<h2>Collectives</h2>"), has_collectives, "{name}");
            assert!(page.contains("<h2>First call</h2>") && page.contains("<h2>Steps</h2>"), "{name}");
        }
    }
}
