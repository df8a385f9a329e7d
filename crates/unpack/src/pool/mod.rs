//! Threads that decode ahead of the readers of any number of streams, and the buffers that they fill.

mod buffers;

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::thread::{self, JoinHandle};

pub(crate) use buffers::{BufferPool, PooledBuf};

/// Below this many threads the reader counts as one of them: it decodes in order, which is less work than decoding ahead. That
/// takes a fifth less time on two processors, an eighth less on three, and the same time on four. On more it is slower, because
/// the results of the other threads occupy the reader.
const MANY: usize = 4;

/// Threads that decode, for any number of streams at once. They end when the pool is dropped.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// True if the reader decodes as well.
    is_small: bool,
}

/// The buffers that jobs fill.
#[derive(Debug, Default)]
pub(crate) struct DecoderBuffers {
    pub(crate) symbols: Arc<BufferPool<u16>>,
    pub(crate) bytes: Arc<BufferPool<u8>>,
}

#[derive(Default)]
struct Shared {
    buffers: DecoderBuffers,
    jobs: Mutex<Jobs>,
    more: Condvar,
    /// Number of permits left.
    permits: AtomicUsize,
}

/// Jobs that have not started.
#[derive(Default)]
struct Jobs {
    /// Jobs that a reader waits for.
    first: VecDeque<Job>,
    /// Jobs that are needed later, the earliest first.
    ahead: VecDeque<Job>,
    /// Number of all jobs so far.
    added: u64,
    is_over: bool,
}

struct Job {
    number: u64,
    /// True if threads leave the job to the reader while it is the next one.
    is_left: bool,
    work: Box<dyn FnOnce(&DecoderBuffers) + Send>,
}

impl Jobs {
    /// The next job for a thread.
    fn next(&mut self) -> Option<Job> {
        self.first.pop_front().or_else(|| {
            let left = self.ahead.front()?.is_left;
            self.ahead.remove(usize::from(left))
        })
    }

    /// Takes the job out of the queue, if it has not started.
    fn take(&mut self, number: u64) -> Option<Job> {
        [&mut self.first, &mut self.ahead].into_iter().find_map(|jobs| {
            let at = jobs.iter().position(|job| job.number == number)?;
            jobs.remove(at)
        })
    }
}

/// A submitted job and its result. Dropping the handle cancels the job, unless it has started.
#[derive(Debug)]
pub(crate) struct JobHandle<T> {
    done: Receiver<T>,
    job: u64,
    shared: Arc<Shared>,
}

impl<T> JobHandle<T> {
    /// Waits for the result; runs the job on this thread if it has not started. `None` if the job panicked.
    pub(crate) fn wait(&self) -> Option<T> {
        let job = self.shared.jobs().take(self.job);
        if let Some(job) = job {
            self.shared.run(job);
        }
        self.done.recv().ok()
    }

    /// Like [`wait`](Self::wait), but runs other jobs while another thread runs this one, for content that is read faster than it
    /// is decoded.
    pub(crate) fn wait_and_help(&self) -> Option<T> {
        loop {
            if let Poll::Ready(answer) = self.poll() {
                return answer;
            }
            let mut jobs = self.shared.jobs();
            let Some(job) = jobs.take(self.job).or_else(|| jobs.next()) else { break };
            drop(jobs);
            self.shared.run(job);
        }
        self.done.recv().ok()
    }

    /// The result, if the job is done.
    pub(crate) fn poll(&self) -> Poll<Option<T>> {
        match self.done.try_recv() {
            Ok(answer) => Poll::Ready(Some(answer)),
            Err(TryRecvError::Empty) => Poll::Pending,
            Err(TryRecvError::Disconnected) => Poll::Ready(None),
        }
    }

    /// Cancels the job; `false` if it has started.
    pub(crate) fn take_back(&self) -> bool {
        self.shared.jobs().take(self.job).is_some()
    }
}

impl<T> Drop for JobHandle<T> {
    fn drop(&mut self) {
        self.take_back();
    }
}

/// A permit to hold the content that one job decodes.
#[derive(Debug)]
pub(crate) struct Permit(Arc<Shared>);

impl Pool {
    /// Creates a pool of `threads` threads, usually one per processor. With fewer than four, the reader of a stream decodes as
    /// well and counts as one of them. Per thread, at most two jobs are running or have a result that waits to be read.
    pub fn new(threads: NonZeroUsize) -> Self {
        let is_small = threads.get() < MANY;
        let shared = Arc::new(Shared { permits: AtomicUsize::new(2 * threads.get()), ..Shared::default() });
        let run = |_| {
            let shared = Arc::clone(&shared);
            let work = move || {
                while let Some(job) = shared.next() {
                    shared.run(job);
                }
            };
            // If the system cannot create a thread, the pool has fewer or none: readers run the jobs that no thread runs.
            thread::Builder::new().spawn(work).ok()
        };
        let threads = (0..threads.get() - usize::from(is_small)).map_while(run).collect();
        Self { shared, threads, is_small }
    }

    /// Number of threads, without the readers.
    pub(crate) fn threads(&self) -> usize {
        self.threads.len()
    }

    /// A permit for one more job, if one is left.
    pub(crate) fn permit(&self) -> Option<Permit> {
        let taken = self.shared.permits.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        taken.is_ok().then(|| Permit(Arc::clone(&self.shared)))
    }

    /// Submits a job that starts after all jobs submitted before.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DecoderBuffers) -> T + Send + 'static,
    ) -> JobHandle<T> {
        self.add(false, work, |jobs| &mut jobs.ahead)
    }

    /// Submits a job that would be less work for the reader. With few threads, the next such job is left to the reader.
    pub(crate) fn run_ahead<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DecoderBuffers) -> T + Send + 'static,
    ) -> JobHandle<T> {
        self.add(self.is_small, work, |jobs| &mut jobs.ahead)
    }

    /// Submits a job that a reader waits for, which starts before all others.
    pub(crate) fn run_first<T: Send + 'static>(
        &self,
        work: impl FnOnce(&DecoderBuffers) -> T + Send + 'static,
    ) -> JobHandle<T> {
        self.add(false, work, |jobs| &mut jobs.first)
    }

    fn add<T: Send + 'static>(
        &self,
        is_left: bool,
        work: impl FnOnce(&DecoderBuffers) -> T + Send + 'static,
        to: impl FnOnce(&mut Jobs) -> &mut VecDeque<Job>,
    ) -> JobHandle<T> {
        let (sender, done) = channel();
        // The handle may be dropped.
        let work = Box::new(move |buffers: &_| drop(sender.send(work(buffers))));
        let mut jobs = self.shared.jobs();
        let number = jobs.added;
        jobs.added += 1;
        to(&mut jobs).push_back(Job { number, is_left, work });
        drop(jobs);
        self.shared.more.notify_one();
        JobHandle { done, job: number, shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let mut jobs = self.shared.jobs();
        jobs.is_over = true;
        jobs.first.clear();
        jobs.ahead.clear();
        drop(jobs);
        self.shared.more.notify_all();
        for thread in self.threads.drain(..) {
            // Threads catch panics of jobs, so they do not panic.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, job: Job) {
        // A job that panics drops its sender, which the handle detects.
        let _ = catch_unwind(AssertUnwindSafe(|| (job.work)(&self.buffers)));
    }

    /// Waits for the next job for a thread; `None` when the pool is dropped.
    fn next(&self) -> Option<Job> {
        let mut jobs = self.jobs();
        loop {
            if jobs.is_over {
                return None;
            }
            if let Some(job) = jobs.next() {
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

#[cfg(test)]
mod tests;
