//! The way to NCCL as a tree: the program, torch, the rule by which the loader finds the library, and the copies that it
//! does not take.

use maud::{Markup, html};

use crate::human::overview::fact_text;
use crate::plain_text::short;
use facts::Facts;
use facts::key::{self, Definition};
use model::{Fact, Site};

/// Maximum characters of a node.
const NODE: usize = 400;
/// Maximum copies of NCCL that are not loaded.
const COPIES: usize = 50;

pub(super) fn section(facts: &Facts) -> Markup {
    let subject = facts.view(&key::SUBJECT_NAME).value().is_some();
    let program = if subject { node(facts, &key::SUBJECT_PROGRAM) } else { node(facts, &key::PYTHON_PATH) };
    let left = facts.get(key::NCCL_NOT_LOADED).value().map(Vec::as_slice).unwrap_or_default();
    html! {
        section {
            h2 { "The way to NCCL" }
            ul.tree {
                li {
                    (program)
                    ul {
                        @if subject { li { (library(facts, left)) } }
                        @else {
                            li {
                                "import torch: " (node(facts, &key::TORCH_PATH)) " " (text(facts, &key::TORCH_VERSION))
                                ul { li { "linkage: " (text(facts, &key::TORCH_NCCL_LINKAGE)) ul { li { (library(facts, left)) } } } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The rule of the loader, and below it the library that it takes and those that it does not.
fn library(facts: &Facts, left: &[String]) -> Markup {
    let path = facts.view(&key::NCCL_LOADED_PATH);
    html! {
        @match path {
            Fact::Seen { .. } => { "by " (text(facts, &key::NCCL_LOADED_ROUTE)) }
            Fact::Absent => { span.badge.fail { "not found" } " libnccl.so.2" }
            Fact::Unknown(gap) => { span.badge.unknown { "unknown" } " " (short(&gap.to_string(), NODE)) }
        }
        ul {
            @if let Fact::Seen { .. } = path {
                li { span.badge.pass { "loaded" } " " (node(facts, &key::NCCL_LOADED_PATH)) " " (text(facts, &key::NCCL_LOADED_VERSION)) }
            }
            @for copy in left.iter().take(COPIES) { li { span.badge.unknown { "not loaded" } " " (short(copy, NODE)) } }
            @if left.len() > COPIES { li { "and " (left.len() - COPIES) " more" } }
        }
    }
}

fn text(facts: &Facts, key: &Definition) -> String {
    short(&fact_text(facts.view(key)), NODE)
}

/// A path, and the layer that it comes from.
fn node(facts: &Facts, key: &Definition) -> Markup {
    let fact = facts.view(key);
    let layer = fact.sites().iter().find_map(Site::layer);
    html! {
        code { (text(facts, key)) }
        @if let Some(layer) = layer { " " span.tag { "layer " (layer + 1) } }
    }
}
