//! The records of a store: its images, its layers, and the documents of an image (containers/storage, `images.go`,
//! `layers.go`).

use std::fs;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use oci_spec::distribution::Reference as RegistryName;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::source::{Source, SourceError, StoredDocument, read_bounded};
use layer::scan::{OverlayMarks, OwnProcess};
use model::{BlobRef, Digest, Limits, OverLimit, open_regular, printable, without_content};

/// The way in which a store keeps layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StorageDriver {
    /// A folder of each layer's own files, with marks for those that it hides.
    Overlay,
    /// A folder of all files up to each layer.
    Vfs,
}

impl StorageDriver {
    /// The driver of this name.
    fn named(name: &str) -> Option<Self> {
        match name {
            "overlay" | "overlay2" => Some(Self::Overlay),
            "vfs" => Some(Self::Vfs),
            _ => None,
        }
    }

    /// The driver that engines choose if none is configured: that of the images that the store has, and vfs last
    /// (containers/storage, `drivers/driver.go`).
    fn found_in(root: &Path) -> Self {
        let is_there = |driver: Self| root.join(driver.name()).is_dir();
        if !is_there(Self::Overlay) && is_there(Self::Vfs) { Self::Vfs } else { Self::Overlay }
    }

    /// The prefix of its folders in the store.
    const fn name(self) -> &'static str {
        match self {
            Self::Overlay => "overlay",
            Self::Vfs => "vfs",
        }
    }
}

/// A store with one driver.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
    pub(super) driver: StorageDriver,
    limits: Limits,
    images: Vec<ImageRecord>,
    layers: Vec<LayerRecord>,
}

/// An image.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ImageRecord {
    /// The digest of the configuration, without its algorithm.
    pub(super) id: String,
    /// The uppermost layer.
    pub(super) layer: Option<String>,
    #[serde(default)]
    names: Vec<String>,
    pub(super) digest: Option<String>,
}

/// A layer.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct LayerRecord {
    id: String,
    pub(super) parent: Option<String>,
    /// The diff ID.
    pub(super) diff_digest: Option<String>,
}

impl Store {
    /// Reads the records of a store. `driver` is the name of the configured driver.
    pub(super) fn open(root: &Path, driver: Option<&str>, limits: &Limits) -> Result<Self, SourceError> {
        let unsupported = |name: &str| {
            SourceError::invalid(format!(
                "the store {} uses the storage driver {}; only overlay and vfs are supported",
                root.display(),
                printable(name)
            ))
            .with_hint("save the image with podman save, and check the archive".to_owned())
        };
        let driver = match driver {
            Some(name) => StorageDriver::named(name).ok_or_else(|| unsupported(name))?,
            None => StorageDriver::found_in(root),
        };
        let records = |name: &str| root.join(format!("{}-{name}s/{name}s.json", driver.name()));
        Ok(Self {
            root: root.to_owned(),
            driver,
            limits: limits.clone(),
            images: list(&records("image"), limits)?,
            layers: list(&records("layer"), limits)?,
        })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The image of this name or ID.
    pub(super) fn find(&self, name: &str) -> Result<Option<ImageRecord>, SourceError> {
        let by_name = names(name);
        let by_digest = name.split_once('@').map(|(name, digest)| (names(name), digest));
        let is_it = |image: &&ImageRecord| {
            let has = |names: &[String]| image.names.iter().any(|own| names.contains(own));
            let same_repository = |name: &str| {
                let repository =
                    |name: &str| name.parse::<RegistryName>().ok().map(|name| name.repository().to_owned());
                image.names.is_empty() || image.names.iter().any(|own| repository(own) == repository(name))
            };
            has(&by_name)
                || by_digest.as_ref().is_some_and(|(names, digest)| {
                    image.digest.as_deref() == Some(*digest) && names.iter().any(|name| same_repository(name))
                })
        };
        if let Some(image) = self.images.iter().find(is_it) {
            return Ok(Some(image.clone()));
        }
        let id = name.strip_prefix("sha256:").unwrap_or(name);
        let is_id = id.len() >= 3 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let mut found = self.images.iter().filter(|image| is_id && image.id.starts_with(id));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(SourceError::invalid(format!(
                "the IDs of several images in {} begin with {id}",
                self.root.display()
            ))),
            (image, _) => Ok(image.cloned()),
        }
    }

