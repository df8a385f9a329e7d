//! Folders that `skopeo copy … dir:PATH` writes (containers-transports(5)): `manifest.json` holds the manifest or
//! index, `HEX.manifest.json` each manifest of an index, and every blob is a file named by the hex digits of its
//! digest.
//!
//! Signatures (`signature-N`, `HEX.signature-N`) are stored beside them. They are not read: no rule uses them.

use std::io::Read;
use std::path::Path;

use serde::de::IgnoredAny;

use model::{BlobRef, Digest, ImagePath, Limits};

use super::Request;
use super::by_digest::ByDigest;
use super::layout::{Folder, LayoutFiles as _};
use super::medium::{FolderMark, Medium, Transport, TransportKind};
use super::needs::PlaceNeeds;
use super::source::{Source, SourceError, StoredDocument, read_bounded};
use super::target::Target;

pub(super) static TRANSPORT: Transport = Transport {
    prefix: "dir:",
    syntax: "DIR",
    description: "a folder written by `skopeo copy`",
    kind: TransportKind::Folder,
    mark: Some(FolderMark { description: "a copy by skopeo (version)", is_in: has_version }),
    needs: PlaceNeeds::Path,
    parse: Target::plain,
    open: |target, request| open(target.path(), request),
};

/// File name of the image's manifest or index.
const MANIFEST: &str = "manifest.json";

/// Beginning of the file `version`. Other folders may have files of these names, but not with this text.
const VERSION: &[u8; 29] = b"Directory Transport Version: ";

/// Advice for a damaged copy.
const COPY_AGAIN: &str = "copy the image again: skopeo copy SOURCE dir:PATH";

fn has_version(folder: &Path) -> bool {
    let files = Folder::new(folder);
    let Ok(Some((mut version, _))) = files.open(&ImagePath::from("version")) else { return false };
    let mut head = [0; VERSION.len()];
    version.read_exact(&mut head).is_ok() && head == *VERSION
}

fn open(path: &Path, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let source = Directory { files: Folder::new(path), limits: request.limits.clone() };
    source.file(MANIFEST, COPY_AGAIN)?;
    Ok(Box::new(ByDigest { name: format!("dir:{}", path.display()), selector: None, source }))
}

/// A folder written by skopeo.
#[derive(Debug)]
struct Directory {
    files: Folder,
    limits: Limits,
}

impl Directory {
    /// Opens a file; a missing one is an error with this advice.
    fn file(&self, name: &str, help: &str) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        let found = self.files.open(&ImagePath::from(name))?;
        let what = || format!("{}/{name} is missing", self.files.place());
        let missing = || SourceError::missing(what()).with_hint(help.to_owned());
        found.map(|(reader, _)| reader).ok_or_else(missing)
    }

    /// Reads a small file whole.
    fn document(&self, name: &str, help: &str) -> Result<Vec<u8>, SourceError> {
        let what = format!("reading {name} of {}", self.files.place());
        read_bounded(self.file(name, help)?, self.limits.document, &what)
    }

    fn broken(&self, name: &str, how: &str, help: &str) -> SourceError {
        SourceError::invalid(format!("{}/{name} {how}", self.files.place())).with_hint(help.to_owned())
    }
}

impl Source for Directory {
    fn top(&self) -> Result<StoredDocument, SourceError> {
        let bytes = self.document(MANIFEST, COPY_AGAIN)?;
        // No descriptor gives the digest of this file, so only malformed JSON reveals damage.
        serde_json::from_slice::<IgnoredAny>(&bytes)
            .map_err(|error| self.broken(MANIFEST, &format!("is not JSON: {error}"), COPY_AGAIN))?;
        Ok(StoredDocument::of_file(format!("{}/{MANIFEST}", self.files.place()), bytes))
    }

    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError> {
        let help = "copy every image of the index: skopeo copy --all SOURCE dir:PATH";
        self.document(&format!("{}.{MANIFEST}", digest.hex()), help)
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        self.file(blob.digest.hex(), COPY_AGAIN)
    }
}
