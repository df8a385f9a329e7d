//! The documents and blobs of an engine's image, by digest: from the cache, or from the files of a store on this machine.

use std::fs::File;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use crate::layout::blob_path;
use crate::source::{Source, SourceError, StoredDocument, read_bounded};
use layer::cache::ScanCache;
use model::{BlobRef, Digest, Limits, open_regular};

use super::layer_db::LayerDb;

/// The content store of a containerd that dockerd has started itself, below the root of the engine (moby,
/// `libcontainerd/supervisor`).
const OWN_CONTENT: &str = "containerd/daemon/io.containerd.content.v1.content";
/// The content store of the system's containerd (containerd, `docs/ops.md`).
const SYSTEM_CONTENT: &str = "/var/lib/containerd/io.containerd.content.v1.content";

/// The folders in which an engine with this root folder keeps images.
pub(in crate::daemon) fn folders(root: &Path) -> [PathBuf; 2] {
    [root.to_owned(), PathBuf::from(SYSTEM_CONTENT)]
}

/// The files of an engine's store, as far as this process can read them.
#[derive(Debug, Default)]
pub(super) struct StoreFiles {
    /// Docker's own store of images.
    pub(super) layer_db: Option<LayerDb>,
    /// Content stores of containerd, which have the form of an image layout (containerd, `docs/content-flow.md`).
    content: Vec<PathBuf>,
}

impl StoreFiles {
    /// The files of an engine with this root folder and storage driver.
    pub(super) fn new(root: &Path, driver: &str) -> Self {
        let content = vec![root.join(OWN_CONTENT), PathBuf::from(SYSTEM_CONTENT)];
        Self { layer_db: LayerDb::new(root, driver), content }
    }

    /// Opens a blob of a content store.
    fn blob(&self, digest: &Digest) -> Option<File> {
        let path = blob_path(digest).to_string();
        self.content.iter().find_map(|folder| open_regular(&folder.join(path.trim_start_matches('/'))).ok())
    }

    /// Returns true if a content store has a blob of this size.
    pub(super) fn has(&self, blob: &BlobRef) -> bool {
        let metadata = self.blob(&blob.digest).and_then(|file| file.metadata().ok());
        metadata.is_some_and(|metadata| metadata.is_file() && metadata.len() == blob.size)
    }

    fn document(&self, digest: &Digest) -> Option<File> {
        let config = self.layer_db.as_ref().and_then(|store| open_regular(&store.config(digest)).ok());
        config.or_else(|| self.blob(digest))
    }
}

/// What is known of an image without an export.
#[derive(Debug)]
pub(super) struct StoreContents<'a> {
    /// ID of the image.
    pub(super) id: &'a Digest,
    pub(super) files: &'a StoreFiles,
    pub(super) cache: &'a ScanCache,
    pub(super) limits: &'a Limits,
}

impl StoreContents<'_> {
    /// The document with this digest, verified.
    pub(super) fn document(&self, digest: &Digest) -> Option<Vec<u8>> {
        let kept = self.cache.document(digest, self.limits);
        kept.or_else(|| {
            let file = self.files.document(digest)?;
            let bytes = read_bounded(file, self.limits.document, digest.as_str()).ok()?;
            let bytes = digest.is_of(&bytes).then_some(bytes)?;
            // Without it the engine is asked again where it keeps this image.
            self.cache.keep_document(&bytes, digest, self.limits);
            Some(bytes)
        })
    }

    fn missing(&self, digest: &Digest) -> SourceError {
        SourceError::missing(format!("{digest} of image {} is not at hand", self.id))
    }
}

impl Source for StoreContents<'_> {
    fn top(&self) -> Result<StoredDocument, SourceError> {
        Ok(StoredDocument::of_file(format!("image {}", self.id), self.manifest(self.id)?))
    }

    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError> {
        self.document(digest).ok_or_else(|| self.missing(digest))
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        if let Some(file) = self.files.blob(&blob.digest) {
            return Ok(Box::new(file));
        }
        Ok(Box::new(Cursor::new(self.manifest(&blob.digest)?)))
    }
}
