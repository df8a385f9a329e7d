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

    /// Decompresses a block of at most `size` bytes.
    pub(super) fn unpack(self, packed: &[u8], size: usize) -> Result<Vec<u8>, String> {
        let mut out = vec![0; size];
        let wrong = |why: &dyn std::fmt::Display| format!("{} cannot decompress it: {why}", self.name());
        let count = match self {
            Self::Gzip => {
                let mut stream = Decompress::new(true);
                match stream.decompress(packed, &mut out, FlushDecompress::Finish) {
                    // The output is never longer than the buffer.
                    Ok(Status::StreamEnd) => usize::try_from(stream.total_out()).unwrap_or(size),
                    Ok(_) => return Err(wrong(&"the stream does not end in this block")),
                    Err(error) => return Err(wrong(&error)),
                }
            }
            Self::Lzo => lzo::decode(packed, &mut out).map_err(|why| wrong(&why))?,
            Self::Xz => unxz(packed, &mut out).map_err(|error| wrong(&error))?,
            Self::Lz4 => lz4_flex::block::decompress_into(packed, &mut out).map_err(|error| wrong(&error))?,
            Self::Zstd => zstd::bulk::Decompressor::new()
                .and_then(|mut stream| stream.decompress_to_buffer(packed, &mut out[..]))
                .map_err(|error| wrong(&error))?,
        };
        out.truncate(count);
        Ok(out)
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
