//! Spools a file that is scanned once but must be read in any order. The temporary file has no name, so it vanishes
//! when it is closed, even if this process is killed.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use model::{Gap, Limits, OverLimit};

/// Maximum number of pieces queued for writing.
const WAITING: usize = 16;

/// State of the spooled file.
pub(super) struct Spool {
    path: String,
    size: u64,
    folder: Option<PathBuf>,
    state: Result<Writer, Gap>,
}

/// A thread that writes in the background, so that the scan does not wait for the disk.
struct Writer {
    pieces: SyncSender<(u64, Vec<u8>)>,
    thread: JoinHandle<io::Result<File>>,
}

impl Spool {
    /// Starts to spool a file of this size. Errors are reported at the end.
    pub(super) fn new(path: String, size: u64, limits: &Limits) -> Self {
        let folder = limits.temporary.as_deref();
        let state = if size > limits.spool {
            let what = format!("{path}: it needs {size} bytes of temporary space");
            Err(Gap::new(OverLimit::new(what, "spool", limits.spool).to_string()))
        } else {
            folder
                .map_or_else(tempfile::tempfile, tempfile::tempfile_in)
                .map(|file| {
                    let (pieces, received) = sync_channel(WAITING);
                    Writer { pieces, thread: thread::spawn(move || write(file, &received)) }
                })
                .map_err(|error| gap(&path, folder, &error))
        };
        Self { path, size, folder: limits.temporary.clone(), state }
    }

    /// Writes the next bytes. Holes are left out, and read as zeros.
    pub(super) fn push(&mut self, offset: u64, bytes: &[u8]) {
        if let Ok(writer) = &self.state {
            // A writer that stopped early returns its error when it is joined.
            let _ = writer.pieces.send((offset, bytes.to_vec()));
        }
    }

    /// Completes the file.
    pub(super) fn finish(self) -> Result<Spooled, Gap> {
        let Writer { pieces, thread } = self.state?;
        drop(pieces);
        let written = thread.join().unwrap_or_else(|_panic| Err(io::Error::other("the writing thread failed")));
        // A hole at the end was never written.
        let file = written
            .and_then(|file| file.set_len(self.size).map(|()| file))
            .map_err(|error| gap(&self.path, self.folder.as_deref(), &error))?;
        Ok(Spooled { path: self.path, file, failed: RefCell::default() })
    }
}

/// The spooled file. Its reader may mistake an error of this machine for damage of the image, so this type keeps such
/// an error.
pub(super) struct Spooled {
    path: String,
    file: File,
    failed: RefCell<Option<io::Error>>,
}

impl Spooled {
    /// Fills the buffer with the bytes at `offset`.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset).inspect_err(|error| {
            // A read beyond the end is due to the image.
            if error.kind() != io::ErrorKind::UnexpectedEof {
                *self.failed.borrow_mut() = Some(io::Error::new(error.kind(), error.to_string()));
            }
        })
    }

    /// Returns the answer, unless this machine failed to read the file back.
    pub(super) fn vouch<T>(self, answer: T) -> Result<T, Gap> {
        let Some(error) = self.failed.into_inner() else { return Ok(answer) };
        let path = self.path;
        Err(Gap::new(format!("{path}: it cannot be read back from the temporary folder: {error}"))
            .settled_by("choose another folder with TMPDIR")
            .of_this_run())
    }
}

fn write(file: File, pieces: &Receiver<(u64, Vec<u8>)>) -> io::Result<File> {
    for (offset, bytes) in pieces {
        file.write_all_at(&bytes, offset)?;
    }
    Ok(file)
}

fn gap(path: &str, folder: Option<&Path>, error: &io::Error) -> Gap {
    let place = folder.map_or_else(|| "the temporary folder".to_owned(), |folder| folder.display().to_string());
    Gap::new(format!("{path}: it needs a temporary copy, which cannot be written to {place}: {error}"))
        .settled_by("choose a folder with enough space with TMPDIR")
        .of_this_run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_are_zeros_and_the_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let limits = Limits { temporary: Some(folder.path().to_owned()), ..Limits::default() };
        let mut spool = Spool::new("lib".to_owned(), 9, &limits);
        spool.push(0, b"ab");
        spool.push(4, b"cd");
        let mut bytes = [1; 9];
        let spooled = spool.finish().unwrap();
        spooled.read_at(0, &mut bytes).unwrap();
        assert!(spooled.read_at(1, &mut [0; 9]).is_err());
        spooled.vouch(()).unwrap();
        assert_eq!(&bytes, b"ab\0\0cd\0\0\0");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_failed_read_back_is_distinguished_from_a_damaged_image() {
        // A file that is only open for writing.
        let file = tempfile::NamedTempFile::new().unwrap();
        let file = File::options().write(true).open(file.path()).unwrap();
        let spooled = Spooled { path: "lib".to_owned(), file, failed: RefCell::default() };
        assert!(spooled.read_at(0, &mut [0]).is_err());
        let gap = spooled.vouch(()).unwrap_err();
        assert!(gap.is_transient && gap.why.starts_with("lib: it cannot be read back"), "{gap}");
    }

    #[test]
    fn a_failed_write_is_a_gap_that_names_the_remedy() {
        let nowhere = Limits { temporary: Some("/nonexistent".into()), ..Limits::default() };
        let gap = Spool::new("lib".to_owned(), 9, &nowhere).finish().err().unwrap();
        assert!(gap.is_transient);
        let gap = gap.to_string();
        assert!(gap.contains("cannot be written to /nonexistent") && gap.ends_with("TMPDIR"), "{gap}");
        let small = Limits { spool: 8, ..Limits::default() };
        let gap = Spool::new("lib".to_owned(), 9, &small).finish().err().unwrap();
        assert!(!gap.is_transient, "a limit is part of the request");
        let gap = gap.to_string();
        assert!(gap.contains("the limit is 8 (raise it with --limit spool=N)"), "{gap}");
    }
}
