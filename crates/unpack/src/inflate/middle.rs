//! A gzip stream from somewhere in its middle on: a place between two blocks, with the bytes before it known.

use super::decode::{Decoder, MARGIN, Output, Pause, WINDOW};
use super::find::Place;
use super::member::{self, TRAILER};
use super::{Fault, PIECE};

/// Decodes a part of a stream. The sums of its members are not compared: most of them began before.
#[derive(Debug)]
pub struct Middle {
    decoder: Decoder,
    place: Place,
    /// The window, and what was decoded last.
    data: Vec<u8>,
    at: usize,
    base: usize,
}

impl Default for Middle {
    fn default() -> Self {
        let data = vec![0; WINDOW + PIECE + MARGIN];
        Self { decoder: Decoder::default(), place: Place::Block(0), data, at: WINDOW, base: WINDOW }
    }
}

impl Middle {
    /// Goes before the block at a bit of an input. `before` is what was unpacked before it; only its last 32 KiB matter.
    pub fn begin(&mut self, bit: usize, before: &[u8]) {
        let before = before.get(before.len().saturating_sub(WINDOW)..).unwrap_or_default();
        self.at = WINDOW;
        self.base = WINDOW - before.len();
        self.data.get_mut(self.base..WINDOW).unwrap_or_default().copy_from_slice(before);
        self.decoder = Decoder::default();
        self.place = Place::Block(bit);
    }

    /// What was decoded last.
    pub fn piece(&self) -> &[u8] {
        self.data.get(WINDOW..self.at).unwrap_or_default()
    }

    /// Decodes the next piece: until a block ends with `enough` bytes or more, or there is no room; nothing at the end of the
    /// stream. The input is the same every time.
    pub fn next(&mut self, input: &[u8], enough: usize) -> Result<(), Fault> {
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
                Pause::Block { is_final: false } => self.place = Place::Block(behind),
                Pause::Block { is_final: true } => self.place = Place::Member(behind.div_ceil(8) + TRAILER),
            }
        }
        Ok(())
    }

    /// Where the next block begins, if there is one.
    fn block(&mut self, input: &[u8]) -> Result<Option<usize>, Fault> {
        match self.place {
            Place::Block(bit) => Ok(Some(bit)),
            Place::Member(byte) if byte == input.len() => Ok(None),
            Place::Member(byte) => {
                let data = member::data(input, byte)?;
                self.base = self.at;
                data.map(|byte| Some(byte * 8)).ok_or(Fault("the data end between two members"))
            }
        }
    }
}
