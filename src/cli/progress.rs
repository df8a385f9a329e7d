//! Progress on standard error: bars on a terminal, periodic lines elsewhere.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::model::{Meter, Progress};

use super::terminal_margin::WithMargin;
use super::verbosity::Verbosity;

/// Delay before the first line, and between lines.
const PAUSE: Duration = Duration::from_secs(5);

/// Displays progress.
#[derive(Clone, Debug)]
pub(super) struct Terminal {
    verbosity: Verbosity,
    bars: MultiProgress,
    /// Locked while a bar is drawn.
    drawing: Arc<Mutex<()>>,
    /// Time of the last line.
    last: Arc<Mutex<Instant>>,
}

impl Terminal {
    pub(super) fn new(verbosity: Verbosity) -> Self {
        let target = match verbosity {
            Verbosity::Bars => ProgressDrawTarget::term_like(Box::new(WithMargin(Term::buffered_stderr()))),
            Verbosity::Lines | Verbosity::Quiet => ProgressDrawTarget::hidden(),
        };
        Self {
            verbosity,
            bars: MultiProgress::with_draw_target(target),
            drawing: Arc::default(),
            last: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Clears the bars.
    pub(super) fn clear(&self) {
        // A closed terminal needs no clearing.
        let _ = self.bars.clear();
    }

    /// Clears the bars and prevents other threads from drawing while the guard is held.
    pub(super) fn close(&self) -> MutexGuard<'_, ()> {
        let guard = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        self.clear();
        guard
    }
}

impl Progress for Terminal {
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Meter> {
        match self.verbosity {
            Verbosity::Quiet => Box::new(crate::model::NoProgress),
            Verbosity::Lines => Box::new(ProgressLines {
                what: what.to_owned(),
                total,
                done: AtomicU64::new(0),
                begun: Instant::now(),
                last: Arc::clone(&self.last),
            }),
            Verbosity::Bars => {
                let bar = self.bars.add(total.map_or_else(ProgressBar::no_length, ProgressBar::new));
                let template = match total {
                    Some(_) => "{msg:20!} {wide_bar} {bytes:>10} of {total_bytes:10} {bytes_per_sec:12} {eta:>3}",
                    None => "{msg:20!} {spinner} {bytes:>10} {bytes_per_sec:12}",
                };
                // The templates are constants, so that parsing cannot fail.
                bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
                // The digest in parentheses would leave no room for the bar.
                let short = what.split(" (").next().unwrap_or(what);
                bar.set_message(crate::model::printable(short).into_owned());
                Box::new(Bar { bar, drawing: Arc::clone(&self.drawing) })
            }
        }
    }
}

struct Bar {
    bar: ProgressBar,
    drawing: Arc<Mutex<()>>,
}

impl fmt::Debug for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bar({})", self.bar.position())
    }
}

impl Meter for Bar {
    fn add(&self, bytes: u64) {
        let _guard = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.inc(bytes);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        let _guard = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.finish_and_clear();
    }
}

#[derive(Debug)]
struct ProgressLines {
    what: String,
    total: Option<u64>,
    done: AtomicU64,
    begun: Instant,
    last: Arc<Mutex<Instant>>,
}

impl Meter for ProgressLines {
    fn add(&self, bytes: u64) {
        let done = self.done.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if last.elapsed() < PAUSE {
            return;
        }
        *last = Instant::now();
        let of = self.total.map(|total| format!(" of {}", size(total))).unwrap_or_default();
        let rate =
            size(u64::try_from(u128::from(done) * 1000 / self.begun.elapsed().as_millis().max(1)).unwrap_or(u64::MAX));
        let what = crate::model::printable(&self.what);
        // A failure to display progress is not an error.
        let _ = writeln!(io::stderr(), "{what}: {}{of}, {rate}/s", size(done));
    }
}

fn size(bytes: u64) -> indicatif::HumanBytes {
    indicatif::HumanBytes(bytes)
}
