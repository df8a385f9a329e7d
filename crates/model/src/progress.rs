//! Progress reporting. The caller passes a sink; there is no global one.

use std::fmt;

/// Displays the progress of a run.
pub trait Progress: Sync + fmt::Debug {
    /// Begins a task, with its description for users and its size in bytes, if known.
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Meter>;
}

/// Displays the progress of one task, until it is dropped.
pub trait Meter: Send + Sync + fmt::Debug {
    /// Adds to the number of processed bytes.
    fn add(&self, bytes: u64);
}

/// Displays nothing.
#[derive(Clone, Copy, Debug)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _what: &str, _total: Option<u64>) -> Box<dyn Meter> {
        Box::new(Self)
    }
}

impl Meter for NoProgress {
    fn add(&self, _bytes: u64) {}
}
