//! Benchmarks of decoding, by format and number of threads: `cargo bench -p ncclcheck-unpack`.

#![allow(missing_docs, clippy::unwrap_used, reason = "a program, on data that is known")]

use std::fs;
use std::hint::black_box;
use std::io::{BufRead, Write as _};
use std::num::NonZeroUsize;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use unpack::inflate::Gunzip;
use unpack::pipe::Pipe;
use unpack::pool::Pool;
use unpack::unzstd::Unzstd;

/// Threads of the pool; 0 means decoding in order, without a pool.
const THREADS: [usize; 4] = [0, 1, 2, 4];

/// Content size of one zstd frame in bytes, as in zstd:chunked.
const FRAME: usize = 64 << 10;

/// Machine code: this program, repeated.
#[expect(clippy::disallowed_methods, reason = "this program")]
fn content() -> Vec<u8> {
    const ENOUGH: usize = 16 << 20;
    let program = fs::read(std::env::current_exe().unwrap()).unwrap();
    program.iter().copied().cycle().take(ENOUGH).collect()
}

fn gzip(content: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(content).unwrap();
    encoder.finish().unwrap()
}

fn zstd_frames(content: &[u8]) -> Vec<u8> {
    content.chunks(FRAME).flat_map(|part| zstd::bulk::compress(part, 3).unwrap()).collect()
}

/// Reads to the end, like a consumer that processes every block.
fn drain(mut decoder: impl BufRead) -> usize {
    let mut count = 0;
    loop {
        let some = black_box(decoder.fill_buf().unwrap()).len();
        if some == 0 {
            return count;
        }
        count += some;
        decoder.consume(some);
    }
}

fn decode(criterion: &mut Criterion) {
    let content = content();
    let (gzip, zstd) = (gzip(&content), zstd_frames(&content));
    let mut group = criterion.benchmark_group("decode");
    group.throughput(Throughput::Bytes(content.len() as u64)).sample_size(10);
    for threads in THREADS {
        let pool = NonZeroUsize::new(threads).map(Pool::new);
        group.bench_function(BenchmarkId::new("gzip", threads), |bencher| {
            bencher.iter(|| drain(Gunzip::new(&mut Pipe::of(&gzip), pool.as_ref())));
        });
        group.bench_function(BenchmarkId::new("zstd", threads), |bencher| {
            bencher.iter(|| drain(Unzstd::new(Pipe::of(&zstd), 27, pool.as_ref()).unwrap()));
        });
    }
    group.finish();
}

criterion_group!(benches, decode);
criterion_main!(benches);
