//! Archives that contain an image, detected by their content: those of `docker save`, and image layouts.

pub(super) mod docker;
mod dual;
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
    form: ArchiveForm,
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
        let stream = Stream::new(name.clone(), &what, Box::new(file), Some(metadata.len()));
        return Ok(Box::new(stream.select(selector, form, &name)));
    }
    let files = IndexedArchive::read(path, &request.limits)?;
    let (has_docker, has_oci) = (files.contains("manifest.json"), files.contains("index.json"));
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
