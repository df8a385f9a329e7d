//! Archives that contain an image, detected by their content: those of `docker save`, and image layouts.

pub(super) mod docker;
mod dual;
mod indexed;
pub(super) mod oci;
mod packed;
mod pipe;
pub(super) mod stream;

use std::fmt::Display;
use std::fs;
use std::path::Path;

use layer::tar::{TarError, TarErrorKind};
use model::open_regular;

use super::Request;
use super::medium::Medium;
use super::missing::missing_file;
use super::source::SourceError;
use super::target::Selector;

use self::docker::DockerArchive;
use self::dual::DualArchive;
use self::indexed::IndexedArchive;
use self::stream::Stream;

/// The document of an archive that lists its images. `docker save` of Docker 25 and later and `ctr images export` write
/// both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ArchiveForm {
    /// `index.json`, where the archive has it.
    Oci,
    /// `manifest.json`, where the archive has it.
    Docker,
    /// `index.json` where it has what was asked for, else `manifest.json`. Engines read them in this order: containerd
    /// (`core/images/archive`), Docker with containerd's store and Podman (`libimage/load.go`). It alone has every
    /// platform.
    Any,
}

/// How to get an archive, for those who named another file.
const SAVE: &str =
    "docker save -o FILE NAME writes an archive; NAME alone reads the image from the engine or the registry";

/// The error for a tar archive of other files.
fn not_an_image_archive(place: &str) -> SourceError {
    SourceError::invalid(format!("{place} is not an image archive: it has neither manifest.json nor index.json"))
        .with_hint(format!(
            "{SAVE}; a root file system, as docker export writes it, is read from a folder: root:FOLDER"
        ))
}

/// The message for a tar that cannot be read. `start` is the offset in the archive, in bytes, at which the reader began.
fn tar_message<E: Display>(name: &str, start: u64, error: &TarError<E>) -> String {
    match &error.what {
        TarErrorKind::Read(below) => format!("{name}: {below}"),
        TarErrorKind::Malformed(_) if start == 0 && error.offset < 512 => {
            format!("{name} is not an image archive (not tar, gzip, zstd, xz or bzip2)\n  help: {SAVE}")
        }
        TarErrorKind::Limit(over) => format!("{name}: {}", over.advice()),
        TarErrorKind::Malformed(_) => format!("{name} is damaged {error}"),
    }
}

/// Opens an archive: a compressed one and a pipe as a stream, any other through an index of its members.
pub(super) fn open(
    path: &Path,
    selector: Option<&Selector>,
    form: ArchiveForm,
    request: &Request,
) -> Result<Box<dyn Medium>, SourceError> {
    let io = |error| SourceError::io(format!("reading {}", path.display()), error);
    let metadata = fs::metadata(path).map_err(|error| missing_file(path, &error))?;
    if metadata.is_dir() {
        let what = format!("{} is a folder, not an archive: write oci:{0} for an image layout", path.display());
        return Err(SourceError::invalid(what));
    }
    let selector = selector.cloned();
    let name = format!("docker-archive:{}", path.display());
    let what = path.display().to_string();
    if !metadata.is_file() {
        let stream = Stream::new(name.clone(), &what, pipe::open(path, &metadata)?, None);
        return Ok(Box::new(stream.select(selector, form, &name)));
    }
    let file = || open_regular(path).map_err(io);
    let head = packed::head(&mut file()?).map_err(io)?;
    if head.is_empty() {
        return Err(SourceError::invalid(format!("{} is empty", path.display())).with_hint(SAVE.to_owned()));
    }
    let is_packed = packed::is_packed(&head);
    if is_packed || head.starts_with(&[0x1f, 0x8b]) || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) {
        let size = (!is_packed).then_some(metadata.len());
        let stream = Stream::new(name.clone(), &what, Box::new(file()?), size);
        return Ok(Box::new(stream.select(selector, form, &name)));
    }
    let files = IndexedArchive::read(path, &request.limits)?;
    let has_docker = files.contains("manifest.json");
    let has_oci = files.contains("index.json");
    match form {
        ArchiveForm::Any if has_docker && has_oci => {
            let docker = DockerArchive::new(files.clone(), selector.clone());
            Ok(Box::new(DualArchive::new(oci::open_indexed(files, path, selector, request)?, docker)))
        }
        ArchiveForm::Oci if has_oci => Ok(Box::new(oci::open_indexed(files, path, selector, request)?)),
        _ if has_docker => Ok(Box::new(DockerArchive::new(files, selector))),
        _ => Ok(Box::new(oci::open_indexed(files, path, selector, request)?)),
    }
}
