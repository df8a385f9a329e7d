//! The blocks of an image: read from the file, decompressed, and kept for a while.

use std::collections::{BTreeMap, VecDeque};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use model::{Limits, OverLimit};

use super::decompress::{BlockUnpacker, Compressor};
use super::error::SquashfsError;

/// Bytes in a block of metadata, except for the last block of a table.
const METADATA: usize = 8 << 10;

/// Number of blocks of metadata that are kept: 4 MiB. Inodes and directories of one folder are close together.
const METADATA_KEPT: usize = 512;

/// Number of fragment blocks that are kept, each of at most 1 MiB. Small files of one folder share them.
const FRAGMENTS_KEPT: usize = 8;

/// Decompressed bytes from which the ratio is checked: small files may consist of zeros.
const SMALL: u64 = 64 << 20;

/// A position in a table: the offset of a block, and the offset in the decompressed block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TableCursor {
    pub(super) block: u64,
    pub(super) inside: usize,
}

/// Reads blocks.
#[derive(Debug)]
pub(super) struct Blocks {
    source: Arc<BlockSource>,
    pub(super) compressor: Compressor,
    decoder: BlockUnpacker,
    /// The stored form of the last block.
    packed: Vec<u8>,
    metadata: KeptBlocks,
    fragments: KeptBlocks,
}

/// What all readers of an image share.
#[derive(Debug)]
struct BlockSource {
    file: File,
    range: Range<u64>,
    /// Number of bytes that all readers decompressed.
    unpacked: AtomicU64,
    limits: Limits,
}

impl Blocks {
    pub(super) fn new(file: File, range: Range<u64>, limits: &Limits) -> Self {
        let source = BlockSource { file, range, unpacked: AtomicU64::new(0), limits: limits.clone() };
        Self::of(Arc::new(source), Compressor::Gzip)
    }

    fn of(source: Arc<BlockSource>, compressor: Compressor) -> Self {
        Self {
            source,
            compressor,
            decoder: BlockUnpacker::default(),
            packed: Vec::new(),
            metadata: KeptBlocks::new(METADATA_KEPT),
            fragments: KeptBlocks::new(FRAGMENTS_KEPT),
        }
    }

    /// Another reader of the same image, which counts against the same limits.
    pub(super) fn another(&self) -> Self {
        Self::of(Arc::clone(&self.source), self.compressor)
    }

    /// Length of the image, in bytes.
    pub(super) fn length(&self) -> u64 {
        self.source.range.end.saturating_sub(self.source.range.start)
    }

    /// The offset in the file of an offset in the image.
    pub(super) fn place(&self, offset: u64) -> u64 {
        self.source.range.start.saturating_add(offset)
    }

    /// Limits of the run.
    pub(super) fn limits(&self) -> &Limits {
        &self.source.limits
    }

    /// Reads bytes as they are stored.
    pub(super) fn stored<const N: usize>(&self, offset: u64) -> Result<[u8; N], SquashfsError> {
        let mut bytes = [0; N];
        self.fill(offset, &mut bytes)?;
        Ok(bytes)
    }

