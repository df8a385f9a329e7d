//! Archives in pipes: process substitution (`<(docker save x)`), FIFOs, and `/dev/stdin`.

use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, Cursor, ErrorKind, Read};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_setfl};

use crate::source::SourceError;

/// Time limit for a program to open a FIFO for writing. Its first byte may come much later: engines prepare an archive for
/// minutes before they send any of it.
const WRITER: Duration = Duration::from_secs(30);
/// Pause between two looks for the writer.
const PAUSE: Duration = Duration::from_millis(20);

/// Opens a pipe for reading, or a terminal or another device that this process inherited. A device by its own name, such
/// as /dev/zero, may have no end.
pub(super) fn open(path: &Path, metadata: &Metadata) -> Result<Box<dyn Read + Send>, SourceError> {
    let failed = |error| SourceError::io(format!("opening {}", path.display()), error);
    if is_descriptor(path, "0") || path == Path::new("/dev/stdin") {
        return Ok(Box::new(io::stdin()));
    }
    let is_inherited = ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path.starts_with(folder));
    if !is_inherited && !metadata.file_type().is_fifo() {
        return Err(failed(io::Error::other("it is a device, not an archive")));
    }
    if is_inherited {
        // A writer that has ended leaves an inherited pipe at its end: no other program can open it.
        return Ok(Box::new(File::open(path).map_err(failed)?));
    }
    match await_writer(path, WRITER).map_err(failed)? {
        Some(pipe) => Ok(Box::new(pipe)),
        None => Err(SourceError::invalid(format!(
            "no program opened the pipe {} for writing within {} seconds",
            path.display(),
            WRITER.as_secs()
        ))
        .with_hint(format!("start the writer first: docker save IMAGE > {} &", path.display()))),
    }
}

/// Returns true if the path is the file descriptor of this number.
fn is_descriptor(path: &Path, number: &str) -> bool {
    ["/dev/fd", "/proc/self/fd"].iter().any(|folder| path == Path::new(folder).join(number))
}

/// Opens a FIFO that a program has opened for writing; `None` if no program does so in time.
fn await_writer(path: &Path, limit: Duration) -> io::Result<Option<impl Read + Send + use<>>> {
    let deadline = Instant::now() + limit;
    // Without this flag the call would wait for a writer, and without a limit.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let mut fifo = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let mut first = vec![0; 4096];
    let count = loop {
        match fifo.read(&mut first) {
            Ok(0) if Instant::now() >= deadline => return Ok(None),
            Ok(0) => thread::sleep(PAUSE),
            Ok(count) => break count,
            // A writer exists, and has written nothing yet.
            Err(error) if error.kind() == ErrorKind::WouldBlock => break 0,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    fcntl_setfl(&fifo, OFlags::empty())?;
    first.truncate(count);
    Ok(Some(Cursor::new(first).chain(fifo)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Write as _;
    use std::path::PathBuf;
    use std::process::Command;

    use super::*;

    #[expect(clippy::disallowed_methods, reason = "the standard library creates no FIFO")]
    fn fifo_in(folder: &Path) -> PathBuf {
        let fifo = folder.join("fifo");
        assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
        fifo
    }

    #[test]
    fn a_pipe_without_a_writer_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = fifo_in(folder.path());
        assert!(await_writer(&fifo, Duration::from_millis(60)).unwrap().is_none());
    }

    #[test]
    fn a_slow_writer_is_read_to_its_end() {
        let folder = tempfile::tempdir().unwrap();
        let fifo = fifo_in(folder.path());
        let metadata = fs::metadata(&fifo).unwrap();
        let writer = {
            let fifo = fifo.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(50));
                let mut file = OpenOptions::new().write(true).open(fifo).unwrap();
                for part in [&b"first "[..], b"second"] {
                    thread::sleep(Duration::from_millis(50));
                    file.write_all(part).unwrap();
                }
            })
        };
        let mut bytes = Vec::new();
        io::copy(&mut open(&fifo, &metadata).unwrap(), &mut bytes).unwrap();
        writer.join().unwrap();
        assert_eq!(bytes, b"first second");
    }
}
