//! What the headers of frames and blocks say (RFC 8878, section 3.1): how long they are, and how much they unpack to at most.

/// The most that a block unpacks to, by the format.
const BLOCK: usize = 128 << 10;

/// Bytes by which a [`Frame`] is known. None is shorter.
pub(super) const HEAD: usize = 8;

/// Bytes of the longest header of a frame with blocks.
pub(super) const LONGEST: usize = 18;

/// Bytes of a block's header.
pub(super) const BLOCK_HEADER: usize = 3;

/// A frame, by its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// One that unpacks to nothing, of so many bytes.
    Skippable(usize),
    /// One with blocks, and what is behind its header.
    Blocks(FrameHeader),
}

/// The header of a frame with blocks, by its descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHeader(u8);

/// The header of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZstdBlock {
    pub(super) is_last: bool,
    /// Bytes behind the header.
    pub(super) packed: usize,
    /// Bytes that they unpack to at most.
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

    /// Whether a frame that begins like this and unpacks to so many bytes says nothing else. zstd does not compare the two if the
    /// last block is empty.
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

    /// Bytes of the field that says what the frame unpacks to.
    const fn size_field(self) -> usize {
        match self.0 >> 6 {
            0 => self.is_single_segment() as usize,
            flag => 1 << flag,
        }
    }

    /// Bytes of the header, the magic number among them.
    pub(super) const fn len(self) -> usize {
        let window = !self.is_single_segment() as usize;
        let dictionary = match self.0 & 0b11 {
            3 => 4,
            bytes => bytes as usize,
        };
        5 + window + dictionary + self.size_field()
    }

    /// Bytes of the checksum behind the last block.
    pub(super) const fn checksum(self) -> usize {
        if self.0 & 0b0000_0100 != 0 { 4 } else { 0 }
    }

    /// What the frame says that it unpacks to, if it does.
    pub(super) fn content(self, header: &[u8]) -> Option<u64> {
        let field = header.get(self.len() - self.size_field()..self.len()).filter(|field| !field.is_empty())?;
        // A field of two bytes does without what one byte can say.
        let declared = number(field) + if field.len() == 2 { 256 } else { 0 };
        // The largest number is no number for zstd.
        Some(declared).filter(|declared| *declared != u64::MAX)
    }
}

impl ZstdBlock {
    /// The block with this header; nothing if there is no such block.
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

/// A number, its lowest byte first.
fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}
