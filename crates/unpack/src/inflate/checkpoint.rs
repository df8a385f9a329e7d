//! Decoding of a gzip stream from a checkpoint on: a position between two blocks, with known content before it.

use super::block_decoder::{BlockDecoder, MARGIN, Output, Pause, WINDOW};
use super::block_finder::Boundary;
use super::member::{self, TRAILER};
use super::{InflateError, PIECE};
use crate::bounds::{copy, part};

/// Decodes a gzip stream from a checkpoint on, piece by piece. Checksums are not verified: most members began before.
///
/// Indexes of seekable gzip (SOCI's zTOC, `zran`) have such checkpoints.
#[derive(Debug)]
pub struct CheckpointDecoder {
    decoder: BlockDecoder,
    place: Boundary,
    /// The window, and the content decoded last.
    data: Vec<u8>,
    at: usize,
    base: usize,
}

impl Default for CheckpointDecoder {
    fn default() -> Self {
        let data = vec![0; WINDOW + PIECE + MARGIN];
        Self { decoder: BlockDecoder::default(), place: Boundary::Block(0), data, at: WINDOW, base: WINDOW }
    }
}

impl CheckpointDecoder {
    /// Starts at the block header at bit `bit` of the input. `before` is the content before it; only its last 32 KiB matter.
    ///
    /// # Errors
    ///
    /// Only on a defect of this crate, as for [`piece`](Self::piece).
    pub fn begin(&mut self, bit: usize, before: &[u8]) -> Result<(), InflateError> {
        let before = part(before, before.len().saturating_sub(WINDOW)..)?;
        self.at = WINDOW;
        self.base = WINDOW - before.len();
        copy(&mut self.data, self.base, before)?;
        self.decoder = BlockDecoder::default();
        self.place = Boundary::Block(bit);
        Ok(())
    }

    /// The bytes that [`next`](Self::next) decoded last.
    pub fn piece(&self) -> Result<&[u8], InflateError> {
        Ok(part(&self.data, WINDOW..self.at)?)
    }

    /// Decodes the next [`piece`](Self::piece): until a block ends after `enough` bytes or more, or the buffer of 256 KiB is
    /// full. The piece is empty at the end of the stream. `input` must be the same in every call: the stream from the byte on
    /// from which the bit of [`begin`](Self::begin) counts.
    ///
    /// # Errors
    ///
    /// The input is not valid deflate, or ends inside a block.
    pub fn next(&mut self, input: &[u8], enough: usize) -> Result<(), InflateError> {
        self.data.copy_within(self.at - WINDOW..self.at, 0);
        self.base = self.base.saturating_sub(self.at - WINDOW);
        self.at = WINDOW;
        while self.at - WINDOW < enough {
            if !self.decoder.is_inside() {
                let Some(bit) = self.block(input)? else { break };
                self.decoder.go(input, bit);
            }
            let mut output = Output { data: &mut self.data, at: self.at, base: self.base };
            let pause = self.decoder.run(input, usize::MAX, &mut output);
            self.at = output.at;
            let behind = self.decoder.bits.position();
            match pause? {
                Pause::Room | Pause::Input => break,
                Pause::Block { is_final: false } => self.place = Boundary::Block(behind),
                Pause::Block { is_final: true } => self.place = Boundary::Member(behind.div_ceil(8) + TRAILER),
            }
        }
        Ok(())
    }

    /// Position of the next block, if there is one.
    fn block(&mut self, input: &[u8]) -> Result<Option<usize>, InflateError> {
        match self.place {
            Boundary::Block(bit) => Ok(Some(bit)),
            Boundary::Member(byte) if byte == input.len() => Ok(None),
            Boundary::Member(byte) => {
                let data = member::data(input, byte)?;
                self.base = self.at;
                data.map(|byte| Some(byte * 8)).ok_or(InflateError("the data end between two gzip members"))
            }
        }
    }
}
