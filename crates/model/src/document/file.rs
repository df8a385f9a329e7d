//! Bounded reading of text files: a user may name the wrong file, and it may be large.

use std::io::Read;
use std::path::{Path, PathBuf};

use crate::{Limits, OverLimit, bytes_within, cause, open_named};

/// A text file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The system's error, or the fault in the content.
    pub why: String,
}

/// Reads a text file of at most [`Limits::text_file`] bytes.
pub fn read_text(path: &Path, limits: &Limits) -> Result<String, FileError> {
    let file = open_named(path).map_err(|error| FileError { path: path.to_owned(), why: cause(&error) })?;
    read_text_from(file, path, limits)
}

/// Reads a text of at most [`Limits::text_file`] bytes, which errors call `path`.
pub fn read_text_from(reader: impl Read, path: &Path, limits: &Limits) -> Result<String, FileError> {
    let failed = |why: String| FileError { path: path.to_owned(), why };
    let too_large = || failed(OverLimit::new("file too large", "text_file", limits.text_file).to_string());
    let bytes = bytes_within(reader, limits.text_file).map_err(|error| failed(cause(&error)))?.ok_or_else(too_large)?;
    // Editors of Windows begin a text with a byte order mark, which belongs to the encoding.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").map(<[u8]>::to_vec).unwrap_or(bytes);
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(failed(
            "UTF-16 and not UTF-8: save it as UTF-8, in PowerShell with Out-File -Encoding utf8".to_owned(),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes().iter().take(good).filter(|byte| **byte == b'\n').count() + 1;
        failed(format!("not valid UTF-8: invalid byte at offset {good}, on line {line}"))
    })
}
