//! The lines of a log of any size, in bounded memory: decoded, without colours, and cut where they are too long.

use std::io::{self, BufRead};

use memchr::{memchr, memchr2};

/// Bytes of a line that are kept; no message of NCCL or PyTorch is longer.
const LONGEST: usize = 64 << 10;

/// Reason why something is not a log.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// The text is UTF-16.
    #[error("is UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE")]
    Utf16,
    /// The bytes are not text.
    #[error("is not text: byte {0} is zero\n  help: give what the job printed, as text or compressed with gzip")]
    Binary(u64),
}

/// Reads a log line by line. A carriage return ends a line too, as that of a progress bar.
#[derive(Debug)]
pub(super) struct Lines<R> {
    source: R,
    /// The number of the line that is read next, from 1; only newlines count.
    number: u64,
    /// The position of the next byte.
    offset: u64,
    line: Vec<u8>,
    text: String,
}

/// A line of a log.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line<'l> {
    pub(super) number: u64,
    pub(super) text: &'l str,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(source: R) -> Self {
        Self { source, number: 1, offset: 0, line: Vec::new(), text: String::new() }
    }

    /// The next line; `None` at the end.
    pub(super) fn next_line(&mut self) -> Result<Option<Line<'_>>, TextError> {
        let number = self.number;
        if !self.fill_line()? {
            return Ok(None);
        }
        self.text.clear();
        append_without_escapes(&String::from_utf8_lossy(&self.line), &mut self.text);
        Ok(Some(Line { number, text: &self.text }))
    }

    /// Reads up to the next end of a line. Returns false at the end of the source.
    fn fill_line(&mut self) -> Result<bool, TextError> {
        self.line.clear();
        let mut has_any = false;
        loop {
            let buffer = self.source.fill_buf()?;
            if buffer.is_empty() {
                return Ok(has_any);
            }
            if self.offset == 0 && (buffer.starts_with(&[0xff, 0xfe]) || buffer.starts_with(&[0xfe, 0xff])) {
                return Err(TextError::Utf16);
            }
            has_any = true;
            let end = memchr2(b'\n', b'\r', buffer);
            let part = buffer.get(..end.unwrap_or(buffer.len())).unwrap_or_default();
            if let Some(zero) = memchr(0, part) {
                return Err(TextError::Binary(self.offset + zero as u64));
            }
            let room = LONGEST.saturating_sub(self.line.len());
            self.line.extend_from_slice(part.get(..room).unwrap_or(part));
            let is_newline = end.and_then(|end| buffer.get(end)) == Some(&b'\n');
            let used = part.len() + usize::from(end.is_some());
            self.source.consume(used);
            self.offset += used as u64;
            self.number += u64::from(is_newline);
            if end.is_some() {
                return Ok(true);
            }
        }
    }
}

/// Appends a text without the escape sequences of terminals.
fn append_without_escapes(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\u{1b}') {
        out.push_str(before);
        // CSI: parameters up to a final byte. Of another sequence, only the escape is left out.
        rest = match after.strip_prefix('[') {
            Some(sequence) => {
                let end = sequence.find(|character: char| ('@'..='~').contains(&character));
                end.and_then(|end| sequence.get(end + 1..)).unwrap_or_default()
            }
            None => after,
        };
    }
    out.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<(u64, String)> {
        // A small buffer, so that lines span several.
        let mut lines = Lines::new(io::BufReader::with_capacity(7, bytes));
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push((line.number, line.text.to_owned()));
        }
        all
    }

    #[test]
    fn ends_of_lines_and_colours() {
        let bytes = b"one\r\n 10%\r 20%\r\n\x1b[31merror\x1b[0m: two\nlast\xff";
        let expected = [(1, "one"), (1, ""), (2, " 10%"), (2, " 20%"), (2, ""), (3, "error: two"), (4, "last\u{fffd}")];
        assert_eq!(lines(bytes), expected.map(|(number, text)| (number, text.to_owned())));
        assert_eq!(lines(b""), []);
    }

    #[test]
    fn long_lines_are_cut() {
        let long = [vec![b'x'; LONGEST + 100], b"\nnext".to_vec()].concat();
        let lines = lines(&long);
        assert_eq!((lines[0].1.len(), &lines[1]), (LONGEST, &(2, "next".to_owned())));
    }

    #[test]
    fn what_is_not_text() {
        let error = |bytes: &[u8]| {
            let mut lines = Lines::new(bytes);
            loop {
                match lines.next_line() {
                    Ok(Some(_)) => {}
                    Ok(None) => panic!("no error"),
                    Err(error) => return error.to_string(),
                }
            }
        };
        assert!(error(b"\xff\xfea\0b\0").contains("UTF-16"));
        assert!(error(b"ab\ncd\0ef").starts_with("is not text: byte 5 is zero"));
    }
}
