//! Passes the files of a tree to the extractors, on several threads: decompression and search take longer than reading.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use model::{Entry, Found, Gap};

use super::super::extract::look;
use super::super::{EXTRACTORS, ScanError, text};
use super::{Tree, TreeFiles, TreeJobs};

/// Bytes of small files that one thread inspects in a row. They share blocks of the medium, which are kept for a while.
const BATCH: u64 = 4 << 20;

/// Maximum number of threads: each may keep the tables of a library.
const MOST: usize = 8;

/// A regular file that is not empty.
pub(super) struct ListedFile<N> {
    /// Index of its entry.
    pub(super) index: usize,
    pub(super) size: u64,
    pub(super) place: (u32, u64),
    pub(super) node: N,
}

/// Answers of the extractors, by the index of the entry.
type TreeAnswers = BTreeMap<usize, Vec<Result<Found, Gap>>>;

/// Inspects files. The answers do not depend on the number of threads.
pub(super) fn inspect<T: Tree>(
    tree: &T,
    files: Vec<ListedFile<T::Node>>,
    entries: &[Entry],
    jobs: TreeJobs<'_>,
) -> Result<TreeAnswers, ScanError> {
    let batches = batches(files);
    let threads = jobs.threads.get().min(MOST).min(batches.len());
    let waiting = Mutex::new(batches);
    let texts = AtomicU64::new(0);
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop();
    let work = |mut readers: T::Files| {
        let mut answers = TreeAnswers::new();
        while let Some(batch) = next() {
            for file in batch {
                if jobs.cancel.is_cancelled() {
                    return Err(ScanError::Read(io::Error::other("cancelled")));
                }
                let Some(entry) = entries.get(file.index) else { continue };
                let looked =
                    readers.open(&file.node).and_then(|mut open| look(&mut open, EXTRACTORS, entry, jobs.limits));
                let found = looked.unwrap_or_else(|error| {
                    vec![Err(Gap::new(format!("{}: {error}", entry.path)).settled_by(T::ADVICE))]
                });
                let own = text::bytes(&found, entry.size);
                text::within(texts.fetch_add(own, Ordering::Relaxed).saturating_add(own), jobs.limits)
                    .map_err(|over| ScanError::Limit(over.advice()))?;
                if !found.is_empty() {
                    answers.insert(file.index, found);
                }
                jobs.meter.add(entry.size);
            }
        }
        Ok(answers)
    };
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = (0..threads)
            .map(|_| {
                let files = tree.files();
                scope.spawn(move || work(files))
            })
            .collect();
        let mut all = TreeAnswers::new();
        for thread in running {
            all.append(&mut thread.join().map_err(|_panic| ScanError::Panicked)??);
        }
        Ok(all)
    })
}

/// Groups small files that lie close together. The largest batch comes last and is inspected first, because it
/// determines the total time.
fn batches<N>(mut files: Vec<ListedFile<N>>) -> Vec<Vec<ListedFile<N>>> {
    files.sort_by_key(|file| file.place);
    let mut batches = Vec::new();
    let mut small = Vec::new();
    let mut sum = 0;
    for file in files {
        if file.size >= BATCH {
            batches.push((file.size, vec![file]));
            continue;
        }
        sum += file.size;
        small.push(file);
        if sum >= BATCH {
            batches.push((std::mem::take(&mut sum), std::mem::take(&mut small)));
        }
    }
    batches.push((sum, small));
    batches.sort_by_key(|(size, _)| *size);
    batches.into_iter().map(|(_, batch)| batch).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_are_grouped_by_their_place_and_the_largest_batch_comes_first() {
        let file = |(index, size, place)| ListedFile { index, size, place: (place, 0), node: () };
        let files =
            [(0, BATCH, 9), (1, 5, 8), (2, BATCH - 1, 1), (3, 6, 2), (4, 7, 7), (5, 3 * BATCH, 0), (6, 8, 6)].map(file);
        let mut batches: Vec<Vec<usize>> =
            batches(files.into()).iter().map(|batch| batch.iter().map(|file| file.index).collect()).collect();
        batches.reverse();
        assert_eq!(batches, [vec![5], vec![2, 3], vec![0], vec![6, 4, 1]]);
    }
}
