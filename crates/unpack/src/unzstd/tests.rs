use std::io::Write as _;
use std::num::NonZeroUsize;

use proptest::prelude::*;
use zstd::stream::write::Encoder;
use zstd::zstd_safe;

use super::decode::in_same_words;
use super::*;
use crate::UnpackError;

/// The window limit of ncclcheck.
const WINDOW_LOG: u32 = 27;

/// Bytes that are partly compressible.
fn mixture(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut bytes = Vec::new();
    while bytes.len() < length {
        let count = random.usize(1..2000);
        match random.u8(..3) {
            0 => bytes.extend(std::iter::repeat_n(random.u8(..), count)),
            1 => bytes.extend((0..count).map(|_| random.u8(b'a'..b'f'))),
            _ => bytes.extend((0..count).map(|_| random.u8(..))),
        }
    }
    bytes.truncate(length);
    bytes
}

/// A frame of a writer that knows the content size, or of one that does not.
fn frame(bytes: &[u8], level: i32, is_size_told: bool, has_checksum: bool) -> Vec<u8> {
    let mut encoder = Encoder::new(Vec::new(), level).unwrap();
    encoder.include_contentsize(is_size_told).unwrap();
    encoder.include_checksum(has_checksum).unwrap();
    if is_size_told {
        encoder.set_pledged_src_size(Some(bytes.len() as u64)).unwrap();
    }
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn skippable(bytes: &[u8]) -> Vec<u8> {
    [&[0x57, 0x2a, 0x4d, 0x18], &u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], bytes].concat()
}

/// Frames of about this many bytes, with their content.
fn frames(seed: u64, count: usize, length: usize) -> (Vec<u8>, Vec<u8>) {
    let mut random = fastrand::Rng::with_seed(seed);
    let mut blob = Vec::new();
    let mut content = Vec::new();
    for _ in 0..count {
        let bytes = mixture(random.u64(..), random.usize(..=2 * length));
        match random.u8(..8) {
            0 => blob.extend(skippable(&bytes)),
            1 => blob.extend(frame(&[], 1, random.bool(), random.bool())),
            _ => {
                blob.extend(frame(&bytes, random.i32(-2..5), random.bool(), random.bool()));
                content.extend(bytes);
            }
        }
    }
    (blob, content)
}

fn pool(threads: usize) -> Option<Pool> {
    NonZeroUsize::new(threads).map(Pool::new)
}

/// The bytes that are returned before the end or an error.
fn read(mut from: impl Read) -> (Vec<u8>, io::Result<()>) {
    let mut bytes = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => return (bytes, Ok(())),
            Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            Err(error) => return (bytes, Err(error)),
        }
    }
}

fn unpack(blob: &[u8], threads: usize) -> (Vec<u8>, io::Result<()>) {
    read(Unzstd::new(blob, WINDOW_LOG, pool(threads).as_ref()).unwrap())
}

fn fault(blob: &[u8], threads: usize) -> String {
    unpack(blob, threads).1.unwrap_err().to_string()
}

/// The content by a decoder that does not find frames, and an error if a frame declares a wrong size. It reads byte by byte, because
/// zstd allows larger blocks in a frame that is in the buffer as a whole.
fn sequentially(blob: &[u8]) -> (Vec<u8>, io::Result<()>) {
    let decode = |blob| {
        let bytes = io::BufReader::with_capacity(1, blob);
        let mut decoder = zstd::stream::read::Decoder::with_buffer(bytes).unwrap();
        decoder.window_log_max(WINDOW_LOG).unwrap();
        read(decoder)
    };
    let (bytes, end) = decode(blob);
    let mut rest = blob;
    let mut is_true = true;
    while end.is_ok() && !rest.is_empty() {
        let (frame, behind) = rest.split_at(zstd_safe::find_frame_compressed_size(rest).unwrap());
        let told = zstd_safe::get_frame_content_size(frame).unwrap();
        is_true &= told.is_none_or(|told| told == decode(frame).0.len() as u64);
        rest = behind;
    }
    (bytes, end.and_then(|()| if is_true { Ok(()) } else { Err(io::Error::other("Data corruption detected")) }))
}

