//! Bounded reading of what others wrote. Methods of the standard library that read to an end are disallowed elsewhere.

use std::io::{self, BufRead, Read};
use std::path::Path;

use super::open_regular;
use super::size;

/// Reads to the end; `None` if there are more than `most` bytes.
#[expect(clippy::disallowed_methods, reason = "bounded here")]
pub fn bytes_within(reader: impl Read, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    reader.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= most))
}

/// Reads a line with its end, or the next `most` bytes of a longer one; `None` at the end of the stream.
#[expect(clippy::disallowed_methods, reason = "bounded here")]
pub fn line_within(reader: &mut impl BufRead, most: u64) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let count = reader.take(most).read_until(b'\n', &mut line)?;
    Ok(Some(line).filter(|_| count > 0))
}

/// Reads a text file of at most `most` bytes.
pub fn text_within(path: &Path, most: u64) -> io::Result<String> {
    let too_large = || io::Error::other(format!("it has more than {}", size(most)));
    let bytes = bytes_within(open_regular(path)?, most)?.ok_or_else(too_large)?;
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_than_the_bound_are_none() {
        assert_eq!(bytes_within(&b"abc"[..], 3).unwrap(), Some(b"abc".to_vec()));
        assert_eq!(bytes_within(&b"abcd"[..], 3).unwrap(), None);
        assert!(bytes_within(io::repeat(0), 1000).unwrap().is_none());
    }

    #[test]
    fn a_long_line_comes_in_pieces() {
        let mut reader = &b"ab\nabcd\ne"[..];
        let pieces: Vec<_> = std::iter::from_fn(|| line_within(&mut reader, 3).unwrap()).collect();
        assert_eq!(pieces, [&b"ab\n"[..], b"abc", b"d\n", b"e"]);
    }

    #[test]
    fn a_large_text_file_is_an_error() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abcd").unwrap();
        assert_eq!(text_within(file.path(), 4).unwrap(), "abcd");
        assert_eq!(text_within(file.path(), 3).unwrap_err().to_string(), "it has more than 3 bytes");
        std::fs::write(file.path(), b"\xff").unwrap();
        assert_eq!(text_within(file.path(), 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert!(text_within(file.path().parent().unwrap(), 4).is_err());
    }
}
