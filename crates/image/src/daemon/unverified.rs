//! An image whose layers an engine on this machine keeps as folders.

use crate::medium::Medium;
use crate::overlay::{folder_layer, scan_folders};
use crate::plan::{ImagePlan, check_platform};
use crate::scanned::ScannedLayers;
use crate::{ImageError, Request, ScanContext};
use layer::scan::OverlayMarks;

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

    fn scan(&self, plan: &mut ImagePlan, _request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        scan_folders(plan, Some(OverlayMarks::Trusted), context)
    }
}

/// The plan, as the engine reports the image.
fn plan(folders: &EngineFolders) -> ImagePlan {
    ImagePlan {
        config_digest: Some(folders.id.clone()),
        config: Some(folders.config.clone()),
        layers: folders.layers.iter().map(|(path, diff_id)| folder_layer(path.clone(), diff_id.clone())).collect(),
        notes: vec![
            "this image was not verified: its layers were read from the folders where the engine keeps them, and its \
             configuration and digests are as the engine reports them"
                .to_owned(),
        ],
        ..ImagePlan::default()
    }
}
