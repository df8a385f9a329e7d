use std::io::Cursor;

use super::*;

fn noise(length: usize) -> Vec<u8> {
    let mut random = fastrand::Rng::with_seed(length as u64);
    (0..length).map(|_| random.u8(..)).collect()
}

/// Lengths around multiples of a block.
fn lengths() -> impl Iterator<Item = usize> {
    let edges = [0, OVERLAP, BLOCK, OVERLAP + BLOCK, OVERLAP + 2 * BLOCK, 2 * OVERLAP + 2 * BLOCK];
    edges.into_iter().flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1])
}

/// The content of whole blocks, without the repeated bytes.
fn taken(mut pipe: Pipe) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    while let Some(block) = pipe.next_block().unwrap() {
        let again = bytes.len().min(OVERLAP);
        assert_eq!(block[..again], bytes[bytes.len() - again..]);
        bytes.extend_from_slice(&block[again..]);
        if block.len() < OVERLAP + BLOCK {
            break;
        }
    }
    assert_eq!(pipe.taken().load(Ordering::Relaxed), bytes.len() as u64);
    assert!(pipe.fill_buf().unwrap().is_empty(), "nothing comes after a short block");
    bytes
}

#[test]
fn blocks_begin_with_the_end_of_the_one_before() {
    for length in lengths() {
        let bytes = noise(length);
        assert!(taken(Pipe::of(&bytes)) == bytes, "{length} bytes, written");
        let read = with_pipe(&*bytes, |_| {}, &Cancel::default(), taken);
        assert!(read == bytes, "{length} bytes, read");
    }
}

#[test]
fn a_reader_sees_every_byte_once_and_so_does_who_watches() {
    for length in lengths() {
        let bytes = noise(length);
        let mut seen = Vec::new();
        let watch = |some: &[u8]| {
            seen.extend_from_slice(some);
            Ok(())
        };
        let read = |mut pipe: Pipe| {
            let mut read = Vec::new();
            io::copy(&mut pipe, &mut read).map(|_| (read, pipe.taken().load(Ordering::Relaxed)))
        };
        let source = Cursor::new(bytes.clone());
        let (read, count) = with_watched_pipe(source, watch, |_| {}, &Cancel::default(), read).unwrap();
        assert!(read == bytes && seen == bytes && count == length as u64, "{length} bytes");
    }
}

#[test]
fn what_was_looked_at_comes_again_with_its_block() {
    let bytes = noise(3 * BLOCK);
    let mut pipe = Pipe::of(&bytes);
    assert_eq!(pipe.fill_buf().unwrap()[..4], bytes[..4]);
    assert!(taken(pipe) == bytes);
}
