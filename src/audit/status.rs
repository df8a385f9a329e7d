//! How far a run is, from lists alone: no result is read.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::time::SystemTime;

use serde::Serialize;

use model::printable;

use super::retried::retried;
use super::{AuditError, AuditRun};

/// Largest message of a failure that is kept, in bytes.
const MOST_FAILURE: u64 = 64 << 10;

/// Failures that are shown.
const SHOWN: usize = 10;

/// The state of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AuditStatus {
    /// Name of the run.
    pub run: String,
    /// Number of images.
    pub images: usize,
    /// Number of images with a result.
    pub done: usize,
    /// Number of chunks.
    pub chunks: usize,
    /// Number of chunks whose images all have a result.
    pub finished: usize,
    /// Unfinished chunks that a worker took, and the seconds since the last sign of it.
    pub held: BTreeMap<usize, u64>,
    /// Failures that may pass, of images without a result: the first ones by name of the image, with their messages.
    pub failed: BTreeMap<String, String>,
    /// Number of images with such failures beyond those in `failed`.
    pub failed_more: usize,
}

impl AuditStatus {
    /// Reads the state of a run.
    ///
    /// # Errors
    /// The store fails.
    pub fn of(run: &AuditRun<'_>) -> Result<Self, AuditError> {
        let list = |folder: &str| retried(run.store, || run.store.list(&run.name(folder)));
        let finished = run.finished()?;
        let done = list("done")?;
        let now = SystemTime::now();
        let mut held = BTreeMap::new();
        for object in list("lease")? {
            let chunk = object.name.rsplit('/').nth(1).and_then(|chunk| chunk.parse().ok());
            if let Some(chunk) = chunk.filter(|chunk| !finished.contains(chunk)) {
                // Later epochs of a chunk follow, and replace it.
                held.insert(chunk, now.duration_since(object.modified).unwrap_or_default().as_secs());
            }
        }
        let has_result = |id: &str| done.iter().any(|object| object.name.contains(id));
        let mut failed = BTreeMap::new();
        let mut more = BTreeSet::new();
        for object in list("failed")? {
            let Some(id) = object.name.rsplit('/').nth(1).filter(|id| !has_result(id)) else { continue };
            if failed.len() == SHOWN && !failed.contains_key(id) {
                more.insert(id.to_owned());
                continue;
            }
            let why = retried(run.store, || run.store.read(&object.name, MOST_FAILURE))?.unwrap_or_default();
            failed.insert(id.to_owned(), String::from_utf8_lossy(&why).into_owned());
        }
        Ok(Self {
            run: run.plan.run.clone(),
            images: run.plan.items,
            done: done.len(),
            chunks: run.plan.chunks.len(),
            finished: finished.len(),
            held,
            failed,
            failed_more: more.len(),
        })
    }

    /// Returns true if every image has a result.
    pub fn is_complete(&self) -> bool {
        self.finished >= self.chunks
    }

    /// Writes it for people.
    ///
    /// # Errors
    /// The output fails.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { run, images, done, chunks, finished, held, failed, failed_more } = self;
        writeln!(
            out,
            "run {run}\n{done} of {images} images have a result, {finished} of {chunks} chunks are finished"
        )?;
        for (chunk, seconds) in held {
            writeln!(out, "chunk {chunk}: last sign of its worker {seconds} s ago")?;
        }
        for (id, why) in failed {
            let id: String = id.chars().take(12).collect();
            writeln!(out, "failed, to be tried again: {id}: {}", printable(why.lines().next().unwrap_or_default()))?;
        }
        if *failed_more > 0 {
            writeln!(out, "failed, to be tried again: {failed_more} more")?;
        }
        Ok(())
    }
}
