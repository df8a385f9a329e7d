//! Decoding of frames by the zstd library: in order, some bytes at a time, or a whole batch at once.

use std::cell::RefCell;
use std::io;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::batch::CompressedSource;
use super::frame::{Frame, HEAD, LONGEST};
use super::{CONTENT, ZstdError};
use crate::bounds::part;

/// Decodes frames in order, as they are read.
pub(super) struct SequentialDecoder {
    decoder: Decoder<'static>,
    is_inside: bool,
    /// True once the frame's header has certainly been read.
    is_begun: bool,
    /// The first bytes of the frame, and the number of bytes decoded from it.
    begin: Vec<u8>,
    content: u64,
}

thread_local! {
    /// The decoder of each thread of a pool. A new one for every batch caused 60,000 more page faults per gigabyte.
    static DECODER: RefCell<Option<Decoder<'static>>> = RefCell::new(Decoder::new().ok());
}

impl SequentialDecoder {
    pub(super) fn new(window_log: u32) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log))?;
        Ok(Self { decoder, is_inside: false, is_begun: false, begin: Vec::new(), content: 0 })
    }

    /// Returns true inside a frame.
    pub(super) const fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// Decodes the next bytes of the current frame, or else of the next one. Returns none at its end.
    pub(super) fn read(&mut self, source: &mut impl CompressedSource, buffer: &mut [u8]) -> io::Result<usize> {
        // The first round has no input, to return bytes that are already decoded before reading more.
        let mut bytes: &[u8] = &[];
        loop {
            // zstd does not decode a frame as a stream if the frame is in the buffer as a whole and its declared content fits, and
            // then accepts larger blocks, longer distances and a larger window than it should. So it gets no room at first.
            let some = if self.begin.is_empty() { head(bytes) } else { bytes };
            let room = if self.is_begun { &mut *buffer } else { &mut [] };
            let mut input = InBuffer::around(some);
            let mut output = OutBuffer::around(room);
            let decoded = self.decoder.run(&mut input, &mut output);
            let taken = input.pos();
            let given = output.pos();
            self.begin.extend(bytes.iter().take(taken.min(LONGEST - self.begin.len())));
            self.content += given as u64;
            let is_stuck = taken == 0 && !bytes.is_empty();
            let hint =
                decoded.map_err(|fault| ZstdError::Corrupt { offset: source.offset(), error: in_same_words(fault) })?;
            source.take(taken);
            self.is_inside = hint != 0;
            self.is_begun = self.is_inside && (self.is_begun || is_stuck);
            if !self.is_inside && !Frame::is_true(&std::mem::take(&mut self.begin), std::mem::take(&mut self.content)) {
                return Err(ZstdError::Corrupt { offset: source.offset(), error: corrupt() }.into());
            }
            if given > 0 || !self.is_inside {
                return Ok(given);
            }
            bytes = source.bytes()?;
            if bytes.is_empty() && std::mem::replace(&mut self.is_begun, true) {
                return Err(ZstdError::Truncated { length: source.offset() }.into());
            }
        }
    }
}

/// The first bytes, too few for a frame with blocks.
fn head(bytes: &[u8]) -> &[u8] {
    bytes.get(..HEAD).unwrap_or(bytes)
}

/// Unifies two errors: zstd reports the same damage as one or the other, depending on the output room.
pub(super) fn in_same_words(fault: io::Error) -> io::Error {
    match fault.to_string().as_str() {
        "Destination buffer is too small" => corrupt(),
        _ => fault,
    }
}

fn corrupt() -> io::Error {
    io::Error::other("Data corruption detected")
}

/// Decodes whole frames, to at most [`CONTENT`] bytes.
pub(super) fn decode(frames: &[u8], window_log: u32, bytes: &mut Vec<u8>) -> io::Result<()> {
    DECODER.with_borrow_mut(|decoder| {
        let decoder = decoder.as_mut().ok_or(io::ErrorKind::OutOfMemory)?;
        decoder.reinit()?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log))?;
        decode_with(decoder, frames, bytes)
    })
}

fn decode_with(decoder: &mut Decoder<'static>, frames: &[u8], bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.clear();
    bytes.reserve_exact(CONTENT);
    let mut input = InBuffer::around(frames);
    let mut output = OutBuffer::around(bytes);
    // Start of the frame, in both.
    let mut hint = 0;
    let mut begin = (0, 0);
    while hint != 0 || input.pos() < frames.len() {
        let before = (input.pos(), output.pos());
        hint = if hint == 0 {
            // No room at first, as above.
            let no_room = || OutBuffer::around(&mut [][..]);
            let mut head = InBuffer::around(head(part(frames, input.pos()..)?));
            let left = decoder.run(&mut head, &mut no_room())?;
            input.set_pos(input.pos() + head.pos());
            if left == 0 { left } else { decoder.run(&mut input, &mut no_room())? }
        } else {
            decoder.run(&mut input, &mut output)?
        };
        if before == (input.pos(), output.pos()) {
            return Err(io::Error::other("the frames are longer than their headers declare"));
        }
        if hint == 0 {
            if !Frame::is_true(part(frames, begin.0..)?, (output.pos() - begin.1) as u64) {
                return Err(corrupt());
            }
            begin = (input.pos(), output.pos());
        }
    }
    Ok(())
}
