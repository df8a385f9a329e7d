use std::io::Write as _;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder};
use proptest::prelude::*;

use super::*;

/// Bytes that compress like programs: words that repeat near and far, runs, and noise.
fn mixture(seed: u64, length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(seed);
    let words: Vec<Vec<u8>> = (0..200).map(|_| (0..random.usize(1..40)).map(|_| random.u8(..)).collect()).collect();
    let mut bytes = Vec::new();
    while bytes.len() < length {
        match random.u8(..10) {
            0..6 => bytes.extend_from_slice(&words[random.usize(..words.len())]),
            6 => bytes.extend(std::iter::repeat_n(random.u8(..), random.usize(1..2000))),
            7 => {
                let from = random.usize(..bytes.len().max(1)).min(bytes.len());
                let some = bytes[from..].iter().copied().take(random.usize(1..300)).collect::<Vec<_>>();
                bytes.extend(some);
            }
            8 => bytes.extend((0..random.usize(1..3000)).map(|_| random.u8(..))),
            _ => bytes.extend((0..random.usize(1..3000)).map(|_| random.u8(b'a'..b'f'))),
        }
    }
    bytes.truncate(length);
    bytes
}

fn gzip(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A gzip stream with many small blocks.
fn gzip_in_blocks(bytes: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    for some in bytes.chunks(7001) {
        encoder.write_all(some).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

fn unpack(blob: &[u8], threads: usize) -> io::Result<Vec<u8>> {
    let pool = std::num::NonZeroUsize::new(threads).map(Pool::new);
    let mut bytes = Vec::new();
    io::copy(&mut Gunzip::new(&mut Pipe::of(blob), pool.as_ref()), &mut bytes)?;
    Ok(bytes)
}

fn fault(blob: &[u8], threads: usize) -> String {
    unpack(blob, threads).unwrap_err().to_string()
}

#[test]
fn every_level_comes_out_with_any_number_of_threads() {
    for level in 0..=9 {
        let bytes = mixture(level.into(), 900_000);
        for blob in [gzip(&bytes, level), gzip_in_blocks(&bytes, level)] {
            for threads in [0, 1, 3, 5] {
                assert!(unpack(&blob, threads).unwrap() == bytes, "level {level}, {threads} threads");
            }
        }
    }
}

#[test]
fn stretches_are_decoded_ahead() {
    let bytes = mixture(1, 900_000);
    let blob = gzip_in_blocks(&bytes, 6);
    let chunk = |from: usize| {
        let mut bytes = Arc::<BufferPool<u8>>::default().take();
        bytes.extend_from_slice(&blob[from..from + CHUNK + OVERLAP]);
        Chunk { bytes, own: CHUNK }
    };
    let decode = |from| chunk::speculate(&chunk(from), MOST, &crate::pool::DecoderBuffers::default()).unwrap();
    let first = decode(CHUNK);
    let second = decode(2 * CHUNK);
    assert!(first.from.bit() < CHUNK * 8);
    assert_eq!(first.to.rebase(CHUNK), second.from);
}

#[test]
fn many_members_come_out() {
    for (seed, length) in [(1, 500), (2, 3000), (3, 40_000), (4, 300_000)] {
        let parts: Vec<_> =
            (0..1_000_000 / length).map(|at| mixture(seed + at as u64, length % (at * 7 + 11))).collect();
        let blob: Vec<u8> = parts.iter().flat_map(|part| gzip(part, 6)).collect();
        for threads in [0, 3, 5] {
            assert!(unpack(&blob, threads).unwrap() == parts.concat(), "{length} bytes, {threads} threads");
        }
    }
}

#[test]
fn blocks_and_members_of_nothing_come_out_however_many_there_are() {
    let stored = |is_final: u8| [is_final, 0, 0, 0xff, 0xff];
    let header = [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let blocks = [&header[..], &stored(0).repeat(60_000), &stored(1), &[0; 8]].concat();
    let members = [&header[..], &stored(1), &[0; 8]].concat().repeat(20_000);
    for threads in [0, 2] {
        assert_eq!(unpack(&blocks, threads).unwrap(), b"", "{threads} threads");
        assert_eq!(unpack(&members, threads).unwrap(), b"", "{threads} threads");
    }
}

#[test]
fn a_header_without_end_is_told() {
    let blob = [&[0x1f, 0x8b, 8, 8, 0, 0, 0, 0, 0, 3][..], &vec![b'x'; 300_000]].concat();
    assert!(fault(&blob, 0).contains("near byte 0: a gzip header exceeds the maximum length"));
}

#[test]
fn headers_with_everything_in_them_are_passed() {
    let mut header = vec![0x1f, 0x8b, 8, 0x1f, 1, 2, 3, 4, 0, 255, 3, 0, b'a', b'b', b'c'];
    header.extend_from_slice(b"name\0comment\0");
    let crc = crc32fast::hash(&header) as u16;
    header.extend_from_slice(&crc.to_le_bytes());
    let plain = gzip(b"data", 6);
    let blob = [&*header, &plain[10..]].concat();
    assert_eq!(unpack(&blob, 0).unwrap(), b"data");
    let mut broken = blob.clone();
    broken[5] ^= 1;
    assert!(fault(&broken, 0).contains("near byte 0: the CRC-16 of a gzip header is wrong"));
    for end in 1..blob.len() {
        assert!(fault(&blob[..end], 0).contains(&format!("end early, after {end} bytes")), "{end}");
    }
}

#[test]
fn a_stream_that_is_cut_is_an_error_wherever_it_is_cut() {
    let bytes = mixture(5, 200_000);
    let blob = gzip(&bytes, 6);
    for end in (1..blob.len()).step_by(997).chain(blob.len() - 40..blob.len()) {
        for threads in [0, 2] {
            assert_eq!(fault(&blob[..end], threads), format!("the gzip data end early, after {end} bytes"));
        }
    }
}

#[test]
fn what_follows_the_last_member_is_an_error() {
    let blob = [gzip(b"data", 6), b"more".to_vec()].concat();
    assert!(fault(&blob, 0).ends_with("what follows is not a gzip member"));
}

#[test]
fn codes_that_rfc_1951_does_not_allow_are_refused() {
    let member = |data: &[u8]| [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], data, &[0; 8]].concat();
    for (data, text) in [
        (&[0b110][..], "an invalid type"),
        (&[0b000, 5, 0, 5, 0], "does not match its complement"),
        // A fixed block with a match before any data.
        (&[0b0000_0011, 0b0000_0010, 0], "a match refers to bytes before the data"),
        // A dynamic block: 287 symbols.
        (&[0b1111_0100, 0, 0, 0, 0, 0], "too many length or distance symbols"),
        (&[0b0000_0100, 0, 0, 0, 0, 0], "the code length code is incomplete or oversubscribed"),
    ] {
        let fault = fault(&member(data), 0);
        assert!(fault.contains(text), "{fault}");
    }
}

#[test]
fn the_longest_matches_have_room_behind_literals() {
    let mut random = fastrand::Rng::with_seed(1);
    let long: Vec<u8> = (0..258).map(|_| random.u8(b'A'..b'Q')).collect();
    // Literals with short words, two of which fit into one table entry, and the longest match.
    let bytes: Vec<u8> = (0..40)
        .flat_map(|at| [(0..4 + at % 2).map(|_| random.u8(b'a'..b'q')).collect(), long.clone()].concat())
        .collect();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(9));
    encoder.write_all(&bytes).unwrap();
    let input = encoder.finish().unwrap();
    for room in 1..600 {
        let mut data = vec![0_u8; WINDOW + room + MARGIN];
        let mut at = WINDOW;
        let mut base = WINDOW;
        let mut unpacked = Vec::new();
        let mut decoder = BlockDecoder::default();
        decoder.go(&input, 0);
        loop {
            let mut output = Output { data: &mut data, at, base };
            let pause = decoder.run(&input, usize::MAX, &mut output).unwrap();
            let done = output.at - WINDOW;
            unpacked.extend_from_slice(&data[WINDOW..WINDOW + done]);
            data.copy_within(done..done + WINDOW, 0);
            (at, base) = (WINDOW, base.saturating_sub(done));
            if pause == (Pause::Block { is_final: true }) {
                break;
            }
        }
        assert!(unpacked == bytes, "{room} bytes of room");
    }
}

#[test]
fn the_last_block_may_look_like_the_lengths_of_a_stored_one() {
    // A stored block, and one with the fixed codes: 0x17, 0xff, 0xe0.
    let deflated = [0, 0, 0, 0xff, 0xff, 0x13, 0xff, 0xff, 0, 0];
    let bytes = [0x17, 0xff, 0xe0];
    let trailer = [crc32fast::hash(&bytes).to_le_bytes(), 3_u32.to_le_bytes()].concat();
    let blob = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff][..], &deflated, &trailer].concat();
    assert_eq!(unpack(&blob, 0).unwrap(), bytes);
}

