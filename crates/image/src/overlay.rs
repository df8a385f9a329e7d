//! Layers that an engine keeps as folders of overlayfs. They are read in place and cannot be verified: the bytes of a
//! layer's tar cannot be reconstructed from a folder.

use std::path::PathBuf;

use layer::scan::{OverlayMarks, scan_folder, scan_overlay};
use model::Digest;

use super::layers::describe;
use super::plan::{ImagePlan, LayerLocation, PlannedLayer};
use super::scanned::{ScannedLayer, ScannedLayers};
use super::{ImageError, ScanContext};

/// A layer in a folder.
pub(super) fn folder_layer(path: PathBuf, diff_id: Digest) -> PlannedLayer {
    PlannedLayer { location: LayerLocation::Folder(path), media_type: None, diff_id: Some(diff_id), history: None }
}

/// Scans the layers of a plan, all of which are folders: of an overlayfs with these marks, or whole.
pub(super) fn scan_folders(plan: &ImagePlan, marks: Option<OverlayMarks>, context: ScanContext<'_>) -> ScannedLayers {
    let count = plan.layers.len();
    let scan = |(index, layer): (usize, &PlannedLayer)| {
        let what = describe(index, count, layer);
        let LayerLocation::Folder(path) = &layer.location else {
            return Err(ImageError::invalid(format!("{what} is not a folder")));
        };
        let meter = context.progress.begin(&what, None);
        let jobs = context.tree(&*meter);
        let scan = marks.map_or_else(|| scan_folder(path, jobs), |marks| scan_overlay(path, marks, jobs));
        scan.map(ScannedLayer::unhashed).map_err(|error| ImageError::Layer { layer: what, error })
    };
    plan.layers.iter().enumerate().map(scan).collect()
}
