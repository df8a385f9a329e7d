//! Inflates one gzip file and says how many bytes came out, and does nothing else: what `scripts/bench` compares a check with.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};

use flate2::bufread::MultiGzDecoder;

const BUFFER: usize = 256 << 10;

fn main() -> io::Result<()> {
    let path = std::env::args_os().nth(1).ok_or_else(|| io::Error::other("usage: inflate FILE"))?;
    let mut gzip = MultiGzDecoder::new(BufReader::with_capacity(BUFFER, File::open(path)?));
    let mut buffer = vec![0; BUFFER];
    let mut bytes = 0_u64;
    loop {
        match gzip.read(&mut buffer)? {
            0 => return writeln!(io::stdout(), "{bytes}"),
            n => bytes += n as u64,
        }
    }
}
