//! Threads that decompress ahead of those who read, for all layers of a run together, and the buffers that they fill.

mod shelf;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

pub(crate) use shelf::{Lent, Shelf};

type Job = Box<dyn FnOnce() + Send>;

/// Threads that decompress. When it is dropped they end.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

/// What is decompressed into.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(crate) symbols: Arc<Shelf<u16>>,
    pub(crate) bytes: Arc<Shelf<u8>>,
}

#[derive(Default)]
struct Shared {
    buffers: Buffers,
    jobs: Mutex<Jobs>,
    more: Condvar,
    /// Jobs that may be begun.
    permits: AtomicUsize,
}

#[derive(Default)]
struct Jobs {
    waiting: VecDeque<Job>,
    is_over: bool,
}

/// Leave to hold what one job decompresses.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Shared>);

impl Pool {
    /// So many threads, and for each of them leave for two jobs whose bytes are made, or wait to be read.
    pub fn new(threads: NonZeroUsize) -> Self {
        let shared = Arc::new(Shared::default());
        let run = |_| {
            let shared = Arc::clone(&shared);
            let work = move || {
                while let Some(job) = shared.next() {
                    // A job that panics has no answer, and who waits for it does without.
                    let _ = catch_unwind(AssertUnwindSafe(job));
                }
            };
            // Where the system has no more threads, there are fewer, or none.
            thread::Builder::new().spawn(work).ok()
        };
        let threads: Vec<_> = (0..threads.get()).map_while(run).collect();
        shared.permits.store(2 * threads.len(), Ordering::Relaxed);
        Self { shared, threads }
    }

    /// How many threads there are.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// Leave for one more job, if there is any.
    pub(crate) fn permit(&self) -> Option<Permit> {
        let taken = self.shared.permits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok().then(|| Permit(Arc::clone(&self.shared)))
    }

    fn with_answer<T: Send + 'static>(&self, work: impl FnOnce(&Buffers) -> T + Send + 'static) -> (Job, Receiver<T>) {
        let (sender, answer) = channel();
        let shared = Arc::clone(&self.shared);
        // Who asked may have gone.
        (Box::new(move || drop(sender.send(work(&shared.buffers)))), answer)
    }

    /// Runs it when all that waits has begun.
    pub(crate) fn run<T: Send + 'static>(&self, work: impl FnOnce(&Buffers) -> T + Send + 'static) -> Receiver<T> {
        let (job, answer) = self.with_answer(work);
        self.shared.jobs().waiting.push_back(job);
        self.shared.more.notify_one();
        answer
    }

    /// Runs it before all that waits: somebody needs it now.
    pub(crate) fn run_first<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Buffers) -> T + Send + 'static,
    ) -> Receiver<T> {
        let (job, answer) = self.with_answer(work);
        self.shared.jobs().waiting.push_front(job);
        self.shared.more.notify_one();
        answer
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut jobs = self.shared.jobs();
        jobs.is_over = true;
        jobs.waiting.clear();
        drop(jobs);
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            // It cannot have panicked.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job; nothing when the pool is dropped.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs();
        loop {
            if jobs.is_over {
                return None;
            }
            if let Some(job) = jobs.waiting.pop_front() {
                return Some(job);
            }
            jobs = self.more.wait(jobs).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("permits", &self.permits).finish_non_exhaustive()
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.permits.fetch_add(1, Ordering::Relaxed);
    }
}