/// Asserts that both decoders agree: on all bytes, or on the error and the bytes that both returned before it.
fn assert_as_sequentially(blob: &[u8], threads: usize) {
    let (bytes, end) = unpack(blob, threads);
    let (expected, expected_end) = sequentially(blob);
    match (end, expected_end) {
        (Ok(()), Ok(())) => assert!(bytes == expected),
        (Err(error), Err(expected_error)) => {
            assert!(bytes.starts_with(&expected) || expected.starts_with(&bytes));
            match UnpackError::from_io(error) {
                Ok(UnpackError::Decode(DecodeError::Zstd(ZstdError::Truncated { length }))) => {
                    assert_eq!(expected_error.kind(), io::ErrorKind::UnexpectedEof);
                    assert_eq!(length, blob.len() as u64);
                }
                Ok(UnpackError::Decode(DecodeError::Zstd(ZstdError::Corrupt { offset, error }))) => {
                    assert_eq!(error.to_string(), in_same_words(expected_error).to_string());
                    assert!(offset <= blob.len() as u64);
                }
                other => panic!("{other:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn frames_of_every_size_come_out() {
    for (count, length) in [(3000, 20), (300, 1000), (60, 30_000), (12, 200_000), (4, 1_000_000)] {
        let (blob, content) = frames(count as u64, count, length);
        for threads in [0, 1, 3, 5] {
            let (bytes, end) = unpack(&blob, threads);
            end.unwrap();
            assert!(bytes == content, "{length} bytes, {threads} threads");
        }
    }
}

#[test]
fn frames_are_decoded_ahead_and_nothing_is_held_afterwards() {
    let (blob, _) = frames(1, 500, 5000);
    let pool = pool(2).unwrap();
    let mut unzstd = Unzstd::new(&*blob, WINDOW_LOG, Some(&pool)).unwrap();
    unzstd.read_exact(&mut [0; 10]).unwrap();
    assert_eq!(unzstd.ahead.len(), 3);
    assert!(matches!(unzstd.current, Current::Decoded { .. }));
    assert!(pool.permit().is_none());
    drop(unzstd);
    let permits: Vec<_> = std::iter::from_fn(|| pool.permit()).collect();
    assert_eq!(permits.len(), 4);
}

#[test]
fn a_batch_has_no_more_than_it_may() {
    // Frames without a declared size, of zeros, and of noise.
    let zeros = frame(&vec![0; 100_000], 1, false, true);
    let noise = frame(&mixture(1, 45_000), 1, true, false);
    let blob = [zeros.repeat(20), noise.repeat(20)].concat();
    let mut input = FrameReader::new(&*blob);
    let mut batches = 0;
    while let Some(batch) = input.batch().unwrap() {
        assert!(batch.frames.len() <= PACKED);
        let mut bytes = Vec::new();
        decode::decode(&batch.frames, WINDOW_LOG, &mut bytes).unwrap();
        assert!(bytes.len() <= CONTENT);
        batches += 1;
    }
    assert!(batches > 10);
    assert!(input.bytes().unwrap().is_empty());
}

#[test]
fn many_layers_share_a_pool() {
    let pool = pool(1).unwrap();
    let blobs: Vec<_> = (0..5).map(|seed| frames(seed, 100, 5000)).collect();
    let mut layers: Vec<_> =
        blobs.iter().map(|(blob, _)| Unzstd::new(&**blob, WINDOW_LOG, Some(&pool)).unwrap()).collect();
    let mut bytes = vec![Vec::new(); layers.len()];
    let mut buffer = [0; 3000];
    loop {
        let mut is_over = true;
        for (layer, bytes) in layers.iter_mut().zip(&mut bytes) {
            let count = layer.read(&mut buffer).unwrap();
            bytes.extend_from_slice(&buffer[..count]);
            is_over &= count == 0;
        }
        if is_over {
            break;
        }
    }
    for (bytes, (_, content)) in bytes.iter().zip(&blobs) {
        assert!(bytes == content);
    }
}

#[test]
fn a_stream_that_is_cut_is_told_wherever_it_is_cut() {
    let (blob, _) = frames(11, 12, 60);
    let pool = pool(2).unwrap();
    for end in 0..=blob.len() {
        let (bytes, ending) = read(Unzstd::new(&blob[..end], WINDOW_LOG, Some(&pool)).unwrap());
        let (expected, expected_ending) = sequentially(&blob[..end]);
        assert_eq!(bytes, expected, "{end}");
        assert_eq!(ending.is_ok(), expected_ending.is_ok(), "{end}");
        if let Err(error) = ending {
            assert_eq!(error.to_string(), format!("the zstd data end early, after {end} bytes"));
        }
    }
}

#[test]
fn a_fault_is_told_behind_all_that_is_before_it() {
    let parts: Vec<_> = (0..60).map(|seed| mixture(seed, 9000)).collect();
    let packed: Vec<_> = parts.iter().map(|part| frame(part, 3, true, true)).collect();
    let mut blob = packed.concat();
    let checksum = packed[..41].concat().len() - 1;
    blob[checksum] ^= 1;
    for threads in [0, 1, 4] {
        let (bytes, end) = unpack(&blob, threads);
        assert!(bytes.starts_with(&parts[..40].concat()), "{threads} threads");
        let error = end.unwrap_err().to_string();
        let at: usize = error.split_whitespace().nth(7).unwrap().parse().unwrap();
        assert!((checksum - packed[40].len()..=checksum).contains(&at) || threads == 0, "{error}");
        assert!(error.contains("checksum"), "{error}");
    }
}

#[test]
fn what_the_medium_says_is_told_behind_all_that_is_before_it() {
    struct Medium<'b>(&'b [u8]);
    impl Read for Medium<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::new(io::ErrorKind::ConnectionReset, "gone")),
                count => Ok(count),
            }
        }
    }
    let (blob, content) = frames(5, 200, 5000);
    let pool = pool(2).unwrap();
    for end in [blob.len(), blob.len() / 2] {
        let medium = io::BufReader::new(Medium(&blob[..end]));
        let (bytes, ending) = read(Unzstd::new(medium, WINDOW_LOG, Some(&pool)).unwrap());
        assert!(bytes == sequentially(&blob[..end]).0 && content.starts_with(&bytes));
        let error = ending.unwrap_err();
        assert_eq!((error.kind(), &*error.to_string()), (io::ErrorKind::ConnectionReset, "gone"));
    }
}

