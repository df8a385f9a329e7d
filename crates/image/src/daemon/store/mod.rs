//! Images that need no export: those whose documents and layers are in the cache, and those whose store can be read on
//! this machine. The image ID is a digest, of the configuration or of an index or manifest, from which every other
//! digest follows. All bytes are verified, so the answer does not depend on where they came from.

mod contents;
mod layer_db;
mod tar_split;

use std::collections::BTreeMap;
use std::io::Read;

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::go_json::parse_document;
use crate::oci::Finder;
use crate::plan::{DescribedLayer, ImagePlan, LayerLocation, check_platform, configure};
use crate::scanned::ScannedLayers;
use crate::source::{Source as _, SourceError};
use crate::{Request, ScanContext, layers};
use model::{BlobRef, Digest};

use super::Engine;
pub(super) use contents::folders;
use contents::{StoreContents, StoreFiles};
use tar_split::TarSplit;

/// An image of an engine, without an export.
#[derive(Debug)]
pub(super) struct StoredImage {
    id: Digest,
    files: StoreFiles,
    /// The layers that Docker has unpacked, by diff ID.
    unpacked: BTreeMap<Digest, TarSplit>,
}

/// The field that distinguishes a configuration from a manifest or an index.
#[derive(Deserialize)]
struct ConfigShape {
    rootfs: RootFsShape,
}

#[derive(Deserialize)]
struct RootFsShape {
    /// Programs in Go write an empty list as `null`.
    diff_ids: Option<Vec<Digest>>,
    #[serde(flatten)]
    _others: IgnoredAny,
}

impl StoredImage {
    /// Plans the requested images; `None` if not all of their documents and layers are at hand, for any reason. The
    /// engine's export has the answer then.
    pub(super) fn plans(
        engine: &Engine,
        id: &Digest,
        request: &Request,
        context: ScanContext<'_>,
    ) -> Option<(Self, Vec<ImagePlan>)> {
        let mut image = Self { id: id.clone(), files: StoreFiles::default(), unpacked: BTreeMap::new() };
        if let Some(plans) = image.known(request, context) {
            return Some((image, plans));
        }
        let (root, driver) = engine.root()?;
        image.files = StoreFiles::new(&root, &driver);
        let plans = image.known(request, context)?;
        Some((image, plans))
    }

    fn known(&mut self, request: &Request, context: ScanContext<'_>) -> Option<Vec<ImagePlan>> {
        let contents = self.contents(context);
        let document = contents.document(&self.id)?;
        if let Ok(config) = parse_document::<ConfigShape>(&document) {
            let diff_ids = config.rootfs.diff_ids.unwrap_or_default();
            let described = self.described(&diff_ids, context)?;
            let plan = configure(&document, self.id.clone(), None, described, &request.limits).ok()?;
            check_platform(&plan, &request.choice).ok()?;
            return Some(vec![plan]);
        }
        let plans = Finder::plans(&contents, None, &request.choice, &request.limits).ok()?;
        let blobs = || plans.iter().flat_map(|plan| &plan.layers).map(|layer| layer.location.blob());
        let is_at_hand = |blob: BlobRef| {
            context.cache.blob(&blob.digest, context.limits).as_ref() == Some(&blob) || self.files.has(&blob)
        };
        if !blobs().all(|blob| blob.is_some_and(is_at_hand)) {
            return None;
        }
        // A configuration is read as a blob, which the cache does not keep.
        plans.iter().flat_map(ImagePlan::documents).for_each(|digest| drop(contents.document(digest)));
        Some(plans)
    }

    /// The layers of a configuration, whose tars are known, or which Docker has unpacked.
    fn described(&mut self, diff_ids: &[Digest], context: ScanContext<'_>) -> Option<Vec<DescribedLayer>> {
        let mut chain: Option<Digest> = None;
        let mut described = Vec::new();
        for diff_id in diff_ids {
            let upper = layer_db::chain(chain.as_ref(), diff_id);
            let blob = match context.cache.blob(diff_id, context.limits) {
                Some(blob) => blob,
                None => self.unpacked(&upper, diff_id)?,
            };
            chain = Some(upper);
            let location = LayerLocation::Blob { digest: blob.digest, size: blob.size };
            described.push(DescribedLayer { location, media_type: None });
        }
        Some(described)
    }

    /// The tar of the layer on top of a chain, which Docker has unpacked.
    fn unpacked(&mut self, chain: &Digest, diff_id: &Digest) -> Option<BlobRef> {
        let split = self.files.layer_db.as_ref()?.layer(chain)?;
        let blob = BlobRef { digest: diff_id.clone(), size: split.size().ok()? };
        self.unpacked.insert(diff_id.clone(), split);
        Some(blob)
    }

    /// Scans the layers of a plan.
    pub(super) fn scan(&self, plan: &ImagePlan, context: ScanContext<'_>) -> ScannedLayers {
        let contents = self.contents(context);
        let open = |location: &LayerLocation| {
            let blob = location.blob().ok_or_else(|| SourceError::invalid("a layer without a digest"))?;
            let reader: Box<dyn Read + Send + '_> = match self.unpacked.get(&blob.digest) {
                Some(split) => Box::new(split.read().map_err(|error| {
                    SourceError::io(format!("reading the layer {} in the engine's store", blob.digest.brief()), error)
                })?),
                None => contents.open(&blob)?,
            };
            Ok((reader, Some(blob.size)))
        };
        layers::scan(plan, &open, context)
    }

    fn contents<'a>(&'a self, context: ScanContext<'a>) -> StoreContents<'a> {
        StoreContents { id: &self.id, files: &self.files, cache: context.cache, limits: context.limits }
    }
}

#[cfg(test)]
mod tests;
