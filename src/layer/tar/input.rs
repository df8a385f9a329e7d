//! The bytes that a tar is read from.

use std::io::{self, BufRead};

/// A stream of bytes with a buffer, as [`BufRead`] is, but with an error type of its own: a tar reader hands it on as it is.
pub trait TarInput {
    /// Why the bytes cannot be had.
    type Error;

    /// The bytes at hand, or the next ones where none are; none at the end of the stream. The same bytes come again until
    /// [`Self::advance`] passes over them.
    fn fill(&mut self) -> Result<&[u8], Self::Error>;

    /// Passes over the first `count` of the bytes at hand.
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