#[test]
fn what_zstd_does_not_take_in_a_stream_is_not_taken_at_once() {
    // A window of 1 MiB, and a block that repeats a byte 200,000 times, although the format allows 128 KiB.
    let block = (200_000_u32 << 3 | 0b011).to_le_bytes();
    let long = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 10 << 3], &block[..3], b"x"].concat();
    assert!(fault(&long, 2).contains("near byte"));
    // The same block with its size in the header, which zstd accepts if it gets the whole frame at once.
    let told = [&[0x28, 0xb5, 0x2f, 0xfd, 0b1000_0000, 10 << 3], &200_000_u32.to_le_bytes()[..], &long[6..]].concat();
    assert!(zstd::bulk::decompress(&told, 200_000).is_ok());
    assert!(fault(&told, 2).contains("near byte"));
    // The dictionary 7.
    let dictionary = [&[0x28, 0xb5, 0x2f, 0xfd, 0b0010_0001, 7, 3], &[0b0001_1001, 0, 0][..], b"abc"].concat();
    assert!(fault(&dictionary, 2).contains("Dictionary mismatch"));
    // A declared size below or above that of the blocks.
    for size in [2, 4] {
        let lie = [&[0x28, 0xb5, 0x2f, 0xfd, 0b0010_0000, size], &[0b0001_1001, 0, 0][..], b"abc"].concat();
        assert!(fault(&lie, 2).contains("near byte"), "{size}");
        // The same frame with an empty last block, for which zstd itself does not compare sizes.
        let lie = [&lie[..6], &[0b0001_1000, 0, 0], b"abc", &[1, 0, 0]].concat();
        for blob in [&lie, &[&*frame(b"good", 1, true, true), &lie, &*frame(b"more", 1, true, true)].concat()] {
            assert_as_sequentially(blob, 0);
            assert_as_sequentially(blob, 2);
            assert!(fault(blob, 0).contains("corruption"), "{size}");
        }
    }
    // A window larger than the limit, 2 GiB.
    let window = [&[0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3], &[0b0001_1001, 0, 0][..], b"abc"].concat();
    assert!(fault(&window, 2).contains("too much memory"));
    // An empty frame with a too large window, whose declared content fits even without room.
    let empty = [&[0x28, 0xb5, 0x2f, 0xfd, 0b1000_0000, 21 << 3][..], &[0; 4], &[1, 0, 0]].concat();
    assert!(fault(&empty, 2).contains("too much memory"));
    for blob in [long, told, dictionary, window, empty] {
        for blob in [&blob, &[frame(b"good", 1, true, true), blob.clone()].concat()] {
            assert_as_sequentially(blob, 0);
            assert_as_sequentially(blob, 2);
        }
    }
}

