//! An archive with both `index.json` and `manifest.json`, as a medium.

use crate::by_digest::ByDigest;
use crate::layout::ImageLayout;
use crate::medium::Medium;
use crate::plan::ImagePlan;
use crate::scanned::ScannedLayers;
use crate::source::SourceErrorKind;
use crate::{ImageError, Request, ScanContext};

use super::docker::DockerArchive;
use super::indexed::IndexedArchive;

/// An archive on disk whose images are those of `index.json`, or those of `manifest.json` where the former has not what
/// was asked for: a name or a platform.
pub(super) struct DualArchive {
    oci: ByDigest<ImageLayout<IndexedArchive>>,
    docker: DockerArchive,
    is_docker: bool,
}

impl DualArchive {
    pub(super) const fn new(oci: ByDigest<ImageLayout<IndexedArchive>>, docker: DockerArchive) -> Self {
        Self { oci, docker, is_docker: false }
    }

    fn used(&self) -> &dyn Medium {
        if self.is_docker { &self.docker } else { &self.oci }
    }
}

impl Medium for DualArchive {
    fn name(&self) -> &str {
        self.used().name()
    }

    fn plans(&mut self, request: &Request, context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        let plans = first_or(self.oci.plans(request, context), || {
            self.is_docker = true;
            self.docker.plans(request, context)
        });
        self.is_docker &= plans.is_ok();
        plans
    }

    fn scan(&self, plan: &mut ImagePlan, request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        self.used().scan(plan, request, context)
    }
}

/// The images of `index.json`, or those of `manifest.json` if the former has none of those requested. Damage is an error
/// even so.
pub(super) fn first_or(
    first: Result<Vec<ImagePlan>, ImageError>,
    second: impl FnOnce() -> Result<Vec<ImagePlan>, ImageError>,
) -> Result<Vec<ImagePlan>, ImageError> {
    match first {
        Err(ImageError::Source(first)) if first.kind() == SourceErrorKind::NotFound => {
            second().map_err(|_also| first.into())
        }
        first => first,
    }
}
