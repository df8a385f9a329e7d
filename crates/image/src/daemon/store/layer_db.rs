//! Docker's store with a storage driver: where it keeps the configuration and the layers of an image (moby,
//! `image/fs.go`, `layer/filestore.go`, `daemon/graphdriver`).

use std::path::{Path, PathBuf};

use model::{Digest, Hasher, text_within};

use super::tar_split::TarSplit;

/// The longest name of a layer's folder; Docker's have 64 or 65 characters.
const LONGEST_NAME: u64 = 100;

/// The store of one storage driver.
#[derive(Debug)]
pub(super) struct LayerDb {
    /// `image/DRIVER`.
    images: PathBuf,
    /// The folder of the driver, with a folder for each layer.
    layers: PathBuf,
    /// The folder in a layer's folder that has its files.
    content: &'static str,
}

impl LayerDb {
    /// The store of `driver` below the root of the engine; `None` for a driver whose layers are not folders.
    pub(super) fn new(root: &Path, driver: &str) -> Option<Self> {
        let (layers, content) = match driver {
            "overlay2" | "fuse-overlayfs" => (root.join(driver), "diff"),
            "vfs" => (root.join("vfs/dir"), ""),
            _ => return None,
        };
        Some(Self { images: root.join("image").join(driver), layers, content })
    }

    /// The file of the configuration with this digest.
    pub(super) fn config(&self, digest: &Digest) -> PathBuf {
        self.images.join("imagedb/content").join(digest.algorithm()).join(digest.hex())
    }

    /// The layer on top of a chain, by the chain's digest; `None` if it cannot be read.
    pub(super) fn layer(&self, chain: &Digest) -> Option<TarSplit> {
        let folder = self.images.join("layerdb").join(chain.algorithm()).join(chain.hex());
        let name = text_within(&folder.join("cache-id"), LONGEST_NAME).ok()?;
        let is_plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let content = is_plain.then(|| self.layers.join(name).join(self.content))?;
        TarSplit::open(folder.join("tar-split.json.gz"), &content).ok()
    }
}

/// The digest of a layer with those below it (OCI image-spec, `config.md`, "Layer ChainID").
pub(super) fn chain(below: Option<&Digest>, diff_id: &Digest) -> Digest {
    let Some(below) = below else { return diff_id.clone() };
    let mut hasher = Hasher::sha256();
    hasher.update(format!("{below} {diff_id}").as_bytes());
    hasher.finish()
}
