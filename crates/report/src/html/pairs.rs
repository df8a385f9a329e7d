//! Heat maps of pairs: the connection between two devices, and the transport between two ranks. Each cell has its word,
//! so that the colour says nothing alone.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::plain_text::short;
use probe::facts::log;
use probe::recording::StepRecord;
use probe::wire::topology::Matrix;

/// Maximum rows and columns.
const MOST: usize = 64;
/// Maximum characters of a cell.
const CELL: usize = 24;

/// The matrix of `nvidia-smi topo -m`.
pub(super) fn devices(matrix: &Matrix) -> Markup {
    let names = matrix.names.list();
    if names.len() < 2 {
        return html! {};
    }
    let rows: Vec<_> = names.iter().zip(matrix.rows.list()).collect();
    html! {
        figure {
            div.scroll {
                table.heat {
                    thead { tr { th { "from / to" } @for name in names.iter().take(MOST) { th { (short(name, CELL)) } } } }
                    tbody {
                        @for (name, words) in rows.iter().take(MOST) {
                            tr {
                                th scope="row" { (short(name, CELL)) }
                                @for word in words.iter().take(MOST) {
                                    @let word = word.as_deref().unwrap_or("?");
                                    td.(heat(word)) { (short(word, CELL)) }
                                }
                            }
                        }
                    }
                }
            }
            figcaption {
                "Connections between devices, in the words of nvidia-smi topo -m: NV# (NVLinks), PIX (one PCIe switch), PXB (several), \
                 PHB (the CPU's bridge), NODE (one NUMA node), SYS (between CPUs)."
                @if names.len() > MOST { " Only the first " (MOST) " of " (names.len()) " are shown." }
            }
        }
    }
}

/// The transports between the ranks of a step.
pub(super) fn ranks(step: &StepRecord, title: &str) -> Markup {
    let log = log(step);
    let ranks: BTreeSet<u32> = log.pairs.keys().flat_map(|(from, to)| [*from, *to]).collect();
    if ranks.is_empty() {
        return html! {};
    }
    let way = |from: u32, to: u32| {
        let ways = log.pairs.get(&(from, to)).map(|ways| ways.iter().cloned().collect::<Vec<_>>().join(" + "));
        ways.unwrap_or_else(|| if from == to { "X" } else { "-" }.to_owned())
    };
    html! {
        figure {
            div.scroll {
                table.heat {
                    thead { tr { th { "from / to" } @for rank in ranks.iter().take(MOST) { th { "rank " (rank) } } } }
                    tbody {
                        @for from in ranks.iter().take(MOST) {
                            tr {
                                th scope="row" { "rank " (from) }
                                @for to in ranks.iter().take(MOST) {
                                    @let word = way(*from, *to);
                                    td.(heat(&word)) { (short(&word, CELL)) }
                                }
                            }
                        }
                    }
                }
            }
            figcaption {
                (title) ". A dash: NCCL's log has no connection between the two."
                @if ranks.len() > MOST { " Only the first " (MOST) " of " (ranks.len()) " ranks are shown." }
            }
        }
    }
}

/// The class of a cell: from NVLink or direct access, to paths between CPUs or over a network.
fn heat(word: &str) -> &'static str {
    let begins = |prefixes: &[&str]| prefixes.iter().any(|prefix| word.starts_with(prefix));
    match word {
        "X" => "self",
        _ if begins(&["NET"]) => "h5",
        _ if begins(&["NV", "P2P"]) => "h0",
        _ if begins(&["PIX"]) => "h1",
        _ if begins(&["PXB"]) => "h2",
        _ if begins(&["PHB", "SHM"]) => "h3",
        _ if begins(&["NODE"]) => "h4",
        _ if begins(&["SYS"]) => "h5",
        _ => "h6",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_colours_by_their_path() {
        let pairs = [
            ("NV18", "h0"),
            ("P2P/CUMEM", "h0"),
            ("SHM/direct/direct", "h3"),
            ("NET/Socket", "h5"),
            ("X", "self"),
            ("<b>", "h6"),
        ];
        for (word, expected) in pairs {
            assert_eq!(heat(word), expected, "{word}");
        }
    }
}
