//! Tables that do not fit into memory: a temporary file holds them until the dynamic section gives their positions.
//! The names of TensorFlow's symbols take 87 MB.
//!
//! GPU code, which lies between the tables and the dynamic section and makes up most of such a file, is left out.

use std::ops::Range;

use model::{BoundsError, Entry, Gap, GpuCode, Limits};

use super::super::fatbin::{Visit, Walker};
use super::super::spool::{Spool, Spooled};

/// Writes parts of a file to a temporary one.
pub(super) struct Overflow {
    walker: Walker,
    sink: OverflowSink,
}

struct OverflowSink {
    spool: Spool,
    written: Vec<Range<u64>>,
}

impl Visit for OverflowSink {
    fn outside(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        let end = offset + bytes.len() as u64;
        match self.written.last_mut().filter(|last| last.end == offset) {
            Some(last) => last.end = end,
            None => self.written.push(offset..end),
        }
        self.spool.push(offset, bytes);
        Ok(())
    }

    fn container(&mut self, _place: Range<u64>, _code: GpuCode) {}

    // Bytes that were mistaken for GPU code are not written, so a table there is missing and not wrong.
    fn damaged(&mut self, _place: Range<u64>, _at: u64) {}
}

impl Overflow {
    pub(super) fn new(entry: &Entry, limits: &Limits) -> Self {
        let spool = Spool::new(entry.path.to_string(), entry.size, limits);
        Self { walker: Walker::default(), sink: OverflowSink { spool, written: Vec::new() } }
    }

    /// Receives bytes. Offsets ascend.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.walker.push(offset, bytes, &mut self.sink)
    }

    /// Offset of the first byte needed from `at` on.
    pub(super) fn next(&self, at: u64) -> u64 {
        self.walker.next(at)
    }

    /// Completes the file; an error if it could not be written.
    pub(super) fn finish(mut self) -> Result<Overflowed, Gap> {
        self.walker.finish(&mut self.sink).map_err(|error| Gap::new(error.to_string()))?;
        Ok(Overflowed { file: self.sink.spool.finish()?, written: self.sink.written })
    }
}

/// The temporary file.
pub(super) struct Overflowed {
    pub(super) file: Spooled,
    written: Vec<Range<u64>>,
}

impl Overflowed {
    /// Returns the available bytes from `offset` on, at most `most`.
    pub(super) fn up_to(&self, offset: u64, most: u64) -> Vec<u8> {
        let after = self.written.partition_point(|range| range.start <= offset);
        let range = after.checked_sub(1).and_then(|index| self.written.get(index));
        let length = range.map_or(0, |range| range.end.saturating_sub(offset)).min(most);
        let mut bytes = vec![0; usize::try_from(length).unwrap_or_default()];
        // The file keeps the error.
        self.file.read_at(offset, &mut bytes).map_or_else(|_kept| Vec::new(), |()| bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EntryKind;

    #[test]
    fn gpu_code_and_holes_are_left_out() {
        let size = 1 << 20;
        // A container with one entry of machine code (see `scan::fatbin`).
        let mut code = vec![0; 16 + 64 + 3000];
        let fields: [(usize, &[u8]); 6] = [
            (0, &[0x50, 0xed, 0x55, 0xba, 1, 0, 16]),
            (8, &3064_u64.to_le_bytes()),
            (16, &[2, 0, 1, 1, 64]),
            (24, &3000_u64.to_le_bytes()),
            (44, &[90]),
            (90, b"inside"),
        ];
        for (at, field) in fields {
            code[at..at + field.len()].copy_from_slice(field);
        }
        let end = 1006 + code.len() as u64;
        let bytes = [b"before", &*code, b"behind"].concat();
        let entry = Entry { path: "lib".into(), kind: EntryKind::File, mode: 0, owner: None, size };
        let mut overflow = Overflow::new(&entry, &Limits::default());
        for (index, piece) in bytes.chunks(500).enumerate() {
            overflow.push(1000 + 500 * index as u64, piece).unwrap();
        }
        overflow.push(9000, b"later").unwrap();
        let overflowed = overflow.finish().unwrap();
        let held = [(999, 0), (1000, 6), (1003, 3), (1080, 0), (end, 6), (end + 2, 4), (8999, 0), (9001, 4)];
        for (offset, length) in held {
            assert_eq!(overflowed.up_to(offset, 100).len(), length, "at {offset}");
        }
        assert_eq!(overflowed.up_to(end, 4), b"behi");
    }
}
