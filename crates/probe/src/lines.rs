//! Splits the output of a program into lines, in bounded memory and up to a bounded length.

use model::size;

/// Longest line in bytes; the program's protocol allows half of that. The rest of a longer line is dropped.
const LONGEST_LINE: usize = 1 << 17;

/// Most bytes of output. Eight GPUs with all steps write about 2 MB.
const MOST_BYTES: u64 = 64 << 20;

/// The beginning of a line whose end is still to come.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
    bytes: u64,
}

impl Lines {
    /// Passes all lines that end within `bytes` to `sink`, without their ends. Returns an error for output that is too
    /// long to be a probe's.
    pub(super) fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(&[u8])) -> Result<(), String> {
        self.bytes += bytes.len() as u64;
        if self.bytes > MOST_BYTES {
            return Err(format!("the program wrote more than {} to its standard output", size(MOST_BYTES)));
        }
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LONGEST_LINE.saturating_sub(self.line.len());
            self.line.extend(part.iter().take(room));
            if part.ends_with(b"\n") {
                sink(self.line.trim_ascii_end());
                self.line.clear();
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_reassembled_and_long_ones_cut() {
        let mut lines = Lines::default();
        let mut seen = Vec::new();
        let long = vec![b'x'; 2 * LONGEST_LINE];
        for piece in [&b"one\ntw"[..], b"o\r\n", &long, b"\nthree\nrest"] {
            lines.push(piece, &mut |line| seen.push(line.to_vec())).unwrap();
        }
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, LONGEST_LINE, 5]);
    }

    #[test]
    fn endless_output_is_refused_even_without_a_line() {
        let mut lines = Lines::default();
        let piece = vec![b'x'; 1 << 20];
        let mut pushed = std::iter::repeat_with(|| lines.push(&piece, &mut |_| {}));
        let why = pushed.by_ref().take(65).find_map(Result::err).unwrap();
        assert_eq!(why, "the program wrote more than 64 MiB to its standard output");
    }
}
