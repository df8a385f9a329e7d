//! Squashfs images of enroot, which pyxis runs (enroot, `doc/image-format.md`).

use std::path::Path;

use crate::Request;
use crate::medium::{Medium, Transport, TransportKind};
use crate::needs::PlaceNeeds;
use crate::source::SourceError;
use crate::target::Target;
use layer::squashfs::MAGIC;
use model::open_regular;

use super::{SquashImage, SquashRuntime, bytes_at};

pub(crate) static TRANSPORT: Transport = Transport {
    prefix: "sqsh:",
    syntax: "FILE",
    description: "a squashfs image of enroot (pyxis)",
    kind: TransportKind::File,
    mark: None,
    needs: PlaceNeeds::Path,
    parse: Target::plain,
    open: |target, request| open(target.path(), request),
};

/// True if a file begins as squashfs images do.
pub(super) fn is_squashfs(path: &Path) -> bool {
    bytes_at(path, 0).as_ref() == Some(MAGIC)
}

pub(super) fn open(path: &Path, _request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let file = open_regular(path).map_err(|error| SourceError::io(format!("opening {}", path.display()), error))?;
    let metadata = file.metadata().map_err(|error| SourceError::io(format!("reading {}", path.display()), error))?;
    if !is_squashfs(path) {
        let hint = "leave out sqsh: to have the form of the file detected";
        let what = format!("{} is not a squashfs image: it does not begin with hsqs", path.display());
        return Err(SourceError::invalid(what).with_hint(hint.to_owned()));
    }
    Ok(Box::new(SquashImage {
        name: format!("sqsh:{}", path.display()),
        file,
        range: 0..metadata.len(),
        platform: None,
        notes: Vec::new(),
        overlay: None,
        runtime: SquashRuntime::Enroot,
    }))
}
