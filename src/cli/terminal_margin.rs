//! A terminal with a margin at the end of its lines. A bar fills its line and leaves the cursor at the end, where an
//! echoed `^C` would wrap to another line, which would then be cleared instead of the bar.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};

use indicatif::TermLike;
use unicode_width::UnicodeWidthChar as _;

/// Columns for an echoed `^C` and the cursor.
const MARGIN: u16 = 3;

/// `indicatif` writes no line breaks between bars: it pads each bar to the width and relies on the terminal to wrap.
/// The real terminal wraps only after the margin, so this one writes the breaks.
#[derive(Debug)]
pub(super) struct WithMargin<T> {
    terminal: T,
    /// Column of the cursor.
    column: AtomicUsize,
}

impl<T> WithMargin<T> {
    pub(super) const fn new(terminal: T) -> Self {
        Self { terminal, column: AtomicUsize::new(0) }
    }
}

/// Breaks a text that starts at `column` into lines of `width` columns. Returns the text and the column after it.
fn wrap(text: &str, column: usize, width: usize) -> (String, usize) {
    let mut wrapped = String::with_capacity(text.len());
    let mut column = column;
    for character in text.chars() {
        let columns = character.width().unwrap_or_default();
        if columns > 0 && column + columns > width {
            wrapped.push_str("\r\n");
            column = 0;
        }
        column = if matches!(character, '\r' | '\n') { 0 } else { column + columns };
        wrapped.push(character);
    }
    (wrapped, column)
}

impl<T: TermLike> TermLike for WithMargin<T> {
    fn width(&self) -> u16 {
        self.terminal.width().saturating_sub(MARGIN)
    }

    fn height(&self) -> u16 {
        self.terminal.height()
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.terminal.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.terminal.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.terminal.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.terminal.move_cursor_left(columns)
    }

    fn write_line(&self, line: &str) -> io::Result<()> {
        self.column.store(0, Ordering::Relaxed);
        self.terminal.write_line(line)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        // All writes come from the thread that holds indicatif's lock.
        let (wrapped, column) = wrap(text, self.column.load(Ordering::Relaxed), usize::from(self.width()));
        self.column.store(column, Ordering::Relaxed);
        self.terminal.write_str(&wrapped)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.column.store(0, Ordering::Relaxed);
        self.terminal.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use indicatif::InMemoryTerm;

    use super::super::progress::Terminal;
    use super::*;
    use crate::model::Progress as _;

    /// The screen with three bars of the second of two images, and the screen after they are gone.
    fn screens(width: u16) -> (String, String) {
        let screen = InMemoryTerm::new(24, width);
        let terminal = Terminal::on(Box::new(WithMargin::new(screen.clone())));
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
                assert!(bar.len() <= usize::from(width - MARGIN) * '█'.len_utf8(), "{during}");
            }
            assert_eq!(after, "");
        }
    }

    #[test]
    fn text_wraps_at_the_width() {
        assert_eq!(wrap("cdef", 2, 4), ("cd\r\nef".to_owned(), 2));
        assert_eq!(wrap("\rabcd", 4, 4), ("\rabcd".to_owned(), 4));
        assert_eq!(wrap("字字", 1, 4), ("字\r\n字".to_owned(), 2));
    }
}
