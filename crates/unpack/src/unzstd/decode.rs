//! Frames are decoded by zstd itself: in order, some bytes at a time, or all of a batch at once.

use std::cell::RefCell;
use std::io;

use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation as _, OutBuffer};

use super::batch::CompressedSource;
use super::frame::{Frame, HEAD, LONGEST};
use super::{CONTENT, ZstdError};
use crate::bounds::part;

/// Decodes one frame after the other, as it is read.
pub(super) struct SequentialDecoder {
    decoder: Decoder<'static>,
    is_inside: bool,
    /// Whether the frame's header is read for sure.
    is_begun: bool,
    /// The first bytes of the frame, and how many came out of it.
    begin: Vec<u8>,
    content: u64,
}

thread_local! {
    /// What each thread of a pool decodes with. A fresh one for every batch made 60,000 page faults more for each gigabyte.
    static DECODER: RefCell<Option<Decoder<'static>>> = RefCell::new(Decoder::new().ok());
}

impl SequentialDecoder {
    pub(super) fn new(window_log: u32) -> io::Result<Self> {
        let mut decoder = Decoder::new()?;
        decoder.set_parameter(DParameter::WindowLogMax(window_log))?;
        Ok(Self { decoder, is_inside: false, is_begun: false, begin: Vec::new(), content: 0 })
    }

    /// Whether a frame is begun and not over.
    pub(super) const fn is_inside(&self) -> bool {
        self.is_inside
    }

    /// The next bytes of the frame that was begun, or else of the next one. There are none at its end.
    pub(super) fn read(&mut self, source: &mut impl CompressedSource, buffer: &mut [u8]) -> io::Result<usize> {
        // What is decoded already comes out before more is read.
        let mut bytes: &[u8] = &[];
        loop {
            // A frame that is at hand as a whole, and finds room for all that it says, is not decoded as a stream, and then may
            // have larger blocks, matches further back or a larger window than it should. So it is not, and finds none at first.
            let some = if self.begin.is_empty() { head(bytes) } else { bytes };
            let room = if self.is_begun { &mut *buffer } else { &mut [] };
            let (mut input, mut output) = (InBuffer::around(some), OutBuffer::around(room));
            let decoded = self.decoder.run(&mut input, &mut output);
            let (taken, given) = (input.pos(), output.pos());
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

/// zstd says of the same damage one or the other, depending on the room that there happens to be.
pub(super) fn in_same_words(fault: io::Error) -> io::Error {
    match fault.to_string().as_str() {
        "Destination buffer is too small" => corrupt(),
        _ => fault,
    }
}

fn corrupt() -> io::Error {
    io::Error::other("Data corruption detected")
}

/// What whole frames unpack to: at most [`CONTENT`] bytes.
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
    let (mut input, mut output) = (InBuffer::around(frames), OutBuffer::around(bytes));
    // Where the frame begins, in both.
    let (mut hint, mut begin) = (0, (0, 0));
    while hint != 0 || input.pos() < frames.len() {
        let before = (input.pos(), output.pos());
        hint = if hint == 0 {
            // As above.
            let no_room = || OutBuffer::around(&mut [][..]);
            let mut head = InBuffer::around(head(part(frames, input.pos()..)?));
            let left = decoder.run(&mut head, &mut no_room())?;
            input.set_pos(input.pos() + head.pos());
            if left == 0 { left } else { decoder.run(&mut input, &mut no_room())? }
        } else {
            decoder.run(&mut input, &mut output)?
        };
        if before == (input.pos(), output.pos()) {
            return Err(io::Error::other("the frames are longer than their headers say"));
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
