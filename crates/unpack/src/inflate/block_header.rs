//! Headers of deflate blocks (RFC 1951, section 3.2.3).

use super::InflateError;
use super::bits::BitReader;
use super::huffman::{Entry, Table, room};
use crate::bounds::{BoundsError, part, part_mut};

/// Bits of literal and length words that the first table looks up. With more bits, more pairs fit, but building the table takes
/// longer.
pub(super) const LITERAL_TABLE: usize = 1 << 12;

/// Bits of distance words that the first table looks up.
pub(super) const DISTANCE_TABLE: usize = 1 << 8;

/// The codes of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Codes {
    pub(super) literals: Table<LITERAL_TABLE>,
    pub(super) distances: Table<DISTANCE_TABLE>,
}

/// Content of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockContent {
    /// This number of stored bytes.
    Stored(usize),
    /// Code words of the codes in the header.
    Compressed,
}

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockHeader {
    /// True for the last block of its stream.
    pub(super) is_final: bool,
    pub(super) content: BlockContent,
}

/// Reads a header, and builds the codes of the block.
pub(super) fn read(input: &[u8], bits: &mut BitReader, codes: &mut Codes) -> Result<BlockHeader, InflateError> {
    bits.refill(input);
    let is_final = bits.take(1) == 1;
    let content = match bits.take(2) {
        0 => stored(input, bits)?,
        1 => fixed(codes)?,
        2 => Lengths::read(input, bits)?.make(codes)?,
        _ => return Err(InflateError("a block has an invalid type")),
    };
    Ok(BlockHeader { is_final, content })
}

fn stored(input: &[u8], bits: &mut BitReader) -> Result<BlockContent, InflateError> {
    bits.align();
    bits.refill(input);
    let length = bits.take(16);
    if length != !bits.take(16) & 0xffff {
        return Err(InflateError("the length of a stored block does not match its complement"));
    }
    Ok(BlockContent::Stored(length as usize))
}

fn fixed(codes: &mut Codes) -> Result<BlockContent, InflateError> {
    let mut lengths = [8; 288];
    for (symbol, length) in lengths.iter_mut().enumerate() {
        *length = match symbol {
            144..256 => 9,
            256..280 => 7,
            _ => 8,
        };
    }
    codes.literals.build_with_pairs(&lengths, literal)?;
    codes.distances.build(&[5; 32], distance)?;
    Ok(BlockContent::Compressed)
}

/// The lengths of a dynamic block's code words.
#[derive(Debug)]
pub(super) struct Lengths {
    all: [u8; 286 + 30 + 138],
    literals: usize,
    distances: usize,
}

/// The order of the lengths of the code of code lengths.
const ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

impl Lengths {
    /// Reads the header's bits after the block's type.
    pub(super) fn read(input: &[u8], bits: &mut BitReader) -> Result<Self, InflateError> {
        bits.refill(input);
        let literals = bits.take(5) as usize + 257;
        let distances = bits.take(5) as usize + 1;
        let count = bits.take(4) as usize + 4;
        if literals > 286 || distances > 30 {
            return Err(InflateError("a block has too many length or distance symbols"));
        }
        let mut code = [0; 19];
        for &symbol in ORDER.iter().take(count) {
            if let Some(length) = code.get_mut(usize::from(symbol)) {
                bits.refill(input);
                *length = bits.take(3) as u8;
            }
        }
        if room(&code) != 0 {
            return Err(InflateError("the code length code is incomplete or oversubscribed"));
        }
        let mut table = Table::<128>::default();
        table.build(&code, |symbol| Entry::base(symbol as u16, 0))?;
        let mut lengths = Self { all: [0; 286 + 30 + 138], literals, distances };
        lengths.fill(input, bits, &table)?;
        lengths.check()?;
        Ok(lengths)
    }