    pub(super) fn layer(&self, id: &str) -> Option<&LayerRecord> {
        self.layers.iter().find(|layer| layer.id == id)
    }

    /// The folder of a layer.
    pub(super) fn folder(&self, id: &str) -> PathBuf {
        match self.driver {
            StorageDriver::Overlay => self.root.join("overlay").join(id).join("diff"),
            StorageDriver::Vfs => self.root.join("vfs/dir").join(id),
        }
    }

    /// The documents of an image: its manifests and its configuration.
    pub(super) fn documents(&self, image: &ImageRecord) -> Result<StoredDocuments, SourceError> {
        let folder = self.root.join(format!("{}-images", self.driver.name())).join(&image.id);
        let what = || format!("reading {}", folder.display());
        let mut documents = StoredDocuments { place: folder.clone(), all: Vec::new() };
        for entry in fs::read_dir(&folder).map_err(|error| SourceError::io(what(), error))? {
            let path = entry.map_err(|error| SourceError::io(what(), error))?.path();
            if documents.all.len() >= self.limits.layers {
                let over = OverLimit::new(
                    format!("{} has too many files", folder.display()),
                    "layers",
                    self.limits.layers as u64,
                );
                return Err(SourceError::invalid(over.to_string()));
            }
            let what = format!("reading {}", path.display());
            let file = open_regular(&path).map_err(|error| SourceError::io(&what, error))?;
            let bytes = read_bounded(file, self.limits.document, &what)?;
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let shown = path.display().to_string();
            documents.all.push((name, StoredDocument::of_file(shown, bytes)));
        }
        Ok(documents)
    }

    /// The marks of the store's layers: an engine without root cannot set those of the system's.
    pub(super) fn marks(&self) -> Result<OverlayMarks, SourceError> {
        let io = |error| SourceError::io(format!("reading {}", self.root.display()), error);
        let owner = fs::metadata(&self.root).map_err(io)?.uid();
        let is_host = OwnProcess::read().map_err(|kind| io(kind.into()))?.has_users_of_the_machine();
        Ok(if owner == 0 && is_host { OverlayMarks::Trusted } else { OverlayMarks::User })
    }
}

/// The names that a user may mean by a name, as Podman resolves it.
fn names(name: &str) -> Vec<String> {
    let mut names = vec![name.to_owned()];
    for prefix in ["", "localhost/"] {
        let whole = format!("{prefix}{name}");
        if let Ok(parsed) = whole.parse::<RegistryName>() {
            names.push(parsed.whole());
        }
    }
    names
}

/// Reads a list of records; empty if the file does not exist.
fn list<T: DeserializeOwned>(path: &Path, limits: &Limits) -> Result<Vec<T>, SourceError> {
    let what = format!("reading {}", path.display());
    let file = match open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(SourceError::io(what, error)),
    };
    // A store has one record for each of its layers, so the limit is that of other lists of files.
    let bytes = read_bounded(file, limits.store_list, &what)?;
    serde_json::from_slice(&bytes).map_err(|error| {
        SourceError::invalid(format!("{} is malformed: {}", path.display(), without_content(&error.to_string())))
    })
}

/// The documents of an image, found by the digests of their bytes.
#[derive(Debug)]
pub(super) struct StoredDocuments {
    place: PathBuf,
    all: Vec<(String, StoredDocument)>,
}

impl StoredDocuments {
    fn find(&self, digest: &Digest) -> Result<&[u8], SourceError> {
        let found = self.all.iter().find(|(_, document)| document.digest == *digest);
        found.map(|(_, document)| document.bytes.as_slice()).ok_or_else(|| {
            SourceError::invalid(format!("{} has no document {digest}", self.place.display()))
                .with_hint("pull the image again".to_owned())
        })
    }
}

impl Source for StoredDocuments {
    fn top(&self) -> Result<StoredDocument, SourceError> {
        let manifest = self.all.iter().find(|(name, _)| name == "manifest");
        let missing = || SourceError::invalid(format!("{} has no manifest", self.place.display()));
        manifest.map(|(_, document)| document.clone()).ok_or_else(missing)
    }

    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError> {
        self.find(digest).map(<[u8]>::to_vec)
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        Ok(Box::new(self.find(&blob.digest)?))
    }
}
