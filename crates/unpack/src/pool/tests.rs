use std::sync::mpsc::channel;
use std::thread::{self, ThreadId};

use super::*;

fn pool(threads: usize) -> Pool {
    Pool::new(NonZeroUsize::new(threads).unwrap())
}

fn here() -> impl FnOnce(&DecoderBuffers) -> ThreadId + Send + 'static {
    |_| thread::current().id()
}

#[test]
fn with_few_threads_who_reads_is_one_of_them() {
    assert_eq!([1, 2, 3, 4, 8].map(|threads| pool(threads).threads()), [0, 1, 2, 4, 8]);
    let pool = pool(2);
    let first = pool.run_ahead(here());
    let second = pool.run_ahead(here());
    // A thread takes the second job and leaves the first.
    assert_ne!(second.done.recv().unwrap(), thread::current().id());
    assert_eq!(first.poll(), Poll::Pending);
    assert_eq!(first.wait(), Some(thread::current().id()));
}

#[test]
fn only_what_is_less_work_where_it_is_read_is_left() {
    let pool = pool(2);
    assert_ne!(pool.run_first(here()).done.recv().unwrap(), thread::current().id());
    assert_ne!(pool.run(here()).done.recv().unwrap(), thread::current().id());
    let left = pool.run_ahead(here());
    assert_ne!(pool.run(here()).done.recv().unwrap(), thread::current().id());
    assert_eq!(left.poll(), Poll::Pending);
}

#[test]
fn a_job_is_taken_back_until_somebody_has_begun_it() {
    let pool = pool(2);
    let left = pool.run_ahead(here());
    let told = channel();
    let tell = channel();
    let begun = pool.run_ahead(move |_| {
        told.0.send(()).unwrap();
        tell.1.recv().unwrap();
    });
    told.1.recv().unwrap();
    assert!(!begun.take_back());
    assert!(left.take_back());
    tell.0.send(()).unwrap();
    assert_eq!(begun.wait(), Some(()));
    assert_eq!(left.poll(), Poll::Ready(None));
}

#[test]
fn who_waits_may_help() {
    let pool = pool(2);
    let told = channel();
    let tell = channel();
    let begun = pool.run(move |_| {
        told.0.send(()).unwrap();
        tell.1.recv().unwrap();
        thread::current().id()
    });
    told.1.recv().unwrap();
    // The only thread waits for a job that only this thread can run.
    let next = pool.run(move |_| {
        tell.0.send(()).unwrap();
        thread::current().id()
    });
    assert_ne!(begun.wait_and_help(), Some(thread::current().id()));
    assert_eq!(next.wait(), Some(thread::current().id()));
}

#[test]
fn what_nobody_waits_for_is_not_begun() {
    let pool = pool(1);
    drop(pool.run(here()));
    drop(pool.run_ahead(here()));
    drop(pool.run_first(here()));
    assert!(pool.shared.jobs().first.is_empty() && pool.shared.jobs().ahead.is_empty());
}

#[test]
fn a_job_that_panics_has_no_answer() {
    let panics = |_: &DecoderBuffers| -> u8 { panic!("as this test wants it") };
    for pool in [pool(1), pool(4)] {
        assert_eq!(pool.run(panics).wait(), None);
        assert!(pool.run(here()).wait().is_some(), "whoever ran it goes on");
    }
}

#[test]
fn there_is_leave_for_two_jobs_a_thread() {
    let pool = pool(3);
    let permits: Vec<_> = std::iter::from_fn(|| pool.permit()).collect();
    assert_eq!(permits.len(), 6);
    drop(permits);
    assert!(pool.permit().is_some());
}
