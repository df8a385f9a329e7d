//! The plan of a run: what is judged by which rules, in chunks that one worker takes at a time. It is written once, and
//! last, so that a plan that can be read is complete.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use judge::RulebookSource;
use layer::store::ObjectFolder;

use super::retried::retried;
use super::{AuditError, AuditItem, AuditRules, FORM};

/// Images of a chunk, at most. A worker that is killed leaves this many to others for the length of a lease.
const MOST_ITEMS: usize = 32;

/// Bytes of layers that no earlier chunk has, at most, unless a single image has more.
const MOST_BYTES: u64 = 4 << 30;

/// The plan of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditPlan {
    /// [`FORM`].
    pub schema: String,
    /// Name of the run.
    pub run: String,
    /// Time of the plan (RFC 3339, UTC).
    pub created: String,
    /// The rules and everything else that verdicts depend on, besides the images.
    pub rules: AuditRules,
    /// The profile and the policies that select the rules.
    pub rulebook: RulebookSource,
    /// Number of images.
    pub items: usize,
    /// The chunks, in the order of their numbers.
    pub chunks: Vec<AuditChunk>,
    /// Images that could not be resolved, with the reason.
    #[serde(default)]
    pub unresolved: BTreeMap<String, String>,
}

impl AuditPlan {
    /// What orders the runs of a store: the time of the plan, and of one second the name.
    pub(super) fn age(&self) -> (&str, &str) {
        (&self.created, &self.run)
    }
}

/// Size of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditChunk {
    /// Number of images.
    pub items: usize,
    /// Bytes of their layers that no earlier chunk has.
    pub bytes: u64,
}

/// Cuts ordered images into chunks.
fn chunks(items: &[AuditItem]) -> Vec<(AuditChunk, &[AuditItem])> {
    let mut seen = BTreeSet::new();
    let mut cut = Vec::new();
    let mut start = 0;
    let mut bytes = 0_u64;
    for (index, item) in items.iter().enumerate() {
        let new: u64 = item.layers.iter().filter(|(digest, _)| seen.insert(digest)).map(|(_, size)| size).sum();
        let is_full = index - start >= MOST_ITEMS || bytes.saturating_add(new) > MOST_BYTES;
        if is_full && index > start {
            cut.push((start..index, bytes));
            (start, bytes) = (index, 0);
        }
        bytes = bytes.saturating_add(new);
    }
    if start < items.len() {
        cut.push((start..items.len(), bytes));
    }
    let chunk = |(range, bytes): (std::ops::Range<usize>, u64)| {
        let items = items.get(range).unwrap_or_default();
        (AuditChunk { items: items.len(), bytes }, items)
    };
    cut.into_iter().map(chunk).collect()
}

/// Writes the plan of a run over ordered images.
///
/// # Errors
/// The store has a run of this name, or fails.
pub fn write_plan(
    store: &ObjectFolder,
    run: &str,
    created: String,
    (rules, rulebook): (AuditRules, RulebookSource),
    items: &[AuditItem],
    unresolved: BTreeMap<String, String>,
) -> Result<AuditPlan, AuditError> {
    if !store.has_create() {
        let why = format!("{store}: a web server cannot keep an audit; use s3://, gs://, az:// or a folder");
        return Err(AuditError::Usage(why));
    }
    let name = format!("{run}/plan.json");
    let taken = || AuditError::Usage(format!("{store} has a run '{run}' already: choose another --run"));
    if retried(store, || store.read(&name, u64::MAX))?.is_some() {
        return Err(taken());
    }
    let chunks = chunks(items);
    for (number, (_, items)) in chunks.iter().enumerate() {
        let mut lines = Vec::new();
        for item in *items {
            serde_json::to_writer(&mut lines, item).map_err(|error| AuditError::Usage(error.to_string()))?;
            lines.push(b'\n');
        }
        // An earlier attempt that was killed may have left another list: the plan decides which counts.
        retried(store, || store.write(&format!("{run}/work/{number:05}.jsonl"), lines.clone()))?;
    }
    let plan = AuditPlan {
        schema: FORM.to_owned(),
        run: run.to_owned(),
        created,
        rules,
        rulebook,
        items: items.len(),
        chunks: chunks.into_iter().map(|(chunk, _)| chunk).collect(),
        unresolved,
    };
    let bytes = serde_json::to_vec_pretty(&plan).map_err(|error| AuditError::Usage(error.to_string()))?;
    if !retried(store, || store.create(&name, bytes.clone()))? {
        // The answer to an earlier attempt may have been lost.
        let found = retried(store, || store.read(&name, u64::MAX))?;
        if found.as_deref() != Some(&*bytes) {
            return Err(taken());
        }
    }
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(id: &str, layers: &[(&str, u64)]) -> AuditItem {
        let digest = |name: &str| format!("sha256:{}", name.repeat(64)).parse().unwrap();
        AuditItem {
            id: id.to_owned(),
            reference: id.to_owned(),
            names: vec![id.to_owned()],
            manifest: None,
            config: None,
            platform: None,
            layers: layers.iter().map(|(name, size)| (digest(name), *size)).collect(),
            pods: Vec::new(),
        }
    }

    #[test]
    fn images_of_a_base_are_neighbours_and_names_are_merged() {
        let again = AuditItem { names: vec!["x".to_owned()], ..item("3", &[("a", 1), ("d", 1)]) };
        let items = [item("1", &[("a", 1)]), item("2", &[("b", 1)]), item("3", &[("a", 1), ("d", 1)]), again];
        let items = super::super::collect(items);
        assert_eq!(items.iter().map(|item| &*item.id).collect::<Vec<_>>(), ["1", "3", "2"]);
        assert_eq!(items[1].names, ["3", "x"]);
    }

    #[test]
    fn chunks_have_bounds() {
        let many: Vec<_> = (0..70).map(|n| item(&n.to_string(), &[("a", 1 << 30)])).collect();
        let sizes =
            |items: &[AuditItem]| chunks(items).iter().map(|(chunk, _)| (chunk.items, chunk.bytes)).collect::<Vec<_>>();
        assert_eq!(sizes(&many), [(32, 1 << 30), (32, 0), (6, 0)]);
        let large = [item("1", &[("a", 3 << 30)]), item("2", &[("b", 3 << 30)]), item("3", &[("b", 3 << 30)])];
        assert_eq!(sizes(&large), [(1, 3 << 30), (2, 3 << 30)]);
        assert!(chunks(&[]).is_empty());
    }
}
