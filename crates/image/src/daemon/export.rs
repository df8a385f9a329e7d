//! An image exported by an engine: the body of one response as a reader.

use std::io::{self, ErrorKind, Read};
use std::pin::Pin;
use std::time::Duration;

use bollard::errors::Error;
use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt};
use tokio::runtime::Runtime;

use model::part_mut;

use super::engine_error::{EngineError, complaint};
use crate::source::SourceErrorKind;

/// The chunks of a body, as they arrive.
pub(super) type Frames = Pin<Box<dyn Stream<Item = Result<Bytes, Error>> + Send>>;

/// A tar archive ends with two blocks of zeros (POSIX pax, "ustar Interchange Format").
const END: usize = 1024;
/// Number of last bytes kept to see how the stream ended; an engine's error text has a few hundred.
const TAIL: usize = 8 << 10;

/// The tar stream of one image. It is pull-based: data is fetched only on read, and dropping it closes the connection
/// at once because the connection makes progress only during reads.
pub(super) struct Export {
    // Declared before the runtime that it runs on, so that it is dropped first.
    frames: Frames,
    runtime: Runtime,
    patience: Duration,
    frame: Bytes,
    total: u64,
    tail: Vec<u8>,
    state: ExportState,
}

enum ExportState {
    Flowing,
    Ended,
    /// Further reads return the same error: an end of file would look like a complete stream.
    Failed(ErrorKind, String),
}

impl Export {
    /// Waits for the first bytes, however long the engine packs the image: until then the engine can still report a
    /// missing image by its HTTP status. `patience` bounds every single wait, not the whole transfer.
    pub(super) fn open(runtime: Runtime, frames: Frames, patience: Duration) -> Result<Self, EngineError> {
        let frame = Bytes::new();
        let total = 0;
        let tail = Vec::new();
        let mut export = Self { frames, runtime, patience, frame, total, tail, state: ExportState::Flowing };
        export.frame = export.next()?.unwrap_or_default();
        if export.frame.is_empty() {
            return Err(EngineError::new(SourceErrorKind::Invalid, "the engine sent nothing"));
        }
        // No member name in such an archive begins like this: it is an error text sent with status 200.
        if export.frame.starts_with(b"{") {
            while export.tail.len() < TAIL && export.next()?.is_some() {}
            let what =
                complaint(&export.tail).unwrap_or_else(|| "the engine sent JSON instead of an archive".to_owned());
            return Err(EngineError::new(SourceErrorKind::Invalid, what));
        }
        Ok(export)
    }

    /// The next chunk; `None` at the end of the body.
    fn next(&mut self) -> Result<Option<Bytes>, EngineError> {
        let Self { frames, runtime, patience, .. } = self;
        let next = runtime.block_on(async { tokio::time::timeout(*patience, frames.next()).await });
        let Ok(next) = next else {
            let why = format!("no data for {} seconds", patience.as_secs());
            return Err(EngineError::new(SourceErrorKind::Unreachable, why));
        };
        let Some(frame) = next.transpose().map_err(|error| EngineError::from(&error))? else { return Ok(None) };
        self.total = self.total.saturating_add(frame.len() as u64);
        let kept = frame.get(frame.len().saturating_sub(TAIL)..).unwrap_or_default();
        let surplus = (self.tail.len() + kept.len()).saturating_sub(TAIL);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend_from_slice(kept);
        Ok(Some(frame))
    }

    /// Checks that the body ended as an archive does. HTTP framing reveals a broken connection, but not an engine that
    /// gave up: it appends its error to what it has sent and ends the response properly.
    fn check_end(&self) -> Result<(), (ErrorKind, String)> {
        let end = self.tail.get(self.tail.len().saturating_sub(END)..).unwrap_or_default();
        if end.len() == END && end.iter().all(|&byte| byte == 0) {
            return Ok(());
        }
        match complaint(&self.tail) {
            Some(said) => Err((ErrorKind::Other, said)),
            None => Err((ErrorKind::UnexpectedEof, "the archive's end marker is missing".to_owned())),
        }
    }

    fn fail(&mut self, kind: ErrorKind, why: &str) -> io::Error {
        let text = format!("the engine's export broke off after {} bytes: {why}", self.total);
        self.frame = Bytes::new();
        self.state = ExportState::Failed(kind, text.clone());
        io::Error::new(kind, text)
    }
}

impl Read for Export {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        while self.frame.is_empty() {
            match &self.state {
                ExportState::Ended => return Ok(0),
                ExportState::Failed(kind, text) => return Err(io::Error::new(*kind, text.clone())),
                ExportState::Flowing => {}
            }
            match self.next() {
                Ok(Some(frame)) => self.frame = frame,
                Ok(None) => match self.check_end() {
                    Ok(()) => self.state = ExportState::Ended,
                    Err((kind, why)) => return Err(self.fail(kind, &why)),
                },
                Err(error) => return Err(self.fail(ErrorKind::ConnectionAborted, &error.text)),
            }
        }
        let count = buffer.len().min(self.frame.len());
        self.frame.copy_to_slice(part_mut(buffer, ..count)?);
        Ok(count)
    }
}
