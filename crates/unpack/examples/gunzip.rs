//! Unpacks a gzip file to standard output: `gunzip FILE [THREADS]`, with so many threads, or in order where none are named.
//! For measuring the decoder alone, and for comparing its bytes with those of others. The file is read as layers are, on a
//! thread of its own.

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::num::NonZeroUsize;
use std::os::fd::AsFd as _;

use unpack::inflate::Gunzip;
use unpack::pipe::{Cancel, Pipe, with_pipe};
use unpack::pool::Pool;

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or_else(|| io::Error::other("usage: gunzip FILE [THREADS]"))?;
    let threads = arguments.next().map(|text| text.parse::<NonZeroUsize>()).transpose().map_err(io::Error::other)?;
    let pool = threads.map(Pool::new);
    with_pipe(File::open(path)?, |_| {}, &Cancel::default(), |pipe| unpack(pipe, pool.as_ref()))
}

fn unpack(mut packed: Pipe, pool: Option<&Pool>) -> io::Result<()> {
    let mut unpacked = Gunzip::new(&mut packed, pool);
    // The lock of Rust's standard output would look for line ends in all of it.
    let mut out = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    loop {
        let bytes = unpacked.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        out.write_all(bytes)?;
        let count = bytes.len();
        unpacked.consume(count);
    }
}
