//! Progress on standard error: bars on a terminal, periodic lines elsewhere.

use std::fmt;
use std::io::{self, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use model::{Meter, Progress};

use super::verbosity::Verbosity;

/// Delay before the first line, and between lines.
const PAUSE: Duration = Duration::from_secs(5);

/// A row of a table, and one whose seconds count.
const ROW: &str = "  {prefix}  {msg}";
const RUNNING_ROW: &str = "  {prefix}  {msg:8} {seconds}";

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
            Verbosity::Bars => ProgressDrawTarget::stderr(),
            Verbosity::Lines | Verbosity::Quiet => ProgressDrawTarget::hidden(),
        };
        Self::with(verbosity, target)
    }

    /// The amount of output.
    pub(super) const fn verbosity(&self) -> Verbosity {
        self.verbosity
    }

    /// Draws bars on a terminal in memory.
    #[cfg(test)]
    pub(super) fn in_memory(screen: &indicatif::InMemoryTerm) -> Self {
        Self::with(Verbosity::Bars, ProgressDrawTarget::term_like(Box::new(screen.clone())))
    }

    fn with(verbosity: Verbosity, target: ProgressDrawTarget) -> Self {
        Self {
            verbosity,
            bars: MultiProgress::with_draw_target(target),
            drawing: Arc::default(),
            last: Arc::new(Mutex::new(Instant::now())),
        }
    }

    /// Displays the progress of one image, given its number, from 1, and the number of images.
    pub(super) fn image(&self, reference: &str, (number, count): (usize, usize)) -> ImageProgress {
        let reference = model::printable(reference).into_owned();
        let position = if count > 1 { format!("{number} of {count}") } else { String::new() };
        let heading = (self.verbosity == Verbosity::Bars).then(|| self.heading(&position, &reference));
        let last = Mutex::new(heading.as_ref().map(|heading| heading.bar.clone()));
        ImageProgress { terminal: self.clone(), reference, position, last, _heading: heading }
    }

    /// The line above the bars of an image.
    fn heading(&self, position: &str, reference: &str) -> Bar {
        let gap = if position.is_empty() { "" } else { "  " };
        let bar = self.bar(ProgressBar::no_length(), "{wide_msg}", format!("{position}{gap}{reference}"));
        bar.bar.tick();
        bar
    }

    fn bar(&self, bar: ProgressBar, template: &str, message: String) -> Bar {
        self.bar_below(None, bar, template, message)
    }

    /// Adds a bar below another, or at the end.
    fn bar_below(&self, upper: Option<&ProgressBar>, bar: ProgressBar, template: &str, message: String) -> Bar {
        let _guard = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        let bar = match upper {
            Some(upper) => self.bars.insert_after(upper, bar),
            None => self.bars.add(bar),
        };
        // The templates are constants, so that parsing cannot fail.
        bar.set_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(message);
        Bar { bar, drawing: Arc::clone(&self.drawing) }
    }

    /// A line of a table: a name and a state.
    pub(super) fn row(&self, name: &str, state: &str) -> Bar {
        let bar = self.bar(ProgressBar::no_length(), ROW, state.to_owned());
        bar.bar.set_prefix(name.to_owned());
        bar.bar.tick();
        bar
    }

    /// Writes a line above the bars.
    pub(super) fn say(&self, line: &str) {
        // A closed terminal needs no lines.
        let _ = self.bars.suspend(|| writeln!(io::stderr(), "{line}"));
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

/// Displays the progress of one image, until it is dropped.
#[derive(Debug)]
pub(super) struct ImageProgress {
    terminal: Terminal,
    reference: String,
    /// The image's place in the run, `12 of 50`; empty for the only image.
    position: String,
    /// The lowest of its lines, cleared or not: images are loaded at the same time, and each keeps its lines together.
    last: Mutex<Option<ProgressBar>>,
    /// Not read: dropping it clears the line.
    _heading: Option<Bar>,
}

impl Progress for ImageProgress {
    fn begin(&self, what: &str, total: Option<u64>) -> Box<dyn Meter> {
        match self.terminal.verbosity {
            Verbosity::Quiet => Box::new(model::NoProgress),
            Verbosity::Lines => Box::new(ProgressLines {
                what: self.line(what),
                total,
                done: AtomicU64::new(0),
                begun: Instant::now(),
                last: Arc::clone(&self.terminal.last),
            }),
            Verbosity::Bars => {
                let bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
                let template = match total {
                    Some(_) => "  {msg:16!} {wide_bar} {bytes:>10} of {total_bytes:10} {bytes_per_sec:12} {eta:>3}",
                    None => "  {msg:16!} {spinner} {bytes:>10} {bytes_per_sec:12}",
                };
                // The digest in parentheses would leave no room for the bar.
                let short = what.split(" (").next().unwrap_or(what);
                let message = if self.is_whole(what) { "whole image" } else { short };
                let message = model::printable(message).into_owned();
                let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
                let bar = self.terminal.bar_below(last.as_ref(), bar, template, message);
                *last = Some(bar.bar.clone());
                Box::new(bar)
            }
        }
    }
}

impl ImageProgress {
    /// Returns true if a task is the image itself, not a part of it.
    fn is_whole(&self, what: &str) -> bool {
        self.reference.ends_with(what)
    }

    /// The beginning of a line on a task.
    fn line(&self, what: &str) -> String {
        let part = if self.is_whole(what) { "" } else { what };
        let parts = [&*self.position, &*self.reference, part];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
    }
}

/// A line on the terminal, until it is dropped.
pub(super) struct Bar {
    bar: ProgressBar,
    drawing: Arc<Mutex<()>>,
}

impl fmt::Debug for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bar({})", self.bar.position())
    }
}

