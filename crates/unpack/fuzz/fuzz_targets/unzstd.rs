//! A zstd stream: what comes out of it, its frames decoded ahead or not, must be what comes out in order, and an error where there
//! a fault is found, or a frame lies of its size.
#![no_main]

use std::io::{BufReader, Read};
use std::num::NonZeroUsize;

use unpack::pool::Pool;
use unpack::unzstd::Unzstd;
use zstd::stream::read::Decoder;
use zstd::zstd_safe;

/// What is unpacked of one input.
const MOST: u64 = 4 << 20;

/// As the program's limits have it.
const WINDOW_LOG: u32 = 27;

libfuzzer_sys::fuzz_target!(|blob: &[u8]| {
    let (expected, is_whole) = in_order(blob);
    let is_whole = is_whole && is_true(blob);
    // A pool without threads of its own: the reader itself decodes ahead.
    for pool in [None, Some(Pool::new(NonZeroUsize::MIN))] {
        let (bytes, is_whole_too) = unpack(Unzstd::new(blob, WINDOW_LOG, pool.as_ref()).unwrap());
        assert_eq!(is_whole_too, is_whole);
        // How much comes out before a fault depends on what happens to be at hand.
        assert!(bytes == expected || !is_whole && (bytes.starts_with(&expected) || expected.starts_with(&bytes)));
    }
});

/// One byte after the other: a frame that is at hand as a whole may have larger blocks.
fn in_order(blob: &[u8]) -> (Vec<u8>, bool) {
    let mut decoder = Decoder::with_buffer(BufReader::with_capacity(1, blob)).unwrap();
    decoder.window_log_max(WINDOW_LOG).unwrap();
    unpack(decoder)
}

/// Whether each frame of a stream unpacks to as much as it says.
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

/// The first bytes, and whether there are no more, and nothing is wrong with them.
fn unpack(from: impl Read) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    let result = from.take(MOST).read_to_end(&mut bytes);
    let is_whole = result.is_ok() && (bytes.len() as u64) < MOST;
    (bytes, is_whole)
}
