//! Loads several images at once, and hands them on in the order of the requests.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Scope};

use image::{Image, ImageError, Request};
use unpack::pipe::Cancel;

use super::notice;
use super::progress::Terminal;

/// An image, or one for each platform.
pub(super) type Loaded = Result<Vec<Image>, ImageError>;

/// The images of a run.
#[derive(Debug)]
pub(super) struct Loading<'r> {
    requests: &'r [Request],
    terminal: Terminal,
    /// Maximum images that are loaded, or loaded and not yet handed on.
    most: NonZeroUsize,
    state: Mutex<LoadingState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct LoadingState {
    /// Index of the next request to load.
    next: usize,
    /// Number of images that were handed on.
    taken: usize,
    ready: BTreeMap<usize, Loaded>,
    /// Cancels the images that are being loaded, by their index.
    cancels: BTreeMap<usize, Arc<Cancel>>,
    is_stopped: bool,
}

impl<'r> Loading<'r> {
    /// Prepares to load images, `most` at once.
    pub(super) fn new(requests: &'r [Request], most: NonZeroUsize, terminal: Terminal) -> Self {
        Self { requests, terminal, most, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The terminal that shows the progress.
    pub(super) const fn terminal(&self) -> &Terminal {
        &self.terminal
    }

    fn state(&self) -> MutexGuard<'_, LoadingState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to load. The threads end when all images are handed on, or when the returned iterator is dropped.
    pub(super) fn begin<'s>(&'s self, scope: &'s Scope<'s, '_>) -> LoadedImages<'s, 'r> {
        for _ in 0..self.most.get().min(self.requests.len()) {
            scope.spawn(move || self.work());
        }
        LoadedImages { loading: self }
    }

    /// Cancels what is being loaded, and begins nothing more.
    pub(super) fn stop(&self) {
        let mut state = self.state();
        state.is_stopped = true;
        state.cancels.values().for_each(|cancel| cancel.cancel());
        drop(state);
        self.changed.notify_all();
    }

    fn work(&self) {
        let _stop = StopOnPanic(self);
        while let Some((index, request, cancel)) = self.claim() {
            let progress = self.terminal.image(&request.text, (index + 1, self.requests.len()));
            let loaded = image::load(request, &progress, &cancel);
            drop(progress);
            let mut state = self.state();
            state.cancels.remove(&index);
            state.ready.insert(index, loaded);
            drop(state);
            self.changed.notify_all();
        }
    }

    /// The next image to load, once there is room for it.
    fn claim(&self) -> Option<(usize, &'r Request, Arc<Cancel>)> {
        let mut state = self.state();
        while !state.is_stopped && state.next < self.requests.len() && state.next >= state.taken + self.most.get() {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        let request = self.requests.get(state.next).filter(|_| !state.is_stopped)?;
        let index = state.next;
        let cancel = Arc::new(Cancel::default());
        state.next += 1;
        state.cancels.insert(index, Arc::clone(&cancel));
        Some((index, request, cancel))
    }
}

/// Stops the run if the thread panics: its image would be waited for without end.
struct StopOnPanic<'l, 'r>(&'l Loading<'r>);

impl Drop for StopOnPanic<'_, '_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.stop();
        }
    }
}

/// The images in the order of the requests.
pub(super) struct LoadedImages<'s, 'r> {
    loading: &'s Loading<'r>,
}

impl<'r> Iterator for LoadedImages<'_, 'r> {
    type Item = (&'r Request, Loaded);

    fn next(&mut self) -> Option<Self::Item> {
        let loading = self.loading;
        let mut state = loading.state();
        let index = state.taken;
        let request = loading.requests.get(index)?;
        let loaded = loop {
            match state.ready.remove(&index) {
                Some(loaded) => break loaded,
                None if state.is_stopped => return None,
                None => state = loading.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        state.taken += 1;
        drop(state);
        loading.changed.notify_all();
        loading.terminal.clear();
        notice(&request.cache);
        Some((request, loaded))
    }
}

impl Drop for LoadedImages<'_, '_> {
    fn drop(&mut self) {
        self.loading.stop();
    }
}
