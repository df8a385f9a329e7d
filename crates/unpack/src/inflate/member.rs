//! Members of a gzip file (RFC 1952, section 2.3).

use super::InflateError;
use crate::bounds::part;

/// Bytes of the trailer after a member's data: the CRC-32 and the size of the decoded bytes.
pub(super) const TRAILER: usize = 8;

/// CRC-32 and size of the decoded bytes, from the member's trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) crc: u32,
    /// The size modulo 2^32.
    pub(super) size: u32,
}

impl Trailer {
    /// The trailer at a byte of the input; `None` if it is cut off.
    pub(super) fn read(input: &[u8], at: usize) -> Option<Self> {
        let (crc, rest) = input.get(at..)?.split_first_chunk()?;
        Some(Self { crc: u32::from_le_bytes(*crc), size: u32::from_le_bytes(*rest.first_chunk()?) })
    }
}

/// The end of a member inside decoded data.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    /// Length of the decoded data before it.
    pub(super) at: usize,
    pub(super) trailer: Trailer,
}

/// Start of the data after a member's header; `None` if the header is cut off.
pub(super) fn data(input: &[u8], at: usize) -> Result<Option<usize>, InflateError> {
    const TEXT_CRC: u8 = 2;
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    let Some(header) = input.get(at..) else { return Ok(None) };
    let Some([magic, second, method, flags, ..]) = header.first_chunk::<10>() else {
        let begins_a_member = header.iter().zip(MAGIC).all(|(byte, magic)| *byte == magic);
        return if begins_a_member { Ok(None) } else { Err(NO_MEMBER) };
    };
    if [*magic, *second, *method] != MAGIC || flags >> 5 != 0 {
        return Err(NO_MEMBER);
    }
    let mut end = 10;
    if flags & EXTRA != 0 {
        let Some([low, high]) = header.get(end..).and_then(|rest| rest.first_chunk()) else { return Ok(None) };
        end += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    for _ in [NAME, COMMENT].into_iter().filter(|text| flags & text != 0) {
        let Some(length) = header.get(end..).and_then(|rest| memchr::memchr(0, rest)) else { return Ok(None) };
        end += length + 1;
    }
    if flags & TEXT_CRC != 0 {
        let Some([low, high]) = header.get(end..).and_then(|rest| rest.first_chunk()) else { return Ok(None) };
        let crc = crc32fast::hash(part(header, ..end)?);
        if crc & 0xffff != u32::from(u16::from_le_bytes([*low, *high])) {
            return Err(InflateError("the CRC-16 of a gzip header is wrong"));
        }
        end += 2;
    }
    Ok(Some(at + end).filter(|end| *end <= input.len()))
}

/// The first bytes of every member: the magic number, and the only compression method.
pub(super) const MAGIC: [u8; 3] = [0x1f, 0x8b, 8];

const NO_MEMBER: InflateError = InflateError("what follows is not a gzip member");
