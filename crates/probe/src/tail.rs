//! The end of a long stream.

/// Minimum number of bytes to keep.
const KEPT: usize = 1 << 14;

/// The last bytes of a stream, as text.
#[derive(Debug, Default)]
pub(super) struct Tail(String);

impl Tail {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.0.push_str(&String::from_utf8_lossy(bytes));
        if self.0.len() > 2 * KEPT {
            let cut = (self.0.len() - KEPT..self.0.len()).find(|at| self.0.is_char_boundary(*at)).unwrap_or(0);
            self.0.drain(..cut);
        }
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn text(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept() {
        let mut tail = Tail::default();
        for number in 0..10_000 {
            tail.push(format!("line {number} ü\n").as_bytes());
        }
        let text = tail.text();
        assert!(text.ends_with("line 9999 ü\n") && (KEPT..=2 * KEPT).contains(&text.len()), "{}", text.len());
    }
}
