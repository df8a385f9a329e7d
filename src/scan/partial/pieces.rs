//! Pieces of a blob, unpacked one after the other. Several may share one compressed stream.

use std::fmt;
use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::model::{Limits, OverLimit};

use super::super::Compression;
use super::stored::Stored;
use super::table::Chunk;

/// Counted from here on: small files may well be all zeros.
const SMALL: u64 = 64 << 20;

/// The bytes inside one stream that is at hand.
pub(super) fn unpacked<'a>(
    packed: &'a [u8],
    compression: Compression,
    limits: &Limits,
) -> io::Result<Box<dyn Read + 'a>> {
    Ok(match compression {
        Compression::None => Box::new(packed),
        Compression::Gzip => Box::new(GzDecoder::new(packed)),
        Compression::Zstd => {
            let mut decoder = ZstdDecoder::with_buffer(packed)?;
            decoder.window_log_max(limits.zstd_window_log)?;
            Box::new(decoder)
        }
    })
}

/// A bound was passed.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct TooMuch(pub(super) String);

/// The unpacked bytes of one piece at a time.
pub(super) struct Pieces<'a> {
    compression: Compression,
    window_log: u32,
    expansion: u64,
    state: State<'a>,
    /// Where the open stream begins in the blob, and how many of its unpacked bytes were read.
    stream: Option<(u64, u64)>,
    /// Bytes unpacked, and bytes that they were unpacked from.
    unpacked: u64,
    packed: u64,
    buffer: Box<[u8]>,
    /// How many bytes of the buffer were read last.
    count: usize,
}

enum State<'a> {
    Closed(Stored<'a>),
    Gzip(Box<GzDecoder<Stored<'a>>>),
    Zstd(ZstdDecoder<'static, Stored<'a>>),
    /// A decoder could not be made.
    Lost,
}

impl fmt::Debug for Pieces<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("compression", &self.compression).finish_non_exhaustive()
    }
}

impl<'a> Pieces<'a> {
    pub(super) fn new(stored: Stored<'a>, compression: Compression, limits: &Limits) -> Self {
        Self {
            compression,
            window_log: limits.zstd_window_log,
            expansion: limits.expansion,
            state: State::Closed(stored),
            stream: None,
            unpacked: 0,
            packed: 0,
            buffer: vec![0; 128 << 10].into(),
            count: 0,
        }
    }

    /// Goes to the first byte of a piece.
    pub(super) fn open(&mut self, chunk: &Chunk) -> io::Result<()> {
        let same = |(start, read): &(u64, u64)| *start == chunk.stored.start && *read <= chunk.inner;
        let mut ahead = chunk.inner;
        if let Some((_, read)) = self.stream.filter(same) {
            ahead -= read;
        } else {
            self.stream = None;
            let mut stored = self.close().ok_or_else(|| io::Error::other("the decoder is gone"))?;
            let sought = stored.seek(&chunk.stored);
            if let Err(error) = sought {
                self.state = State::Closed(stored);
                return Err(error);
            }
            self.packed += chunk.stored.end - chunk.stored.start;
            self.state = match self.compression {
                Compression::Zstd => {
                    let mut decoder = ZstdDecoder::with_buffer(stored)?;
                    decoder.window_log_max(self.window_log)?;
                    State::Zstd(decoder)
                }
                Compression::Gzip | Compression::None => State::Gzip(Box::new(GzDecoder::new(stored))),
            };
            self.stream = Some((chunk.stored.start, 0));
        }
        while ahead > 0 {
            let most = usize::try_from(ahead).unwrap_or(usize::MAX);
            let count = self.next(most)?;
            if count == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            ahead -= count as u64;
        }
        Ok(())
    }

    /// The bytes that were read last.
    pub(super) fn bytes(&self) -> &[u8] {
        self.buffer.get(..self.count).unwrap_or_default()
    }

    /// Reads the next bytes, `most` at most, and says how many; none at the end of the stream.
    pub(super) fn next(&mut self, most: usize) -> io::Result<usize> {
        let most = most.min(self.buffer.len());
        let buffer = self.buffer.get_mut(..most).unwrap_or_default();
        let count = loop {
            let read = match &mut self.state {
                State::Gzip(decoder) => decoder.read(buffer),
                State::Zstd(decoder) => decoder.read(buffer),
                State::Closed(_) | State::Lost => Ok(0),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                read => break read?,
            }
        };
        self.unpacked += count as u64;
        if let Some((_, read)) = &mut self.stream {
            *read += count as u64;
        }
        if self.unpacked > SMALL && self.unpacked / self.expansion > self.packed {
            let what = format!(
                "the layer unpacks to {} bytes for each of its {}",
                self.unpacked / self.packed.max(1),
                self.packed
            );
            let over = OverLimit::new(what, "expansion", self.expansion).to_string();
            return Err(io::Error::other(TooMuch(over)));
        }
        self.count = count;
        Ok(count)
    }

    /// Bytes of the blob that were read.
    pub(super) fn finish(mut self) -> u64 {
        self.close().map_or(0, |stored| stored.read_so_far())
    }

    fn close(&mut self) -> Option<Stored<'a>> {
        match std::mem::replace(&mut self.state, State::Lost) {
            State::Closed(stored) => Some(stored),
            State::Gzip(decoder) => Some(decoder.into_inner()),
            State::Zstd(decoder) => Some(decoder.finish()),
            State::Lost => None,
        }
    }
}
