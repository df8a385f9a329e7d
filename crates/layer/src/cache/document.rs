//! Documents of images: configurations, manifests and indexes, each under its digest, which verifies it. They lie among
//! the scans, and are removed as those are. With the documents of an image and the scans of its layers, the image need
//! not be opened.

use model::{BlobRef, Digest, Limits, cause};

use super::key::Scanner;
use super::{Act, CacheLevel, CacheTrust, SHARED, ScanCache, entry};

impl ScanCache {
    /// The kept document with this digest. Only the local cache has documents.
    pub fn document(&self, digest: &Digest, limits: &Limits) -> Option<Vec<u8>> {
        let bytes = self.read_local(&name_of(digest, limits))?;
        digest.is_of(&bytes).then_some(bytes)
    }

    /// Keeps a document of a verified image. One that is too large for the cache is not kept.
    pub fn keep_document(&self, bytes: &[u8], digest: &Digest, limits: &Limits) {
        let Some(local) = self.local.as_ref().filter(|_| bytes.len() as u64 <= entry::MOST_STORED) else { return };
        self.attempt((CacheLevel::Local, Act::Write), local, |local| {
            local.write(&name_of(digest, limits), bytes).map_err(|error| cause(&error))
        });
    }

    /// The blob with this digest, if the local cache has its scan.
    pub fn blob(&self, digest: &Digest, limits: &Limits) -> Option<BlobRef> {
        let scanner = Scanner::of(limits);
        let name = scanner.entry(digest);
        let shared = || match self.trust {
            CacheTrust::Own => None,
            CacheTrust::Shared => self.read_local(&format!("{name}{SHARED}")),
        };
        let bytes = self.read_local(&name).or_else(shared)?;
        let size = entry::size(&bytes, digest, &scanner).ok()?;
        Some(BlobRef { digest: digest.clone(), size })
    }
}

fn name_of(digest: &Digest, limits: &Limits) -> String {
    Scanner::of(limits).entry(digest) + ".json"
}
