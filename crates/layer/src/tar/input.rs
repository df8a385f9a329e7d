//! Source of the bytes of a tar.

use std::io::{self, BufRead};

/// A buffered stream of bytes, like [`BufRead`], but with an error type of its own, which a tar reader returns
/// unchanged.
pub trait TarInput {
    /// Error of the source.
    type Error;

    /// Returns the buffered bytes, and reads more if there are none; empty at the end of the stream. The same bytes are
    /// returned again until [`Self::advance`] consumes them.
    fn fill(&mut self) -> Result<&[u8], Self::Error>;

    /// Consumes the first `count` of the buffered bytes.
    fn advance(&mut self, count: usize);
}

impl<R: BufRead> TarInput for R {
    type Error = io::Error;

    fn fill(&mut self) -> io::Result<&[u8]> {
        while let Err(error) = self.fill_buf() {
            if error.kind() != io::ErrorKind::Interrupted {
                return Err(error);
            }
        }
        self.fill_buf()
    }

    fn advance(&mut self, count: usize) {
        self.consume(count);
    }
}
