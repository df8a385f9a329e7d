//! Audits: thousands of images judged by any number of workers, which share nothing but a store of objects.
//!
//! | object | content | written |
//! |---|---|---|
//! | `RUN/plan.json` | [`AuditPlan`]: the rules, the program, and the sizes of the chunks | once |
//! | `RUN/work/CHUNK.jsonl` | [`AuditItem`]s, one on each line | once |
//! | `RUN/lease/CHUNK/EPOCH` | who works on a chunk ([`layer::store::lease`]) | once each |
//! | `RUN/done/CHUNK/ID.json` | [`ItemResult`]: the verdict on one image | once, by whoever is first |
//! | `RUN/tried/ID/N` | an attempt at an image of a chunk whose worker died | once each |
//! | `RUN/failed/ID/…` | a failure that may pass | once each |
//! | `RUN/finished/CHUNK` | that every image of the chunk has a result | once |
//!
//! Every object is created, none is overwritten. Leases only save work; that an image counts once follows from
//! `done` alone.

mod aggregate;
mod document;
mod item;
mod judged;
mod judging;
pub mod listed;
pub mod merge;
pub mod owners;
mod plan;
mod retried;
mod shard;
mod status;
mod text;
pub mod trend;
pub mod worker;

use layer::store::ObjectFolder;
use model::document::DocumentError;

pub use document::{AuditCounts, AuditDocument, AuditLayer, AuditRow, AuditRule, SCHEMA, schema};
pub use item::{AuditItem, collect};
pub use judged::{BlamedLayer, ItemFinding, ItemResult, ItemUnavailable};
pub use judging::AuditRules;
pub use owners::repository;
pub use plan::{AuditChunk, AuditPlan, write_plan};
pub use shard::Shard;
pub use status::AuditStatus;

use retried::retried;

/// Name and major version of the formats.
pub const FORM: &str = "ncclcheck-audit/1";

/// Maximum size of a plan, and of a chunk's list of images, in bytes.
const MOST_PLAN: u64 = 256 << 20;

/// Maximum size of a result, in bytes. One takes 1 to 4 KB.
const MOST_RESULT: u64 = 4 << 20;

/// Reason why an audit cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The store failed several times.
    #[error("store {place}: {why}")]
    Store {
        /// The store.
        place: String,
        /// What failed.
        why: String,
    },
    /// The arguments do not fit the store, or a pattern of a map of owners is malformed.
    #[error("{0}")]
    Usage(String),
    /// A map of owners is not a list of entries.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// The output failed.
    #[error(transparent)]
    Output(#[from] std::io::Error),
}

impl AuditError {
    /// Returns true if another attempt may succeed.
    pub const fn is_transient(&self) -> bool {
        matches!(self, Self::Store { .. })
    }
}

/// One run of an audit in a store.
#[derive(Debug)]
pub struct AuditRun<'s> {
    /// The store.
    pub store: &'s ObjectFolder,
    /// The plan.
    pub plan: AuditPlan,
}

impl<'s> AuditRun<'s> {
    /// Opens a run by name, or the newest one.
    ///
    /// # Errors
    /// The store has no such run, its plan is of another version, or the store fails.
    pub fn open(store: &'s ObjectFolder, name: Option<&str>) -> Result<Self, AuditError> {
        let names = match name {
            Some(name) => vec![name.to_owned()],
            None => retried(store, || store.folders())?,
        };
        let missing = || {
            let what = name.map_or_else(|| "no run".to_owned(), |name| format!("no run '{name}'"));
            AuditError::Usage(format!("{store} has {what}\n  help: ncclcheck audit plan --store {store} IMAGE..."))
        };
        let newest = plans(store, names)?.pop();
        Ok(Self { store, plan: newest.ok_or_else(missing)? })
    }

    /// Opens the newest run that was planned before this one and is finished, if the store has one.
    ///
    /// # Errors
    /// A plan is of another version, or the store fails.
    pub fn before(&self) -> Result<Option<Self>, AuditError> {
        let names = retried(self.store, || self.store.folders())?;
        let earlier = plans(self.store, names)?.into_iter().rev().filter(|plan| plan.age() < self.plan.age());
        for plan in earlier {
            let run = Self { store: self.store, plan };
            if run.is_finished()? {
                return Ok(Some(run));
            }
        }
        Ok(None)
    }

    /// Returns true if every image has a result.
    fn is_finished(&self) -> Result<bool, AuditError> {
        Ok(self.finished()?.len() >= self.plan.chunks.len())
    }

    /// The name of an object of this run.
    fn name(&self, rest: &str) -> String {
        format!("{}/{rest}", self.plan.run)
    }

    /// The images of a chunk.
    fn items(&self, chunk: usize) -> Result<Vec<AuditItem>, AuditError> {
        let name = self.name(&format!("work/{chunk:05}.jsonl"));
        let bytes = retried(self.store, || self.store.read(&name, MOST_PLAN))?;
        let wrong = |why: &str| AuditError::Usage(format!("{name} of {}: {why}", self.store));
        let bytes = bytes.ok_or_else(|| wrong("the plan names this list, but it is missing"))?;
        let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| serde_json::from_slice(line).map_err(|error| wrong(&error.to_string()))).collect()
    }

    /// All images.
    ///
    /// # Errors
    /// The store fails, or lacks a part of the plan.
    pub fn all_items(&self) -> Result<Vec<AuditItem>, AuditError> {
        let chunks = (0..self.plan.chunks.len()).map(|chunk| self.items(chunk));
        Ok(chunks.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
    }

    /// The name of an image's result.
    fn result_name(&self, chunk: usize, item: &AuditItem) -> String {
        self.name(&format!("done/{chunk:05}/{}.json", item.id))
    }

    /// The results of a chunk's images, as far as they are there.
    fn results(&self, chunk: usize, items: &[AuditItem]) -> Result<Vec<Option<ItemResult>>, AuditError> {
        let names: Vec<_> = items.iter().map(|item| self.result_name(chunk, item)).collect();
        let found = retried(self.store, || self.store.read_all(&names, MOST_RESULT))?;
        let parsed = found.into_iter().zip(&names).map(|(bytes, name)| {
            let parse = |bytes: Vec<u8>| {
                let why = |error| AuditError::Usage(format!("{name} of {} is not a result: {error}", self.store));
                serde_json::from_slice(&bytes).map_err(why)
            };
            bytes.map(parse).transpose()
        });
        parsed.collect()
    }

    /// The chunks whose images all have a result.
    fn finished(&self) -> Result<std::collections::BTreeSet<usize>, AuditError> {
        let listed = retried(self.store, || self.store.list(&self.name("finished")))?;
        Ok(listed.iter().filter_map(|object| object.name.rsplit('/').next()?.parse().ok()).collect())
    }
}

/// The plans of runs, the newest last. A folder without a plan is skipped.
fn plans(store: &ObjectFolder, names: Vec<String>) -> Result<Vec<AuditPlan>, AuditError> {
    let mut plans = Vec::new();
    for name in names {
        let file = format!("{name}/plan.json");
        let Some(bytes) = retried(store, || store.read(&file, MOST_PLAN))? else { continue };
        let plan: AuditPlan = serde_json::from_slice(&bytes)
            .map_err(|error| AuditError::Usage(format!("{file} of {store} is not the plan of an audit: {error}")))?;
        if plan.schema != FORM {
            let why = format!("{file} of {store} is of version {}, this program reads {FORM}", plan.schema);
            return Err(AuditError::Usage(why));
        }
        plans.push(plan);
    }
    plans.sort_by(|a, b| a.age().cmp(&b.age()));
    Ok(plans)
}
