//! A worker: takes chunks, judges their images, and writes each result once.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::check::Check;
use image::{FailureClass, Request};
use layer::store::lease::{HeldLease, Leases};
use model::{Digest, NoProgress, conceal};
use unpack::pipe::Cancel;

use super::judged::kind;
use super::retried::retried;
use super::{AuditError, AuditItem, AuditRun, ItemResult, Shard};

/// Attempts at an image whose failure may pass, in one worker. The registry's client has tried each request several
/// times by then.
const ATTEMPTS: usize = 3;

/// Workers that may die while they read the same image before it gets a result without them.
const DEATHS: usize = 3;

/// The longest pause of a worker that waits for others.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// A worker of a run.
pub struct Worker<'a> {
    /// The run.
    pub run: &'a AuditRun<'a>,
    /// Judges images.
    pub check: &'a Check<'a>,
    /// Prepares the request for an image.
    pub request: &'a (dyn Fn(&AuditItem) -> Result<Request, String> + Sync),
    /// Name, which no other worker has.
    pub name: String,
    /// The part of the plan to begin with.
    pub shard: Shard,
    /// Length of leases.
    pub lease: Duration,
    /// Time at which the worker stops.
    pub deadline: Option<Instant>,
    /// Stops the worker.
    pub stop: &'a WorkerStop,
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("name", &self.name).field("shard", &self.shard).finish_non_exhaustive()
    }
}

/// Stops a worker: the image being read is given up, and its chunk left to others.
#[derive(Debug, Default)]
pub struct WorkerStop {
    current: Mutex<(bool, Vec<std::sync::Weak<Cancel>>)>,
}

/// What a worker did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorkDone {
    /// Images judged by this worker, whether or not its result was the first.
    pub judged: usize,
    /// Images with a result that differs from this worker's: a defect, or a waiver that has expired since.
    pub differing: Vec<String>,
    /// Failures that may pass, with the names of their images.
    pub failed: Vec<(String, String)>,
    /// True once every image of the plan has a result.
    pub is_complete: bool,
}

/// The state of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChunkEnd {
    Finished,
    /// Images failed in a way that may pass.
    Failed,
    Stopped,
}

impl WorkerStop {
    /// Stops every worker that has this.
    pub fn stop(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        current.0 = true;
        current.1.iter().filter_map(std::sync::Weak::upgrade).for_each(|cancel| cancel.cancel());
    }

    /// Returns true once stopped.
    pub fn is_stopped(&self) -> bool {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).0
    }

    /// A switch for one image.
    fn cancel(&self) -> std::sync::Arc<Cancel> {
        let cancel = std::sync::Arc::<Cancel>::default();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 {
            cancel.cancel();
        }
        current.1.retain(|other| other.strong_count() > 0);
        current.1.push(std::sync::Arc::downgrade(&cancel));
        cancel
    }
}