    fn fill(&self, offset: u64, bytes: &mut [u8]) -> Result<(), SquashfsError> {
        let at = self.place(offset);
        let ends_early = || SquashfsError::damaged(at, "the image ends early");
        let end = offset.checked_add(bytes.len() as u64).ok_or_else(ends_early)?;
        if end > self.length() {
            return Err(ends_early());
        }
        self.source.file.read_exact_at(bytes, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => ends_early(),
            _ => SquashfsError::Read(error),
        })
    }

    /// Reads bytes of a table, and moves the cursor past them.
    pub(super) fn read(&mut self, cursor: &mut TableCursor, mut bytes: &mut [u8]) -> Result<(), SquashfsError> {
        while !bytes.is_empty() {
            let (block, next) = self.metadata(cursor.block)?;
            let found = block.get(cursor.inside..).unwrap_or_default();
            if found.is_empty() {
                // A short block ends the table.
                if cursor.inside != block.len() || block.len() != METADATA {
                    return Err(SquashfsError::damaged(self.place(cursor.block), "a table ends early"));
                }
                *cursor = TableCursor { block: next, inside: 0 };
                continue;
            }
            let count = found.len().min(bytes.len());
            let (now, later) = bytes.split_at_mut(count);
            now.copy_from_slice(found.get(..count).unwrap_or_default());
            cursor.inside += count;
            bytes = later;
        }
        Ok(())
    }

    /// Reads an array of a table.
    pub(super) fn array<const N: usize>(&mut self, cursor: &mut TableCursor) -> Result<[u8; N], SquashfsError> {
        let mut bytes = [0; N];
        self.read(cursor, &mut bytes)?;
        Ok(bytes)
    }

    /// Reads a little-endian number of a table.
    pub(super) fn short(&mut self, cursor: &mut TableCursor) -> Result<u16, SquashfsError> {
        self.array(cursor).map(u16::from_le_bytes)
    }

    /// Reads a little-endian number of a table.
    pub(super) fn long(&mut self, cursor: &mut TableCursor) -> Result<u32, SquashfsError> {
        self.array(cursor).map(u32::from_le_bytes)
    }

    /// Reads a little-endian number of a table.
    pub(super) fn wide(&mut self, cursor: &mut TableCursor) -> Result<u64, SquashfsError> {
        self.array(cursor).map(u64::from_le_bytes)
    }

    /// The block of metadata at this offset, and the offset of the next one.
    fn metadata(&mut self, offset: u64) -> Result<(Arc<[u8]>, u64), SquashfsError> {
        const STORED: u16 = 1 << 15;
        if let Some(kept) = self.metadata.get(offset) {
            return Ok(kept);
        }
        let header = u16::from_le_bytes(self.stored(offset)?);
        let length = header & !STORED;
        // Cannot overflow: the header lies within the image.
        let start = offset + 2;
        let next = offset + 2 + u64::from(length);
        if length == 0 || usize::from(length) > METADATA {
            return Err(SquashfsError::damaged(self.place(offset), format!("a block of metadata has {length} bytes")));
        }
        let mut block = vec![0; METADATA];
        self.unpack(start, usize::from(length), header & STORED != 0, &mut block)?;
        let block: Arc<[u8]> = block.into();
        self.metadata.keep(offset, (Arc::clone(&block), next));
        Ok((block, next))
    }

    /// The fragment block at this offset, whose stored form has this length.
    pub(super) fn fragment(&mut self, offset: u64, stored: u32, size: u32) -> Result<Arc<[u8]>, SquashfsError> {
        if let Some((block, _)) = self.fragments.get(offset) {
            return Ok(block);
        }
        let mut block = Vec::new();
        self.data(offset, stored, size, &mut block)?;
        let block: Arc<[u8]> = block.into();
        self.fragments.keep(offset, (Arc::clone(&block), 0));
        Ok(block)
    }

    /// Reads a block of data with at most `size` bytes to `out`. `stored` is its length in the image, with a bit for
    /// uncompressed blocks.
    pub(super) fn data(&mut self, offset: u64, stored: u32, size: u32, out: &mut Vec<u8>) -> Result<(), SquashfsError> {
        let length = stored_length(stored);
        let is_plain = stored & PLAIN != 0;
        if length > size {
            let what = format!("a block of data has {length} bytes, the largest is {size}");
            return Err(SquashfsError::damaged(self.place(offset), what));
        }
        out.resize(size as usize, 0);
        self.unpack(offset, length as usize, is_plain, out)
    }

    /// Reads a block to `out`, which has the largest size that the block may have, and cuts it to the block's size.
    fn unpack(&mut self, offset: u64, length: usize, is_plain: bool, out: &mut Vec<u8>) -> Result<(), SquashfsError> {
        if is_plain {
            out.truncate(length);
            self.fill(offset, out)?;
        } else {
            let mut packed = std::mem::take(&mut self.packed);
            packed.resize(length, 0);
            let filled = self.fill(offset, &mut packed);
            let unpacked = filled.and_then(|()| {
                let unpacked = self.decoder.unpack(self.compressor, &packed, out);
                unpacked.map_err(|what| SquashfsError::damaged(self.place(offset), what))
            });
            self.packed = packed;
            out.truncate(unpacked?);
        }
        self.count(out.len() as u64)
    }

    /// Counts bytes against the limits on unpacked bytes.
    pub(super) fn count(&self, bytes: u64) -> Result<(), SquashfsError> {
        let unpacked = self.source.unpacked.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        let limits = self.limits();
        let length = self.length();
        let over = |limit, value| {
            let what = format!("{unpacked} bytes were unpacked of an image of {length}");
            Err(SquashfsError::Limit(OverLimit::new(what, limit, value)))
        };
        if unpacked > limits.unpacked {
            return over("unpacked", limits.unpacked);
        }
        if unpacked > SMALL && unpacked / limits.expansion.max(1) > length {
            return over("expansion", limits.expansion);
        }
        Ok(())
    }
}

/// Bit of a length that marks a block of data as uncompressed.
const PLAIN: u32 = 1 << 24;

/// The length of a block of data, without its mark.
pub(super) const fn stored_length(stored: u32) -> u32 {
    stored & (PLAIN - 1)
}

/// The last blocks that were read, by offset, each with the offset of the next one.
#[derive(Debug)]
struct KeptBlocks {
    blocks: BTreeMap<u64, (Arc<[u8]>, u64)>,
    order: VecDeque<u64>,
    most: usize,
}

impl KeptBlocks {
    const fn new(most: usize) -> Self {
        Self { blocks: BTreeMap::new(), order: VecDeque::new(), most }
    }

    fn get(&self, offset: u64) -> Option<(Arc<[u8]>, u64)> {
        self.blocks.get(&offset).cloned()
    }

    fn keep(&mut self, offset: u64, block: (Arc<[u8]>, u64)) {
        if self.order.len() >= self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.blocks.remove(&oldest);
        }
        self.order.push_back(offset);
        self.blocks.insert(offset, block);
    }
}
