//! Decodes a gzip file to standard output: `gunzip FILE [THREADS]`. Without THREADS it decodes in order. It serves to measure
//! the decoder alone, and to compare its output with that of other decoders. A separate thread reads the file, as for layers.

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
    // Rust's `Stdout` would search all output for line ends.
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