impl Worker<'_> {
    /// Works until every image has a result, the deadline, or [`WorkerStop::stop`]. Waits for chunks that live workers
    /// hold, to take them over if those die.
    ///
    /// # Errors
    /// The store failed several times, or has something that is not an audit.
    pub fn work(&self) -> Result<WorkDone, AuditError> {
        let folder = self.run.name("lease");
        let leases = Leases::new(self.run.store, &folder, &self.name, self.lease);
        let mut done = WorkDone::default();
        let mut given_up = BTreeSet::new();
        let mut pause = self.lease / 20;
        let own = self.shard.of(&self.run.plan.chunks);
        let others = (own.end..self.run.plan.chunks.len()).chain(0..own.start);
        // The others' chunks from their ends, since their workers begin at the front.
        let order: Vec<usize> = own.clone().chain(others.collect::<Vec<_>>().into_iter().rev()).collect();
        loop {
            let mut finished = self.run.finished()?;
            let mut has_worked = false;
            for chunk in &order {
                if self.must_stop() {
                    return Ok(done);
                }
                if finished.contains(chunk) || given_up.contains(chunk) {
                    continue;
                }
                let Some(held) = retried(self.run.store, || leases.take(&format!("{chunk:05}")))? else { continue };
                let end = self.chunk(&leases, &held, *chunk, &mut done)?;
                has_worked = true;
                match end {
                    ChunkEnd::Finished => drop(finished.insert(*chunk)),
                    ChunkEnd::Failed => drop(given_up.insert(*chunk)),
                    ChunkEnd::Stopped => return Ok(done),
                }
                if !own.contains(chunk) {
                    finished.extend(self.run.finished()?);
                }
            }
            if (0..self.run.plan.chunks.len()).all(|chunk| finished.contains(&chunk)) {
                done.is_complete = true;
                return Ok(done);
            }
            let is_waiting = order.iter().any(|chunk| !finished.contains(chunk) && !given_up.contains(chunk));
            if !is_waiting {
                return Ok(done);
            }
            if !has_worked {
                thread::sleep(pause.min(LONGEST_PAUSE));
                pause = (pause * 3 / 2).min(self.lease / 4);
            }
        }
    }

    fn must_stop(&self) -> bool {
        self.stop.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Judges the images of a chunk that have no result.
    fn chunk(
        &self,
        leases: &Leases<'_>,
        held: &HeldLease,
        chunk: usize,
        done: &mut WorkDone,
    ) -> Result<ChunkEnd, AuditError> {
        let work = || {
            let end = self.images(held, chunk, done);
            let is_needed = !matches!(end, Ok(ChunkEnd::Finished));
            (end, is_needed)
        };
        leases.hold(held, work)
    }

    fn images(&self, held: &HeldLease, chunk: usize, done: &mut WorkDone) -> Result<ChunkEnd, AuditError> {
        let items = self.run.items(chunk)?;
        let mut waiting: Vec<&AuditItem> = if held.is_first() {
            items.iter().collect()
        } else {
            let results = self.run.results(chunk, &items)?;
            items.iter().zip(results).filter(|(_, result)| result.is_none()).map(|(item, _)| item).collect()
        };
        for attempt in 1..=ATTEMPTS {
            let mut again = Vec::new();
            for item in waiting {
                if self.must_stop() || held.is_lost() {
                    return Ok(ChunkEnd::Stopped);
                }
                let is_taken_over = held.is_taken_over && attempt == 1;
                let result = match is_taken_over.then(|| self.deaths(item)).transpose()?.flatten() {
                    Some(result) => result,
                    None => match self.judge(item) {
                        Judged::Result(result) => *result,
                        Judged::Transient(why) if attempt == ATTEMPTS => {
                            self.record_failure(item, &why)?;
                            done.failed.push((item.names.join(", "), why));
                            again.push(item);
                            continue;
                        }
                        Judged::Transient(_) => {
                            again.push(item);
                            continue;
                        }
                        Judged::Stopped => return Ok(ChunkEnd::Stopped),
                    },
                };
                done.judged += 1;
                self.keep(chunk, item, &result, done)?;
            }
            waiting = again;
            if waiting.is_empty() {
                break;
            }
            if attempt < ATTEMPTS {
                thread::sleep(Duration::from_secs(1 << attempt).min(self.lease / RENEWAL_SHARE));
            }
        }
        if !waiting.is_empty() {
            return Ok(ChunkEnd::Failed);
        }
        let marker = self.run.name(&format!("finished/{chunk:05}"));
        retried(self.run.store, || self.run.store.create(&marker, self.name.clone().into_bytes()))?;
        Ok(ChunkEnd::Finished)
    }

    /// Records an attempt at an image of a chunk whose worker died: perhaps because of this image. Returns a result if
    /// several workers died while they read it.
    fn deaths(&self, item: &AuditItem) -> Result<Option<ItemResult>, AuditError> {
        let folder = self.run.name(&format!("tried/{}", item.id));
        let tried = retried(self.run.store, || self.run.store.list(&folder))?.len();
        if tried >= DEATHS {
            let why = format!("{tried} workers ended while they read this image");
            return Ok(Some(ItemResult::unavailable(&item.id, "crashed", why)));
        }
        let name = format!("{folder}/{}", tried + 1);
        retried(self.run.store, || self.run.store.create(&name, self.name.clone().into_bytes()))?;
        Ok(None)
    }

    fn record_failure(&self, item: &AuditItem, why: &str) -> Result<(), AuditError> {
        let name = self.run.name(&format!("failed/{}/{}", item.id, self.name));
        retried(self.run.store, || self.run.store.write(&name, why.as_bytes().to_vec()))
    }

    /// Loads and judges an image.
    fn judge(&self, item: &AuditItem) -> Judged {
        let request = match (self.request)(item) {
            Ok(request) => request,
            Err(why) => return Judged::unavailable(item, "invalid", why),
        };
        let cancel = self.stop.cancel();
        let load = || -> Result<ItemResult, image::ImageError> {
            let images = image::load(&request, &NoProgress, &cancel)?;
            let image = images
                .iter()
                .find(|image| is_planned(item, image.summary.manifest.as_ref(), image.summary.config.as_ref()));
            Ok(if let Some(image) = image {
                ItemResult::of(&item.id, image, &self.check.run(image))
            } else {
                let why = format!("{} is another image than when the run was planned", item.reference);
                ItemResult::unavailable(&item.id, "changed", why)
            })
        };
        match catch_unwind(AssertUnwindSafe(load)) {
            Ok(Ok(result)) => Judged::Result(Box::new(result)),
            Ok(Err(_)) if self.stop.is_stopped() => Judged::Stopped,
            Ok(Err(error)) => match kind(error.class()) {
                Some(kind) => Judged::unavailable(item, kind, conceal(&error.to_string()).into_owned()),
                None if error.class() == FailureClass::Cancelled => Judged::Stopped,
                None => Judged::Transient(conceal(&error.to_string()).into_owned()),
            },
            Err(_) => {
                Judged::unavailable(item, "crashed", "reading this image failed: this is a defect of ncclcheck".into())
            }
        }
    }

    /// Writes a result, unless the image has one.
    fn keep(&self, chunk: usize, item: &AuditItem, result: &ItemResult, done: &mut WorkDone) -> Result<(), AuditError> {
        let bytes = serde_json::to_vec(result).map_err(|error| AuditError::Usage(error.to_string()))?;
        let name = self.run.result_name(chunk, item);
        if !retried(self.run.store, || self.run.store.create(&name, bytes.clone()))? {
            let found = self.run.results(chunk, std::slice::from_ref(item))?.into_iter().flatten().next();
            if found.is_some_and(|found| found != *result) {
                done.differing.push(item.names.join(", "));
            }
        }
        Ok(())
    }
}

/// Pauses between attempts are at most this part of a lease.
const RENEWAL_SHARE: u32 = 2;

/// The outcome of an attempt at an image.
enum Judged {
    Result(Box<ItemResult>),
    Transient(String),
    Stopped,
}

impl Judged {
    fn unavailable(item: &AuditItem, kind: &str, why: String) -> Self {
        Self::Result(Box::new(ItemResult::unavailable(&item.id, kind, why)))
    }
}

/// Returns true if an image has the digests that the plan says. An engine may not know the manifest's.
fn is_planned(item: &AuditItem, manifest: Option<&Digest>, config: Option<&Digest>) -> bool {
    match (item.manifest.as_ref().zip(manifest), item.config.as_ref().zip(config)) {
        (Some((planned, found)), _) | (None, Some((planned, found))) => planned == found,
        (None, None) => true,
    }
}
