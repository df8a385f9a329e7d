//! Headers of frames and blocks (RFC 8878, section 3.1): their length, and the maximum size of their content.

/// Maximum content of a block in the format.
const BLOCK: usize = 128 << 10;

/// Bytes that identify a [`Frame`]. No frame is shorter.
pub(super) const HEAD: usize = 8;

/// Bytes of the longest header of a frame with blocks.
pub(super) const LONGEST: usize = 18;

/// Bytes of a block's header.
pub(super) const BLOCK_HEADER: usize = 3;

/// A frame, identified by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A skippable frame of this many bytes, without content.
    Skippable(usize),
    /// A frame with blocks, and its header.
    Blocks(FrameHeader),
}

/// The header of a frame with blocks, as its descriptor byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader(u8);

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZstdBlock {
    pub(super) is_last: bool,
    /// Bytes after the header.
    pub(super) packed: usize,
    /// Maximum number of decoded bytes.
    pub(super) content: usize,
}

impl Frame {
    /// The frame that begins with [`HEAD`] bytes.
    pub(super) fn read(head: &[u8]) -> Option<Self> {
        match *head {
            [0x28, 0xb5, 0x2f, 0xfd, descriptor, ..] => Some(Self::Blocks(FrameHeader(descriptor))),
            [0x50..=0x5f, 0x2a, 0x4d, 0x18, ref size @ ..] => {
                Some(Self::Skippable(HEAD.saturating_add(usize::try_from(number(size)).ok()?)))
            }
            _ => None,
        }
    }

    /// Returns true unless the frame that begins with `begin` declares another size than `content`. zstd does not compare the
    /// two if the last block is empty.
    pub(super) fn is_true(begin: &[u8], content: u64) -> bool {
        let declared = begin.get(..HEAD).and_then(Self::read).and_then(|frame| match frame {
            Self::Skippable(_) => None,
            Self::Blocks(header) => header.content(begin),
        });
        declared.is_none_or(|declared| declared == content)
    }
}

impl FrameHeader {
    const fn is_single_segment(self) -> bool {
        self.0 & 0b0010_0000 != 0
    }

    /// Bytes of the content size field.
    const fn size_field(self) -> usize {
        match self.0 >> 6 {
            0 => self.is_single_segment() as usize,
            flag => 1 << flag,
        }
    }

    /// Bytes of the header, including the magic number.
    pub(super) const fn len(self) -> usize {
        let window = !self.is_single_segment() as usize;
        let dictionary = match self.0 & 0b11 {
            3 => 4,
            bytes => bytes as usize,
        };
        5 + window + dictionary + self.size_field()
    }

    /// Bytes of the checksum after the last block.
    pub(super) const fn checksum(self) -> usize {
        if self.0 & 0b0000_0100 != 0 { 4 } else { 0 }
    }

    /// The declared content size, if there is one.
    pub(super) fn content(self, header: &[u8]) -> Option<u64> {
        let field = header.get(self.len() - self.size_field()..self.len()).filter(|field| !field.is_empty())?;
        // The two-byte field stores the size minus 256 (RFC 8878, 3.1.1.1.4).
        let declared = number(field) + if field.len() == 2 { 256 } else { 0 };
        // zstd treats the largest number as an unknown size.
        Some(declared).filter(|declared| *declared != u64::MAX)
    }
}

impl ZstdBlock {
    /// The block with this header; `None` if the header is invalid.
    pub(super) fn read(header: &[u8]) -> Option<Self> {
        let header = number(header.get(..BLOCK_HEADER)?);
        let size = usize::try_from(header >> 3).ok()?;
        let (packed, content) = match header >> 1 & 0b11 {
            0 => (size, size),
            1 => (1, size),
            2 => (size, BLOCK),
            _ => return None,
        };
        Some(Self { is_last: header & 1 != 0, packed, content })
    }
}

/// A little-endian number.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