    fn fill(&mut self, input: &[u8], bits: &mut BitReader, table: &Table<128>) -> Result<(), InflateError> {
        let wanted = self.literals + self.distances;
        let mut at = 0;
        let mut previous = None;
        while at < wanted {
            bits.refill(input);
            let entry = table.look(bits.peek());
            bits.take(entry.done());
            let (length, times) = match entry.value() {
                symbol @ 0..16 => (symbol as u8, 1),
                16 => (previous.ok_or(InflateError("the first code length repeats a previous one"))?, 3 + bits.take(2)),
                17 => (0, 3 + bits.take(3)),
                _ => (0, 11 + bits.take(7)),
            };
            let end = at + times as usize;
            part_mut(&mut self.all, at..end)?.fill(length);
            (at, previous) = (end, Some(length));
        }
        if at == wanted { Ok(()) } else { Err(InflateError("a block has more code lengths than symbols")) }
    }

    fn check(&self) -> Result<(), InflateError> {
        let (literals, distances) = self.parts()?;
        if literals.get(256) == Some(&0) {
            return Err(InflateError("a block has no end-of-block code"));
        }
        if !is_allowed(literals) {
            return Err(InflateError("the literal/length code is incomplete or oversubscribed"));
        }
        if distances.iter().any(|length| *length > 0) && !is_allowed(distances) {
            return Err(InflateError("the distance code is incomplete or oversubscribed"));
        }
        Ok(())
    }

    fn parts(&self) -> Result<(&[u8], &[u8]), BoundsError> {
        let all = part(&self.all, ..self.literals + self.distances)?;
        all.split_at_checked(self.literals).ok_or_else(BoundsError::new)
    }

    fn make(&self, codes: &mut Codes) -> Result<BlockContent, InflateError> {
        let (literals, distances) = self.parts()?;
        codes.literals.build_with_pairs(literals, literal)?;
        codes.distances.build(distances, distance)?;
        Ok(BlockContent::Compressed)
    }
}

/// Returns true for a complete code, or one with a single word of one bit, which zlib writes for a single symbol.
fn is_allowed(lengths: &[u8]) -> bool {
    let mut used = lengths.iter().filter(|length| **length > 0);
    room(lengths) == 0 || used.next() == Some(&1) && used.next().is_none()
}

fn literal(symbol: usize) -> Entry {
    const LENGTHS: [(u16, u8); 29] = [
        (3, 0),
        (4, 0),
        (5, 0),
        (6, 0),
        (7, 0),
        (8, 0),
        (9, 0),
        (10, 0),
        (11, 1),
        (13, 1),
        (15, 1),
        (17, 1),
        (19, 2),
        (23, 2),
        (27, 2),
        (31, 2),
        (35, 3),
        (43, 3),
        (51, 3),
        (59, 3),
        (67, 4),
        (83, 4),
        (99, 4),
        (115, 4),
        (131, 5),
        (163, 5),
        (195, 5),
        (227, 5),
        (258, 0),
    ];
    match symbol {
        0..256 => Entry::literal(symbol as u8),
        256 => Entry::END,
        _ => LENGTHS.get(symbol - 257).map_or(Entry::INVALID, |&(base, extra)| Entry::length(base, extra)),
    }
}

fn distance(symbol: usize) -> Entry {
    const DISTANCES: [(u16, u8); 30] = [
        (1, 0),
        (2, 0),
        (3, 0),
        (4, 0),
        (5, 1),
        (7, 1),
        (9, 2),
        (13, 2),
        (17, 3),
        (25, 3),
        (33, 4),
        (49, 4),
        (65, 5),
        (97, 5),
        (129, 6),
        (193, 6),
        (257, 7),
        (385, 7),
        (513, 8),
        (769, 8),
        (1025, 9),
        (1537, 9),
        (2049, 10),
        (3073, 10),
        (4097, 11),
        (6145, 11),
        (8193, 12),
        (12289, 12),
        (16385, 13),
        (24577, 13),
    ];
    DISTANCES.get(symbol).map_or(Entry::INVALID, |&(base, extra)| Entry::base(base, extra))
}
