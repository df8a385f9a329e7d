//! The tars of layers that Docker has unpacked. It keeps all but the content of files, such as headers and padding, in a
//! record, and can thus write each tar again, byte for byte (github.com/vbatts/tar-split, `tar/storage`).

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use flate2::read::GzDecoder;
use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};
use serde::Deserialize;

use model::{line_within, open_regular};

/// Maximum length of a line in a record, in bytes. A line has the headers, and the padding, between two files.
const LONGEST_LINE: u64 = 64 << 20;

/// A layer's tar, in two parts.
#[derive(Debug)]
pub(super) struct TarSplit {
    record: PathBuf,
    /// The folder with the content of files.
    folder: OwnedFd,
}

/// A piece of a tar.
enum TarPiece {
    Bytes(Vec<u8>),
    /// The content of a file, of this size in bytes.
    File(PathBuf, u64),
}

/// A line of a record.
#[derive(Deserialize)]
struct RecordLine {
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    name: String,
    /// The name in Base64 if it is not UTF-8.
    name_raw: Option<String>,
    #[serde(default)]
    size: u64,
    payload: Option<String>,
}

impl RecordLine {
    const FILE: u8 = 1;
    const SEGMENT: u8 = 2;

    fn piece(self) -> io::Result<TarPiece> {
        let decoded = |text: &str| BASE64_STANDARD.decode(text).map_err(io::Error::other);
        match self.kind {
            // The payload of a file is its checksum, which the digest of the tar makes unnecessary.
            Self::FILE => {
                let name = self.name_raw.map_or_else(|| Ok(self.name.into_bytes()), |raw| decoded(&raw))?;
                let name = PathBuf::from(std::ffi::OsString::from_vec(name));
                Ok(TarPiece::File(name.strip_prefix("/").unwrap_or(&name).to_owned(), self.size))
            }
            Self::SEGMENT => decoded(&self.payload.unwrap_or_default()).map(TarPiece::Bytes),
            other => Err(io::Error::other(format!("a line of the unknown type {other}"))),
        }
    }
}

impl TarSplit {
    /// The layer of a record and a folder.
    pub(super) fn open(record: PathBuf, folder: &Path) -> io::Result<Self> {
        Ok(Self { record, folder: File::open(folder)?.into() })
    }

    /// Size of the tar, in bytes. Fails if a file of the layer cannot be read, or does not have its recorded size.
    pub(super) fn size(&self) -> io::Result<u64> {
        self.pieces()?.try_fold(0_u64, |total, piece| {
            let size = match piece? {
                TarPiece::Bytes(bytes) => bytes.len() as u64,
                TarPiece::File(_, 0) => 0,
                TarPiece::File(name, size) => self.file(&name, size).map(|_readable| size)?,
            };
            Ok(total.saturating_add(size))
        })
    }

    /// The tar. Its digest verifies both parts.
    pub(super) fn read(&self) -> io::Result<impl Read + Send + '_> {
        Ok(SplitReader { split: self, pieces: self.pieces()?, piece: Box::new(io::empty()) })
    }

    fn pieces(&self) -> io::Result<TarPieces> {
        let lines = BufReader::new(GzDecoder::new(BufReader::new(open_regular(&self.record)?)));
        Ok(TarPieces { lines })
    }

    /// Opens a regular file of this size in the folder, without following any link: the image has chosen the name.
    fn file(&self, name: &Path, size: u64) -> io::Result<File> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let within = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        let file = File::from(openat2(&self.folder, name, flags, Mode::empty(), within)?);
        let found = file.metadata()?;
        if found.is_file() && found.len() == size {
            return Ok(file);
        }
        Err(io::Error::other(format!("{} is not a file of {size} bytes", name.display())))
    }
}

/// The pieces of a tar, in order.
struct TarPieces {
    lines: BufReader<GzDecoder<BufReader<File>>>,
}

impl Iterator for TarPieces {
    type Item = io::Result<TarPiece>;

