//! OCI image layouts (image-spec, `image-layout.md`), in a folder or in an archive.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use model::{BlobRef, Digest, ImagePath, Limits, open_regular};

use super::Request;
use super::by_digest::ByDigest;
use super::medium::{FolderMark, Medium, Transport, TransportKind};
use super::needs::PlaceNeeds;
use super::source::{Source, SourceError, StoredDocument, read_bounded};
use super::target::{Selector, Target};

pub(super) static TRANSPORT: Transport = Transport {
    prefix: "oci:",
    syntax: "DIR[:REF|@DIGEST]",
    description: "an OCI image layout",
    kind: TransportKind::Folder,
    mark: Some(FolderMark {
        description: "an image layout (index.json)",
        is_in: |folder| ["index.json", "oci-layout"].iter().any(|name| folder.join(name).exists()),
    }),
    needs: PlaceNeeds::Path,
    parse: Target::path_and_selector,
    open: |target, request| open(target.path(), target.selector(), request),
};

/// Opens a layout in a folder.
fn open(path: &Path, selector: Option<&Selector>, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    if path.is_file() {
        let what = format!("{0} is a file, not a folder: write oci-archive:{0} for an archive", path.display());
        return Err(SourceError::invalid(what));
    }
    let mut source = ImageLayout::open(Folder::new(path), &request.limits)?;
    let mut selector = selector.cloned();
    // A manifest that its digest names is opened without the index, which may list all images of a mirror.
    if let Some(Selector::Digest(digest)) = &selector
        && source.files.open(&blob_path(digest))?.is_some()
    {
        source.top = Some(digest.clone());
        selector = None;
    }
    Ok(Box::new(ByDigest { name: format!("oci:{}", path.display()), selector, source }))
}

/// A reader from a file's first byte, and the file's size.
pub(super) type OpenedFile<'a> = (Box<dyn Read + Send + 'a>, u64);

/// A container of named files: a folder or an archive.
pub(super) trait LayoutFiles: Sync + std::fmt::Debug {
    /// Opens a file; `None` if it does not exist.
    fn open(&self, path: &ImagePath) -> Result<Option<OpenedFile<'_>>, SourceError>;

    /// The location of these files, for messages.
    fn place(&self) -> String;

    /// The reference of an image layout in these files, without a selector, as in [`Source::reference`].
    fn reference(&self) -> Option<String> {
        None
    }

    /// Reads a small file whole.
    fn document(&self, path: &ImagePath, limits: &Limits) -> Result<Option<Vec<u8>>, SourceError> {
        let Some((reader, _)) = self.open(path)? else { return Ok(None) };
        let what = format!("reading {path} of {}", self.place());
        read_bounded(reader, limits.document, &what).map(Some)
    }
}

impl<F: LayoutFiles> LayoutFiles for &F {
    fn open(&self, path: &ImagePath) -> Result<Option<OpenedFile<'_>>, SourceError> {
        (**self).open(path)
    }

    fn place(&self) -> String {
        (**self).place()
    }

    fn reference(&self) -> Option<String> {
        (**self).reference()
    }
}

/// A folder on this machine.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    /// The files below `path`.
    pub(super) fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Folder {
    fn file(&self, path: &ImagePath) -> Result<Option<(File, u64)>, SourceError> {
        // Names come from digests and from this program, never from the image, so they cannot leave the folder.
        let full = self.0.join(String::from_utf8_lossy(path.as_bytes()).as_ref());
        match open_regular(&full) {
            Ok(file) => {
                let size = file
                    .metadata()
                    .map_err(|error| SourceError::io(format!("reading {}", full.display()), error))?
                    .len();
                Ok(Some((file, size)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SourceError::io(format!("opening {}", full.display()), error)),
        }
    }
}

impl LayoutFiles for Folder {
    fn open(&self, path: &ImagePath) -> Result<Option<OpenedFile<'_>>, SourceError> {
        Ok(self.file(path)?.map(|(file, size)| (Box::new(file) as Box<dyn Read + Send>, size)))
    }

    fn place(&self) -> String {
        self.0.display().to_string()
    }

    fn reference(&self) -> Option<String> {
        Some(format!("{}{}", TRANSPORT.prefix, self.0.display()))
    }
}

/// An image layout.
#[derive(Debug)]
pub(super) struct ImageLayout<F> {
    files: F,
    limits: Limits,
    /// The manifest or index that is read in place of `index.json`.
    top: Option<Digest>,
}

impl<F: LayoutFiles> ImageLayout<F> {
    /// Opens the layout in these files.
    pub(super) fn open(files: F, limits: &Limits) -> Result<Self, SourceError> {
        if files.open(&ImagePath::from("index.json"))?.is_none() {
            let what = format!("{} is not an OCI image layout: it has no index.json", files.place());
            return Err(SourceError::invalid(what));
        }
        Ok(Self { files, limits: limits.clone(), top: None })
    }

    fn blob(&self, digest: &Digest) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        let found = self.files.open(&blob_path(digest))?;
        let missing = || {
            SourceError::missing(format!("{} has no blob {digest}", self.files.place()))
                .with_hint("copy the image again, with all of its layers".to_owned())
        };
        found.map(|(reader, _)| reader).ok_or_else(missing)
    }
}

/// The path of a blob in a layout.
pub(super) fn blob_path(digest: &Digest) -> ImagePath {
    ImagePath::from(format!("blobs/{}/{}", digest.algorithm(), digest.hex()).as_str())
}

impl<F: LayoutFiles> Source for ImageLayout<F> {
    fn top(&self) -> Result<StoredDocument, SourceError> {
        if let Some(digest) = &self.top {
            let bytes = self.manifest(digest)?;
            let mut hasher = digest.hasher();
            hasher.update(&bytes);
            let found = hasher.finish();
            let place = self.files.place();
            if found != *digest {
                let what = format!("document {digest} of {place} is corrupt: its bytes have the digest {found}");
                return Err(SourceError::invalid(what));
            }
            let name = format!("document {digest} of {place}");
            return Ok(StoredDocument { name, digest: digest.clone(), media_type: None, bytes });
        }
        let most = Limits { document: self.limits.document.max(self.limits.indexes), ..self.limits.clone() };
        let bytes = self.files.document(&ImagePath::from("index.json"), &most)?.unwrap_or_default();
        Ok(StoredDocument::of_file(format!("index.json of {}", self.files.place()), bytes))
    }

    fn reference(&self) -> Option<String> {
        self.files.reference()
    }

    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError> {
        let what = format!("reading blob {digest} of {}", self.files.place());
        read_bounded(self.blob(digest)?, self.limits.document, &what)
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        self.blob(&blob.digest)
    }
}
