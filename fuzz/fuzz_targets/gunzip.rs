//! Decodes a deflate stream as the only member of a gzip stream. The result must equal that of zlib-rs, and must be an error if
//! zlib-rs reports one.
#![no_main]

use std::io::Read as _;

use flate2::{Decompress, FlushDecompress, Status};
use unpack::inflate::Gunzip;
use unpack::pipe::Pipe;

/// Limit of decoded bytes per input, enough for every way to run out of room.
const MOST: usize = 8 << 20;

libfuzzer_sys::fuzz_target!(|deflated: &[u8]| {
    let mut zlib = Decompress::new(false);
    let mut expected = vec![0; MOST];
    let status = zlib.decompress(deflated, &mut expected, FlushDecompress::Finish);
    let read = zlib.total_in() as usize;
    let written = zlib.total_out() as usize;
    if written == MOST {
        return;
    }
    expected.truncate(written);
    let mut blob = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff][..], &deflated[..read]].concat();
    let is_whole = matches!(status, Ok(Status::StreamEnd));
    if is_whole {
        let mut crc = flate2::Crc::new();
        crc.update(&expected);
        blob.extend_from_slice(&crc.sum().to_le_bytes());
        blob.extend_from_slice(&crc.amount().to_le_bytes());
    }
    let mut unpacked = Vec::new();
    let result = Gunzip::new(&mut Pipe::of(&blob), None).read_to_end(&mut unpacked);
    assert_eq!(result.is_ok(), is_whole, "{result:?}");
    assert!(!is_whole || unpacked == expected);
});
