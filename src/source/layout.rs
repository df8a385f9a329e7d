//! OCI image layouts (image-spec, `image-layout.md`): a folder, or the same in an archive.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use crate::model::{Hasher, ImagePath, Limits};

use super::{BlobRef, Document, Source, SourceError, read_bounded};

/// A file's bytes from the first on, and their number.
pub type Opened<'a> = (Box<dyn Read + Send + 'a>, u64);

/// Something that holds files by name: a folder or an archive.
pub trait Files: Sync + std::fmt::Debug {
    /// A file; `None` when it is not there.
    fn open(&self, path: &ImagePath) -> Result<Option<Opened<'_>>, SourceError>;

    /// For messages: where these files are.
    fn place(&self) -> String;

    /// A small file, whole.
    fn document(&self, path: &ImagePath, limits: &Limits) -> Result<Option<Vec<u8>>, SourceError> {
        let Some((reader, _)) = self.open(path)? else { return Ok(None) };
        let what = format!("reading {path} of {}", self.place());
        read_bounded(reader, limits.document, &what).map(Some)
    }
}

impl<F: Files> Files for &F {
    fn open(&self, path: &ImagePath) -> Result<Option<Opened<'_>>, SourceError> {
        (**self).open(path)
    }

    fn place(&self) -> String {
        (**self).place()
    }
}

/// A folder of this machine.
#[derive(Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Files below `path`.
    pub fn new(path: &Path) -> Self {
        Self(path.to_owned())
    }
}

impl Files for Folder {
    fn open(&self, path: &ImagePath) -> Result<Option<Opened<'_>>, SourceError> {
        // Names come from digests and from this program, never from the image: nothing leads out of the folder.
        let full = self.0.join(String::from_utf8_lossy(path.as_bytes()).as_ref());
        match File::open(&full) {
            Ok(file) => {
                let size = file
                    .metadata()
                    .map_err(|error| SourceError::io(format!("reading {}", full.display()), error))?
                    .len();
                Ok(Some((Box::new(file), size)))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(SourceError::io(format!("opening {}", full.display()), error)),
        }
    }

    fn place(&self) -> String {
        self.0.display().to_string()
    }
}

/// An image layout.
#[derive(Debug)]
pub struct Layout<F> {
    files: F,
    limits: Limits,
}

impl<F: Files> Layout<F> {
    /// The layout in these files.
    pub fn open(files: F, limits: &Limits) -> Result<Self, SourceError> {
        if files.open(&ImagePath::from("index.json"))?.is_none() {
            let what = format!("{} is no OCI image layout: it has no index.json", files.place());
            return Err(SourceError::invalid(what));
        }
        Ok(Self { files, limits: limits.clone() })
    }
}

/// Where a layout keeps a blob.
pub fn blob_path(blob: &BlobRef) -> ImagePath {
    ImagePath::from(format!("blobs/{}/{}", blob.digest.algorithm(), blob.digest.hex()).as_str())
}

impl<F: Files> Source for Layout<F> {
    fn top(&self) -> Result<Document, SourceError> {
        let bytes = self.files.document(&ImagePath::from("index.json"), &self.limits)?.unwrap_or_default();
        let mut hasher = Hasher::sha256();
        hasher.update(&bytes);
        Ok(Document { digest: hasher.finish(), media_type: None, bytes })
    }

    fn manifest(&self, blob: &BlobRef) -> Result<Vec<u8>, SourceError> {
        read_bounded(self.open(blob)?, self.limits.document, &format!("reading blob {}", blob.digest))
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        let found = self.files.open(&blob_path(blob))?;
        let missing = || SourceError::Invalid {
            what: format!("{} has no blob {}", self.files.place(), blob.digest),
            hint: Some("copy the image again, with all of its layers".to_owned()),
        };
        found.map(|(reader, _)| reader).ok_or_else(missing)
    }
}
