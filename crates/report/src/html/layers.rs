//! The map of the layers: their sizes, and what each brought of torch, CUDA, NCCL and RDMA.

use std::collections::{BTreeMap, BTreeSet};

use maud::{Markup, html};

use crate::Report;
use crate::plain_text::{clean, short};
use facts::Facts;
use facts::key::{self, Definition};
use image::history;
use model::{Fact, Site, size};

/// Maximum characters of a build step.
const STEP: usize = 300;

/// Facts whose files a part consists of.
const PARTS: [(&str, &[&Definition]); 4] = [
    ("torch", &[key::TORCH_PATH.definition, key::TORCH_VERSION.definition]),
    ("CUDA", &[key::CUDA_CUDART.definition, key::TORCH_CUDA_VERSION.definition]),
    ("NCCL", &[key::NCCL_LOADED_PATH.definition, key::NCCL_LOADED_VERSION.definition]),
    ("RDMA", &[key::RDMA_VERBS.definition, key::RDMA_VERSION.definition]),
];

pub(super) fn section(report: &Report<'_>) -> Markup {
    let layers = &report.image.layers;
    let brought = brought(report.facts);
    let most = layers.iter().map(|layer| layer.size).max().unwrap_or_default().max(1);
    html! {
        section {
            h2 { "Layers" }
            div.scroll {
                table.wide {
                    thead { tr { th.n { "layer" } th.n { "size" } th { "" } th { "brought" } th { "read" } th { "step" } } }
                    tbody {
                        @for (index, layer) in layers.iter().enumerate() {
                            tr {
                                td.n { (index + 1) }
                                td.n.short { (size(layer.size)) }
                                td.track { span.bar style=(format!("width:{}%", percent(layer.size, most))) {} }
                                td { @for part in brought.get(&index).into_iter().flatten() { span.tag { (part) } } }
                                td.short { (read(layer.cached, layer.shared)) }
                                td {
                                    @if let Some(step) = layer.history.as_deref() { code { (short(&history::tidy(step), STEP)) } }
                                    @if let Some(digest) = layer.name() { " " span.dim { (clean(digest.short())) } }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Where the content of a layer was known from.
const fn read(is_cached: bool, is_shared: bool) -> &'static str {
    match (is_cached, is_shared) {
        (false, _) => "in this run",
        (true, false) => "from the cache",
        (true, true) => "from a shared cache",
    }
}

/// The parts that each layer brought, by its index.
fn brought(facts: &Facts) -> BTreeMap<usize, BTreeSet<&'static str>> {
    let mut brought: BTreeMap<usize, BTreeSet<&'static str>> = BTreeMap::new();
    for (name, keys) in PARTS {
        for key in keys {
            let Fact::Seen { at, .. } = facts.view(key) else { continue };
            for layer in at.iter().filter_map(Site::layer) {
                brought.entry(layer).or_default().insert(name);
            }
        }
    }
    brought
}

/// A part of the largest, in percent, at least 1.
fn percent(part: u64, most: u64) -> u128 {
    (u128::from(part) * 100 / u128::from(most.max(1))).clamp(1, 100)
}
