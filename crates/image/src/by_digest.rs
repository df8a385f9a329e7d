//! Media that serve content by digest: a registry, or an image layout in a folder or an archive.

use crate::source::{Source, SourceError};

use super::layers;
use super::medium::Medium;
use super::oci::Finder;
use super::plan::{ImagePlan, LayerLocation};
use super::scanned::ScannedLayers;
use super::target::Selector;
use super::{ImageError, Request, ScanContext};

/// A medium whose documents and layers come from a [`Source`].
pub(super) struct ByDigest<S> {
    /// Name for reports.
    pub(super) name: String,
    /// Selects among its images.
    pub(super) selector: Option<Selector>,
    pub(super) source: S,
}

impl<S: Source> Medium for ByDigest<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn place(&self) -> Option<String> {
        self.source.reference()
    }

    fn served_by(&self) -> Option<&str> {
        self.source.served_by()
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        Finder::plans(&self.source, self.selector.as_ref(), &request.choice, &request.limits)
    }

    fn scan(&self, plan: &mut ImagePlan, _request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        let open = |location: &LayerLocation| match location.blob() {
            Some(blob) => Ok((self.source.open(&blob)?, Some(blob.size))),
            None => Err(SourceError::invalid("a layer without a digest")),
        };
        layers::scan(plan, &open, context)
    }
}
