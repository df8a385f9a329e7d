//! An image whose layers an engine on this machine keeps as folders. They are read where they are, and nothing of them can be
//! verified: what was packed into a layer cannot be told from a folder.

use std::path::Path;

use crate::image::daemon::Unpacked;
use crate::layer::scan::{Annotations, scan_overlay};
use crate::model::ImagePath;

use super::layers::describe;
use super::plan::{ImagePlan, LayerLocation, PlannedLayer};
use super::scanned::ScannedLayer;
use super::{ImageError, ScanContext};

/// What the engine says of the image.
pub(super) fn plan(image: &Unpacked) -> ImagePlan {
    let layer = |(path, diff_id): &(std::path::PathBuf, crate::model::Digest)| PlannedLayer {
        location: LayerLocation::Member(ImagePath::normalise(path.as_os_str().as_encoded_bytes())),
        media_type: None,
        annotations: Annotations::new(),
        diff_id: diff_id.clone(),
        history: None,
    };
    ImagePlan {
        manifest: None,
        annotations: Annotations::new(),
        config_digest: image.id.clone(),
        config: image.config.clone(),
        layers: image.layers.iter().map(layer).collect(),
        empty_steps: Vec::new(),
        notes: vec![
            "nothing of this image was verified: its layers were read from the folders where the engine keeps them, and its \
             configuration and digests are what the engine says (--unverified)"
                .to_owned(),
        ],
        is_verified: false,
    }
}

/// Scans the folders.
pub(super) fn scan(
    image: &Unpacked,
    plan: &ImagePlan,
    context: ScanContext<'_>,
) -> Result<Vec<ScannedLayer>, ImageError> {
    let folder = |(index, (path, planned)): (usize, (&Path, &PlannedLayer))| {
        let what = describe(index, plan.layers.len(), planned);
        let meter = context.progress.begin(&what, None);
        let scan = scan_overlay(path, context.limits, &*meter, context.cancel)
            .map_err(|error| ImageError::Layer { layer: what, error })?;
        let size = scan.unpacked;
        Ok(ScannedLayer::whole(scan, planned.diff_id.clone(), size))
    };
    image.layers.iter().map(|(path, _)| path.as_path()).zip(&plan.layers).enumerate().map(folder).collect()
}
