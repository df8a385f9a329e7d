//! An image whose layers an engine on this machine keeps as folders. They are read in place and cannot be verified: the
//! bytes of a layer's tar cannot be reconstructed from a folder.

use std::path::PathBuf;

use crate::image::layers::describe;
use crate::image::medium::Medium;
use crate::image::plan::{ImagePlan, LayerLocation, PlannedLayer, check_platform};
use crate::image::scanned::ScannedLayer;
use crate::image::{ImageError, Request, ScanContext};
use crate::layer::scan::{Annotations, scan_overlay};
use crate::model::Digest;

use super::EngineFolders;

/// An image in an engine's own folders, as a medium.
pub(super) struct FolderImage {
    /// Name for reports.
    pub(super) name: String,
    pub(super) folders: EngineFolders,
}

impl Medium for FolderImage {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        let plan = plan(&self.folders);
        check_platform(&plan, &request.choice)?;
        Ok(vec![plan])
    }

    fn scan(
        &self,
        plan: &mut ImagePlan,
        _request: &Request,
        context: ScanContext<'_>,
    ) -> Result<Vec<ScannedLayer>, ImageError> {
        let count = plan.layers.len();
        let folder = |(index, (layer, (path, _))): (usize, (&PlannedLayer, &(PathBuf, Digest)))| {
            let what = describe(index, count, layer);
            let meter = context.progress.begin(&what, None);
            let scan = scan_overlay(path, context.limits, &*meter, context.cancel);
            scan.map(ScannedLayer::unhashed).map_err(|error| ImageError::Layer { layer: what, error })
        };
        plan.layers.iter().zip(&self.folders.layers).enumerate().map(folder).collect()
    }
}

/// The plan, as the engine reports the image.
fn plan(folders: &EngineFolders) -> ImagePlan {
    let layer = |(path, diff_id): &(PathBuf, Digest)| PlannedLayer {
        location: LayerLocation::Folder(path.clone()),
        media_type: None,
        annotations: Annotations::new(),
        diff_id: Some(diff_id.clone()),
        history: None,
    };
    ImagePlan {
        manifest: None,
        annotations: Annotations::new(),
        config_digest: Some(folders.id.clone()),
        config: folders.config.clone(),
        layers: folders.layers.iter().map(layer).collect(),
        empty_steps: Vec::new(),
        notes: vec![
            "this image was not verified: its layers were read from the folders where the engine keeps them, and its \
             configuration and digests are as the engine reports them (--unverified)"
                .to_owned(),
        ],
    }
}