#[test]
fn the_largest_size_is_none() {
    let blob = [&[0x28, 0xb5, 0x2f, 0xfd, 0b1100_0000, 10 << 3][..], &[0xff; 8], &[0b0001_1001, 0, 0], b"abc"].concat();
    for threads in [0, 2] {
        assert_as_sequentially(&blob, threads);
        assert_eq!(unpack(&blob, threads).0, b"abc");
    }
}

#[test]
fn what_follows_the_last_frame_is_an_error() {
    for rest in [&b"more than that"[..], &[0; 20], b"x", &[0x28, 0xb5]] {
        let blob = [&*frame(b"data", 1, true, true), rest].concat();
        assert_as_sequentially(&blob, 0);
        assert_as_sequentially(&blob, 2);
        assert_eq!(unpack(&blob, 2).0, b"data");
    }
}

#[test]
fn a_frame_that_unpacks_to_very_much_is_decoded_in_order() {
    let zeros = frame(&vec![0; 20 << 20], 1, false, true);
    let blob = [&*zeros, &*frame(b"and more", 1, true, true)].concat();
    assert!(FrameReader::new(&*blob).batch().unwrap().is_none());
    let (bytes, end) = unpack(&blob, 2);
    end.unwrap();
    assert!(bytes == [&vec![0; 20 << 20][..], b"and more"].concat());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn any_frames_come_out(seed: u64, count in 1..80_usize, length in 1..40_000_usize, threads in 0..6_usize) {
        let (blob, content) = frames(seed, count, length);
        let (bytes, end) = unpack(&blob, threads);
        prop_assert!(end.is_ok() && bytes == content);
    }

    #[test]
    fn with_a_flipped_bit_the_same_comes_out_as_in_order(
        seed: u64, at: prop::sample::Index, bit in 0..8_u32, length in 10..10_000_usize, threads in 1..6_usize
    ) {
        let (mut blob, _) = frames(seed, 30, length);
        let at = at.index(blob.len());
        blob[at] ^= 1 << bit;
        assert_as_sequentially(&blob, threads);
    }

    #[test]
    fn what_is_cut_anywhere_ends_as_in_order(seed: u64, at: prop::sample::Index, threads in 1..6_usize) {
        let (blob, _) = frames(seed, 30, 3000);
        assert_as_sequentially(&blob[..at.index(blob.len())], threads);
    }

    #[test]
    fn noise_behind_a_frame_is_as_in_order(noise: Vec<u8>, threads in 0..6_usize) {
        assert_as_sequentially(&[frame(b"data", 1, true, true), noise].concat(), threads);
    }
}
