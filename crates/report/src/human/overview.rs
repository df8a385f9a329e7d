//! Overview of the image and its main facts, in a few lines: a clean report must show that something was examined.

use std::io;

use super::job;
use super::page::{Page, label};
use crate::provenance;
use facts::Facts;
use facts::key::{self, Definition};
use model::{Fact, ImageSummary, Value, size};

/// Column of the values.
const COLUMN: usize = 14;

/// Writes the image's source, digest and layers.
pub(super) fn image(image: &ImageSummary, verbose: bool, page: &mut Page<'_>) -> io::Result<()> {
    let digest = image.manifest.as_ref().map(|digest| ("manifest", digest));
    let digest = digest.or_else(|| image.config.as_ref().map(|digest| ("image ID", digest)));
    row("source", &image.source, page)?;
    if let Some(place) = &image.served_by {
        row("served by", place, page)?;
    }
    if let Some((name, digest)) = digest {
        let text = if verbose { digest.to_string() } else { format!("{}:{}", digest.algorithm(), digest.short()) };
        row(name, &text, page)?;
    }
    row("layers", &layers(image), page)
}

/// Writes the facts that matter most to distributed training.
pub(super) fn summary(facts: &Facts, page: &mut Page<'_>) -> io::Result<()> {
    rows(facts).iter().try_for_each(|(name, text)| row(name, text, page))
}

/// The rows of [`summary`]: name and text. A row with an empty name continues the one before it.
pub(crate) fn rows(facts: &Facts) -> Vec<(&'static str, String)> {
    let of_job = job::rows(facts);
    let mut rows: Vec<_> = launch(facts).into_iter().map(|text| ("launch", text)).collect();
    if !facts.are_of_image() {
        rows.extend(of_job);
        if rows.is_empty() {
            rows.push(("launch", "no container with a GPU".to_owned()));
        }
        return rows;
    }
    rows.extend(start(facts).map(|text| ("start", text)));
    // A subject that does not import torch has no row about it.
    let subject = facts.get(key::SUBJECT_NAME).value();
    rows.push(subject.map_or_else(|| ("torch", torch(facts)), |name| ("subject", name.clone())));
    rows.extend(nccl(facts));
    rows.push(match subject {
        None => ("linkage", linkage(facts)),
        Some(_) => ("route", fact_text(facts.view(&key::NCCL_LOADED_ROUTE))),
    });
    rows.push(("libibverbs", fact_text(facts.view(&key::RDMA_VERBS))));
    rows.push(("providers", fact_text(facts.view(&key::RDMA_PROVIDERS))));
    rows.extend(of_job);
    rows
}

/// What a launch file gives the container.
fn launch(facts: &Facts) -> Option<String> {
    let name = facts.get(key::CONTAINER_NAME).value()?;
    let said = |key: &Definition, before: &str, after: &str| match facts.view(key) {
        Fact::Absent => None,
        fact => Some(format!("{before}{}{after}", fact_text(fact))),
    };
    let shm = facts.get(key::CONTAINER_SHM).value().and_then(|bytes| u64::try_from(*bytes).ok());
    let parts = [
        said(&key::CONTAINER_GPUS, "", " GPUs"),
        shm.map(|bytes| format!("/dev/shm {}", size(bytes))),
        said(&key::CONTAINER_NETWORK, "network: ", ""),
        said(&key::CONTAINER_RDMA, "RDMA: ", ""),
        said(&key::CONTAINER_RANKS, "", " processes a node"),
        said(&key::CONTAINER_NODES, "nodes: ", ""),
    ];
    Some(format!("{name}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", ")))
}

/// Text of a fact: its value, `absent`, or the reason why it is unknown.
pub(crate) fn fact_text(fact: &Fact) -> String {
    match fact {
        Fact::Seen { value, .. } => value_text(value),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    }
}

/// Text of a value, with a word in place of an empty text, list or map.
pub(super) fn value_text(value: &Value) -> String {
    let text = value.to_string();
    match value {
        _ if !text.is_empty() => text,
        Value::List(_) | Value::Map(_) => "none".to_owned(),
        Value::Bool(_) | Value::Int(_) | Value::Text(_) | Value::Version(_) => "(empty)".to_owned(),
    }
}

fn row(name: &str, text: &str, page: &mut Page<'_>) -> io::Result<()> {
    page.row(2, label(name), COLUMN, text)
}

fn layers(image: &ImageSummary) -> String {
    let stored = size(image.layers.iter().map(|layer| layer.size).sum());
    let unpacked = size(image.layers.iter().map(|layer| layer.unpacked).sum());
    let unpacked = if unpacked == stored { String::new() } else { format!(" ({unpacked} unpacked)") };
    let cached = match provenance::cached(image) {
        (0, _) => String::new(),
        (cached, 0) => format!(", {cached} not read: cached"),
        (cached, shared) => format!(", {cached} not read: cached, {shared} of them in a shared cache"),
    };
    format!("{}, {stored}{unpacked}{cached}", image.layers.len())
}

/// The Python that the image starts, its user, and what was assumed; `None` without a Python.
fn start(facts: &Facts) -> Option<String> {
    let user = match facts.get(key::START_USER) {
        Fact::Seen { value, .. } => format!(" as user {value}"),
        Fact::Absent | Fact::Unknown(_) => String::new(),
    };
    let python = match facts.get(key::START_PYTHON) {
        Fact::Absent => return None,
        Fact::Unknown(gap) => return Some(format!("unknown: {gap}")),
        Fact::Seen { value, .. } => value,
    };
    let why = match (facts.get(key::START_ASSUMED), facts.get(key::START_COMMAND)) {
        (Fact::Seen { value, .. }, _) => format!(", assumed: {}", value.join("; ")),
        (_, Fact::Seen { value, .. }) => format!(", by {value}"),
        _ => String::new(),
    };
    Some(format!("{python}{user}{why}"))
}

fn torch(facts: &Facts) -> String {
    let version = fact_text(facts.view(&key::TORCH_VERSION));
    match (facts.get(key::TORCH_VERSION), facts.get(key::TORCH_CUDA_VERSION)) {
        (Fact::Absent, _) => version,
        (_, Fact::Seen { value, .. }) => format!("{version}, built for CUDA {value}"),
        (_, Fact::Absent) => format!("{version}, built without CUDA"),
        (_, Fact::Unknown(gap)) => format!("{version}, CUDA unknown: {gap}"),
    }
}

/// The NCCL that torch, or the subject, would load. If both its version and its path lack a value, they lack it for the same reason.
fn nccl(facts: &Facts) -> Vec<(&'static str, String)> {
    let version = facts.view(&key::NCCL_LOADED_VERSION);
    let path = facts.view(&key::NCCL_LOADED_PATH);
    let told = match (version.value(), path.value()) {
        (None, None) => fact_text(path),
        (Some(_), _) => fact_text(version),
        (None, Some(_)) => format!("version {}", fact_text(version)),
    };
    let path = path.value().map(|path| ("", value_text(path)));
    std::iter::once(("NCCL", told)).chain(path).collect()
}

/// The kind of linkage between torch and NCCL and, if known, the route by which the loader finds NCCL.
fn linkage(facts: &Facts) -> String {
    let linkage = fact_text(facts.view(&key::TORCH_NCCL_LINKAGE));
    match facts.get(key::NCCL_LOADED_ROUTE) {
        Fact::Seen { value, .. } => format!("{linkage}, {value}"),
        Fact::Absent | Fact::Unknown(_) => linkage,
    }
}