    fn next(&mut self) -> Option<io::Result<TarPiece>> {
        // A longer line is cut, and then is not JSON.
        let line = line_within(&mut self.lines, LONGEST_LINE).transpose()?;
        Some(line.and_then(|line| serde_json::from_slice(&line).map_err(io::Error::other)).and_then(RecordLine::piece))
    }
}

/// Reads a tar piece by piece.
struct SplitReader<'a> {
    split: &'a TarSplit,
    pieces: TarPieces,
    piece: Box<dyn Read + Send>,
}

impl Read for SplitReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let count = self.piece.read(buffer)?;
            if count > 0 {
                return Ok(count);
            }
            self.piece = match self.pieces.next().transpose()? {
                None => return Ok(0),
                Some(TarPiece::Bytes(bytes)) => Box::new(Cursor::new(bytes)),
                Some(TarPiece::File(_, 0)) => continue,
                Some(TarPiece::File(name, size)) => Box::new(self.split.file(&name, size)?.take(size)),
            };
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::fs;
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// Writes a record of these lines.
    pub(in super::super) fn record(path: &Path, lines: &str) {
        let mut gzip = GzEncoder::new(File::create(path).unwrap(), Compression::fast());
        gzip.write_all(lines.as_bytes()).unwrap();
        gzip.finish().unwrap();
    }

    fn split(lines: &str, fill: impl Fn(&Path)) -> (tempfile::TempDir, TarSplit) {
        let folder = tempfile::tempdir().unwrap();
        let record_path = folder.path().join("tar-split.json.gz");
        let content = folder.path().join("diff");
        record(&record_path, lines);
        fs::create_dir(&content).unwrap();
        fill(&content);
        let split = TarSplit::open(record_path, &content).unwrap();
        (folder, split)
    }

    fn bytes(split: &TarSplit) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        io::copy(&mut split.read()?, &mut bytes).map(|_| bytes)
    }

    #[test]
    fn headers_and_content_are_joined_in_order() {
        let lines = concat!(
            r#"{"type":2,"payload":"aGVhZA==","position":0}"#,
            "\n",
            r#"{"type":1,"name":"./a","size":4,"payload":"AAAAAAAAAAA=","position":1}"#,
            "\n",
            r#"{"type":1,"name":"empty","payload":null,"position":2}"#,
            "\n",
            r#"{"type":1,"name":"","name_raw":"L2L/","size":3,"payload":"","position":3}"#,
            "\n",
            r#"{"type":2,"payload":"ZW5k","position":4}"#,
            "\n",
        );
        let (_folder, split) = split(lines, |content| {
            fs::write(content.join("a"), "AAAA").unwrap();
            fs::write(content.join(PathBuf::from(std::ffi::OsString::from_vec(b"b\xff".to_vec()))), "BBB").unwrap();
        });
        assert_eq!(bytes(&split).unwrap(), b"headAAAABBBend");
        assert_eq!(split.size().unwrap(), 14);
    }

    #[test]
    fn a_file_that_the_layer_cannot_have_is_refused() {
        for name in ["missing", "short", "link", "linked/a", "../outside", "pipe", "folder"] {
            let lines = format!(r#"{{"type":1,"name":"{name}","size":4,"payload":""}}"#);
            let (_folder, split) = split(&lines, |content| {
                fs::write(content.join("../outside"), "AAAA").unwrap();
                fs::write(content.join("short"), "A").unwrap();
                fs::create_dir(content.join("folder")).unwrap();
                fs::write(content.join("folder/a"), "AAAA").unwrap();
                std::os::unix::fs::symlink("../outside", content.join("link")).unwrap();
                std::os::unix::fs::symlink("folder", content.join("linked")).unwrap();
                std::os::unix::net::UnixListener::bind(content.join("pipe")).unwrap();
            });
            assert!(split.size().is_err(), "{name}");
            assert!(bytes(&split).is_err(), "{name}");
        }
    }

    #[test]
    fn a_damaged_record_is_an_error() {
        for lines in ["{", r#"{"type":3,"payload":""}"#, r#"{"type":2,"payload":"?"}"#, "[]"] {
            assert!(bytes(&split(lines, |_| {}).1).is_err(), "{lines}");
        }
    }
}
