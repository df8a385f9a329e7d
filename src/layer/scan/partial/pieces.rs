//! Decodes pieces of a blob in order. Several pieces may share one compressed stream.

use std::fmt;
use std::io::{self, Read};

use flate2::bufread::GzDecoder;
use zstd::stream::read::Decoder as ZstdDecoder;

use crate::model::{BoundsError, Limits, OverLimit, part, part_mut};

use super::super::Compression;
use super::piece_error::PieceError;
use super::spans::{Span, Spans};
use super::stored::StoredEntries;
use super::table::{Seal, TableChunk};

/// Unpacked size from which the ratio is checked: small files may consist of zeros.
const SMALL: u64 = 64 << 20;

/// Decompresses one stream in memory.
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

/// Compressed streams of a blob.
pub(super) enum Streams<'z> {
    /// Independent streams with one or more pieces each.
    Own(Compression),
    /// One gzip stream with spans.
    Spans(Vec<Span<'z>>),
}

impl Streams<'_> {
    /// Stored bytes in a thread's batch. If a span crosses the boundary of two batches, both threads read it.
    pub(super) fn batch(&self) -> u64 {
        const LEAST: u64 = 4 << 20;
        match self {
            Self::Own(_) => LEAST,
            Self::Spans(spans) => {
                spans.iter().map(|span| 8 * (span.stored.end - span.stored.start)).max().unwrap_or_default().max(LEAST)
            }
        }
    }
}

/// Decodes one piece at a time.
pub(super) struct Pieces<'a, 'z> {
    zstd_window_log: u32,
    expansion: u64,
    state: PieceState<'a, 'z>,
    /// Offset of the open stream in the blob, and the number of its unpacked bytes read so far.
    stream: Option<(u64, u64)>,
    /// Total of unpacked bytes, and of the stored bytes they came from.
    unpacked: u64,
    packed: u64,
    buffer: Box<[u8]>,
    /// Number of bytes in the buffer.
    count: usize,
}

enum PieceState<'a, 'z> {
    Closed(StoredEntries<'a>, Compression),
    Spans(Box<Spans<'a, 'z>>),
    Gzip(Box<GzDecoder<StoredEntries<'a>>>),
    Zstd(ZstdDecoder<'static, StoredEntries<'a>>),
    /// Creating a decoder failed, and the blob's reader was lost.
    Lost,
}

impl fmt::Debug for Pieces<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("stream", &self.stream).finish_non_exhaustive()
    }
}

impl<'a, 'z> Pieces<'a, 'z> {
    pub(super) fn new(stored: StoredEntries<'a>, streams: &'z Streams<'_>, limits: &Limits) -> Self {
        let state = match streams {
            Streams::Own(compression) => PieceState::Closed(stored, *compression),
            Streams::Spans(spans) => PieceState::Spans(Box::new(Spans::new(stored, spans))),
        };
        Self {
            zstd_window_log: limits.zstd_window_log,
            expansion: limits.expansion,
            state,
            stream: None,
            unpacked: 0,
            packed: 0,
            buffer: vec![0; 128 << 10].into(),
            count: 0,
        }
    }

    /// Opens a piece at its first byte.
    pub(super) fn open(&mut self, chunk: &TableChunk) -> Result<(), PieceError> {
        let same = |(start, read): &(u64, u64)| *start == chunk.stored.start && *read <= chunk.inner;
        let mut ahead = chunk.inner;
        if let Some((_, read)) = self.stream.filter(same) {
            ahead -= read;
        } else {
            self.stream = None;
            self.packed += chunk.stored.end - chunk.stored.start;
            self.begin(chunk)?;
            self.stream = Some((chunk.stored.start, 0));
        }
        while ahead > 0 {
            let most = usize::try_from(ahead).unwrap_or(usize::MAX);
            let count = self.next(most)?;
            if count == 0 {
                return Err(PieceError::Truncated);
            }
            ahead -= count as u64;
        }
        Ok(())
    }

    /// Opens the stream that contains a piece.
    fn begin(&mut self, chunk: &TableChunk) -> Result<(), PieceError> {
        if let Seal::Span(number) = chunk.seal {
            let PieceState::Spans(spans) = &mut self.state else { return Err(PieceError::Lost) };
            return spans.open(number);
        }
        let (mut stored, compression) = self.close().ok_or(PieceError::Lost)?;
        let sought = stored.seek(&chunk.stored);
        if let Err(error) = sought {
            self.state = PieceState::Closed(stored, compression);
            return Err(PieceError::Medium(error));
        }
        self.state = match compression {
            Compression::Zstd => {
                let mut decoder = ZstdDecoder::with_buffer(stored)?;
                decoder.window_log_max(self.zstd_window_log)?;
                PieceState::Zstd(decoder)
            }
            Compression::Gzip | Compression::None => PieceState::Gzip(Box::new(GzDecoder::new(stored))),
        };
        Ok(())
    }

    /// The bytes of the last read.
    pub(super) fn bytes(&self) -> Result<&[u8], BoundsError> {
        part(&self.buffer, ..self.count)
    }

    /// Reads up to `most` bytes and returns their number; 0 at the end of the stream.
    pub(super) fn next(&mut self, most: usize) -> Result<usize, PieceError> {
        let most = most.min(self.buffer.len());
        let buffer = part_mut(&mut self.buffer, ..most)?;
        let count = loop {
            let read = match &mut self.state {
                PieceState::Gzip(decoder) => decoder.read(buffer),
                PieceState::Zstd(decoder) => decoder.read(buffer),
                PieceState::Spans(spans) => break spans.read(buffer)?,
                PieceState::Closed(..) | PieceState::Lost => break 0,
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
            let what =
                format!("the layer expands {}-fold from {} bytes", self.unpacked / self.packed.max(1), self.packed);
            return Err(PieceError::Limit(OverLimit::new(what, "expansion", self.expansion)));
        }
        self.count = count;
        Ok(count)
    }

    /// Number of bytes read from the blob.
    pub(super) fn finish(mut self) -> u64 {
        match &self.state {
            PieceState::Spans(spans) => spans.read_so_far(),
            _ => self.close().map_or(0, |(stored, _)| stored.read_so_far()),
        }
    }

    /// Closes the open stream and returns the blob with its compression; `None` for spans.
    fn close(&mut self) -> Option<(StoredEntries<'a>, Compression)> {
        match std::mem::replace(&mut self.state, PieceState::Lost) {
            PieceState::Closed(stored, compression) => Some((stored, compression)),
            PieceState::Gzip(decoder) => Some((decoder.into_inner(), Compression::Gzip)),
            PieceState::Zstd(decoder) => Some((decoder.finish(), Compression::Zstd)),
            PieceState::Spans(_) | PieceState::Lost => None,
        }
    }
}
