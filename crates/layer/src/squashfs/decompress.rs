//! Decompression of the blocks of a squashfs image, each of which is a stream of its own.

use std::io::Read as _;

use flate2::{Decompress, FlushDecompress, Status};

use super::lzo;

/// The compressor of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compressor {
    Gzip,
    Lzo,
    Xz,
    Lz4,
    Zstd,
}

impl Compressor {
    /// Returns the compressor with this number, or the reason why it is not supported.
    pub(super) fn of(number: u16) -> Result<Self, String> {
        match number {
            1 => Ok(Self::Gzip),
            // Linux does not read it either.
            2 => Err("the compressor is lzma, which is not supported".to_owned()),
            3 => Ok(Self::Lzo),
            4 => Ok(Self::Xz),
            5 => Ok(Self::Lz4),
            6 => Ok(Self::Zstd),
            _ => Err(format!("the compressor {number} is unknown")),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Gzip => "gzip",
            Self::Lzo => "lzo",
            Self::Xz => "xz",
            Self::Lz4 => "lz4",
            Self::Zstd => "zstd",
        }
    }
}

/// Decompresses blocks one after the other, with the same state for all.
#[derive(Default)]
pub(super) struct BlockUnpacker {
    gzip: Option<Decompress>,
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl BlockUnpacker {
    /// Decompresses a block to `out`, whose size is the largest that the block may have, and returns the block's size.
    pub(super) fn unpack(&mut self, compressor: Compressor, packed: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let unpacked = match compressor {
            Compressor::Gzip => self.inflate(packed, out),
            Compressor::Lzo => lzo::decode(packed, out).map_err(ToString::to_string),
            Compressor::Xz => unxz(packed, out).map_err(|error| error.to_string()),
            Compressor::Lz4 => lz4_flex::block::decompress_into(packed, out).map_err(|error| error.to_string()),
            Compressor::Zstd => self.unzstd(packed, out).map_err(|error| error.to_string()),
        };
        unpacked.map_err(|why| format!("{} cannot decompress it: {why}", compressor.name()))
    }

    fn inflate(&mut self, packed: &[u8], out: &mut [u8]) -> Result<usize, String> {
        let stream = self.gzip.get_or_insert_with(|| Decompress::new(true));
        stream.reset(true);
        match stream.decompress(packed, out, FlushDecompress::Finish) {
            // The output is never longer than the buffer.
            Ok(Status::StreamEnd) => Ok(usize::try_from(stream.total_out()).unwrap_or(out.len())),
            Ok(_) => Err("the stream does not end in this block".to_owned()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn unzstd(&mut self, packed: &[u8], out: &mut [u8]) -> std::io::Result<usize> {
        let mut stream = match self.zstd.take() {
            Some(stream) => stream,
            None => zstd::bulk::Decompressor::new()?,
        };
        let unpacked = stream.decompress_to_buffer(packed, out);
        self.zstd = Some(stream);
        unpacked
    }
}

impl std::fmt::Debug for BlockUnpacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlockUnpacker").finish_non_exhaustive()
    }
}

/// Decompresses an xz stream that must not be longer than `out`.
fn unxz(packed: &[u8], out: &mut [u8]) -> std::io::Result<usize> {
    /// KiB for the dictionary: mksquashfs sets it to at most the size of a block, 1 MiB.
    const MEMORY: u32 = 8 << 10;
    let mut stream = lzma_rust2::XzReader::new_mem_limit(packed, false, MEMORY);
    let mut count = 0;
    while let Some(free) = out.get_mut(count..) {
        if free.is_empty() {
            // The end of the stream, where its checksum is verified.
            if stream.read(&mut [0])? != 0 {
                return Err(std::io::Error::other("more bytes than a block can hold"));
            }
            break;
        }
        match stream.read(free)? {
            0 => break,
            more => count += more,
        }
    }
    Ok(count)
}