#[test]
fn a_single_distance_may_have_an_incomplete_code() {
    // zlib writes such a code if all matches have the same distance.
    let bytes = [&mixture(3, 300)[..], &[7; 5000]].concat();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(9));
    encoder.write_all(&bytes).unwrap();
    assert_eq!(unpack(&gzip(&bytes, 9), 0).unwrap(), bytes);
}

#[test]
fn what_unpacks_to_very_much_is_decoded_in_order() {
    let bytes = [vec![0; 40 << 20], mixture(9, 1 << 20)].concat();
    assert!(unpack(&gzip(&bytes, 6), 2).unwrap() == bytes);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn what_flate2_packs_comes_out(seed: u64, length in 0..400_000_usize, level in 0..10_u32, threads in 0..6_usize) {
        let bytes = mixture(seed, length);
        prop_assert!(unpack(&gzip_in_blocks(&bytes, level), threads).unwrap() == bytes);
    }

    #[test]
    fn a_flipped_bit_never_gives_other_bytes(seed: u64, at: prop::sample::Index, bit in 0..8_u32, threads in 0..6_usize) {
        let bytes = mixture(seed, 120_000);
        let mut blob = gzip_in_blocks(&bytes, 6);
        let at = at.index(blob.len());
        blob[at] ^= 1 << bit;
        if let Ok(unpacked) = unpack(&blob, threads) {
            prop_assert!(unpacked == bytes, "byte {at}");
        }
    }

    #[test]
    fn noise_is_an_error(noise: Vec<u8>, threads in 0..2_usize) {
        let blob = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &noise].concat();
        prop_assert!(unpack(&blob, threads).is_err());
    }
}