impl Bar {
    /// Shows a state and the seconds since now, which it updates.
    pub(super) fn run(&self, state: &str, update: Duration) {
        let _guard = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        let style = ProgressStyle::with_template(RUNNING_ROW).unwrap_or_else(|_| ProgressStyle::default_bar());
        let seconds = |bar: &ProgressState, text: &mut dyn fmt::Write| {
            // A row without its seconds is still a row.
            let _ = write!(text, "{} s", bar.elapsed().as_secs());
        };
        self.bar.set_style(style.with_key("seconds", seconds));
        self.bar.set_message(state.to_owned());
        self.bar.reset_elapsed();
        self.bar.enable_steady_tick(update);
    }

    /// Shows a last state.
    pub(super) fn stop(&self, state: &str) {
        let _guard = self.drawing.lock().unwrap_or_else(PoisonError::into_inner);
        self.bar.disable_steady_tick();
        self.bar.set_style(ProgressStyle::with_template(ROW).unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar.set_message(state.to_owned());
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
        let what = model::printable(&self.what);
        // A failure to display progress is not an error.
        let _ = writeln!(io::stderr(), "{what}: {}{of}, {rate}/s", size(done));
    }
}

fn size(bytes: u64) -> indicatif::HumanBytes {
    indicatif::HumanBytes(bytes)
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::*;

    /// The screen with three bars of the second of two images, and the screen after they are gone.
    fn screens(width: u16) -> (String, String) {
        let screen = InMemoryTerm::new(24, width);
        let terminal = Terminal::in_memory(&screen);
        let image = terminal.image("docker://registry.example/ml/torch:2.9.0", (2, 2));
        let bars: Vec<_> = (1..=3)
            .map(|number| image.begin(&format!("layer {number} of 3 (sha256:222222222222)"), Some(400_000_000)))
            .collect();
        for bar in &bars {
            bar.add(100_000_000);
        }
        let during = screen.contents();
        drop((bars, image));
        (during, screen.contents())
    }

    #[test]
    fn each_bar_has_its_own_line() {
        for width in [80, 100, 120] {
            let (during, after) = screens(width);
            let lines: Vec<_> = during.lines().collect();
            let [head, bars @ ..] = &*lines else { panic!("no lines at {width} columns") };
            assert_eq!(*head, "2 of 2  docker://registry.example/ml/torch:2.9.0", "{during}");
            assert_eq!(bars.len(), 3, "{during}");
            for (bar, number) in bars.iter().zip(1..) {
                assert!(bar.starts_with(&format!("  layer {number} of 3 ")), "{during}");
                assert!(bar.contains(" 95.37 MiB of 381.47 MiB"), "{during}");
                assert!(bar.len() <= usize::from(width) * '█'.len_utf8(), "{during}");
            }
            assert_eq!(after, "");
        }
    }
}
