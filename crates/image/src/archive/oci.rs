//! An image layout in a tar archive, as a medium.

use std::path::Path;

use crate::Request;
use crate::by_digest::ByDigest;
use crate::layout::ImageLayout;
use crate::medium::{Transport, TransportKind};
use crate::needs::PlaceNeeds;
use crate::source::SourceError;
use crate::target::{Selector, Target};

use super::indexed::IndexedArchive;
use super::{ArchiveForm, not_an_image_archive};

pub(crate) static TRANSPORT: Transport = Transport {
    prefix: "oci-archive:",
    syntax: "FILE[:REF]",
    description: "an OCI image layout in a tar archive",
    kind: TransportKind::File,
    mark: None,
    needs: PlaceNeeds::Path,
    parse: Target::path_and_selector,
    open: |target, request| super::open(target.path(), target.selector(), ArchiveForm::Oci, request),
};

/// Opens the layout in an archive.
pub(super) fn open_indexed(
    files: IndexedArchive,
    path: &Path,
    selector: Option<Selector>,
    request: &Request,
) -> Result<ByDigest<ImageLayout<IndexedArchive>>, SourceError> {
    let source = ImageLayout::open(files, &request.limits)
        .map_err(|_layout| not_an_image_archive(&path.display().to_string()))?;
    Ok(ByDigest { name: format!("{}{}", TRANSPORT.prefix, path.display()), selector, source })
}
