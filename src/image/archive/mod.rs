//! Archives that contain an image, detected by their content: those of `docker save`, and image layouts.

pub(super) mod docker;
mod indexed;
pub(super) mod oci;
pub(super) mod stream;

use std::fmt::Display;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::layer::tar::{TarError, TarErrorKind};

use super::Request;
use super::medium::Medium;
use super::source::SourceError;
use super::target::Selector;

use self::docker::DockerArchive;
use self::indexed::IndexedArchive;
use self::stream::Stream;

/// The message for a tar that cannot be read. `start` is the offset in the archive, in bytes, at which the reader began.
fn tar_message<E: Display>(name: &str, start: u64, error: &TarError<E>) -> String {
    match &error.what {
        TarErrorKind::Read(below) => format!("{name}: {below}"),
        TarErrorKind::Malformed(_) if start == 0 && error.offset < 512 => {
            format!("{name} is not an image archive (not tar, gzip or zstd)")
        }
        _ => format!("{name} is damaged {error}"),
    }
}

/// Opens an archive: a compressed one as a stream, any other through an index of its members.
pub(super) fn open(
    path: &Path,
    selector: Option<&Selector>,
    request: &Request,
) -> Result<Box<dyn Medium>, SourceError> {
    let io = |error| SourceError::io(format!("reading {}", path.display()), error);
    let mut file = File::open(path).map_err(|error| SourceError::io(format!("opening {}", path.display()), error))?;
    let mut head = [0; 4];
    let metadata = file.metadata().map_err(io)?;
    if metadata.is_dir() {
        let what = format!("{} is a folder, not an archive: write oci:{0} for an image layout", path.display());
        return Err(SourceError::invalid(what));
    }
    let have = file.by_ref().take(4).read(&mut head).map_err(io)?;
    if have == 0 {
        return Err(SourceError::invalid(format!("{} is empty", path.display())));
    }
    let selector = selector.cloned();
    if matches!(head, [0x1f, 0x8b, ..] | [0x28, 0xb5, 0x2f, 0xfd]) {
        let file = File::open(path).map_err(io)?;
        let (name, what) = (format!("docker-archive:{}", path.display()), path.display().to_string());
        return Ok(Box::new(Stream::new(name, &what, Box::new(file), Some(metadata.len())).select(selector)));
    }
    let files = IndexedArchive::read(path, &request.limits)?;
    if files.contains("manifest.json") {
        return Ok(Box::new(DockerArchive::new(files, selector)));
    }
    oci::open_indexed(files, path, selector, request)
}
