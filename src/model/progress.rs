//! Who wants to know how far we are. A sink that is handed down, never a global.

use std::fmt;

/// Shows the progress of a run.
pub trait Progress: Sync + fmt::Debug {
    /// A piece of work begins: `what` for people, and how many bytes it takes where that is known.
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Meter>;
}

/// Shows the progress of one piece of work, until it is dropped.
pub trait Meter: Send + Sync + fmt::Debug {
    /// So many bytes more are done.
    fn add(&self, bytes: u64);
}

/// Shows nothing.
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
