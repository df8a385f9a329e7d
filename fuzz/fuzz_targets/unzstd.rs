//! Decodes a zstd stream. The result, with and without decoding ahead, must equal that of decoding in order, and must be an error
//! if that reports one or if a frame declares a wrong size.
#![no_main]

use std::io::{BufReader, Read};
use std::num::NonZeroUsize;

use unpack::pool::Pool;
use unpack::unzstd::Unzstd;
use zstd::stream::read::Decoder;
use zstd::zstd_safe;

/// Limit of decoded bytes per input.
const MOST: u64 = 4 << 20;

/// The window limit of ncclcheck.
const WINDOW_LOG: u32 = 27;

libfuzzer_sys::fuzz_target!(|blob: &[u8]| {
    let (expected, is_whole) = in_order(blob);
    let is_whole = is_whole && is_true(blob);
    // A pool without threads, in which the reader itself decodes ahead.
    for pool in [None, Some(Pool::new(NonZeroUsize::MIN))] {
        let (bytes, is_whole_too) = unpack(Unzstd::new(blob, WINDOW_LOG, pool.as_ref()).unwrap());
        assert_eq!(is_whole_too, is_whole);
        // The amount of output before an error depends on the bytes in the buffer.
        assert!(bytes == expected || !is_whole && (bytes.starts_with(&expected) || expected.starts_with(&bytes)));
    }
});

/// Reads byte by byte, because zstd allows larger blocks in a frame that is in the buffer as a whole.
fn in_order(blob: &[u8]) -> (Vec<u8>, bool) {
    let mut decoder = Decoder::with_buffer(BufReader::with_capacity(1, blob)).unwrap();
    decoder.window_log_max(WINDOW_LOG).unwrap();
    unpack(decoder)
}

/// Returns true if each frame of a stream decodes to its declared size.
fn is_true(mut blob: &[u8]) -> bool {
    while !blob.is_empty() {
        let (frame, behind) = blob.split_at(zstd_safe::find_frame_compressed_size(blob).unwrap());
        let stated = zstd_safe::get_frame_content_size(frame).unwrap();
        if stated.is_some_and(|stated| stated != in_order(frame).0.len() as u64) {
            return false;
        }
        blob = behind;
    }
    true
}

/// The first bytes, and whether they are the whole stream without an error.
fn unpack(from: impl Read) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let result = from.take(MOST).read_to_end(&mut bytes);
    let is_whole = result.is_ok() && (bytes.len() as u64) < MOST;
    (bytes, is_whole)
}
