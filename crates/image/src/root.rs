//! An unpacked root file system: one layer, and no configuration except the launch environment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::source::SourceError;
use layer::scan::scan_folder;

use super::medium::{FolderMark, Medium, Transport, TransportKind};
use super::needs::PlaceNeeds;
use super::plan::{ImagePlan, LayerLocation, PlannedLayer};
use super::scanned::{ScannedLayer, ScannedLayers};
use super::target::Target;
use super::{ImageError, Request, ScanContext, names};

pub(super) static TRANSPORT: Transport = Transport {
    prefix: "root:",
    syntax: "DIR",
    description: "an unpacked root file system",
    kind: TransportKind::Folder,
    mark: Some(FolderMark {
        description: "a root file system (etc, usr)",
        is_in: |folder| ["etc", "usr", "bin"].iter().any(|name| folder.join(name).is_dir()),
    }),
    needs: PlaceNeeds::Path,
    parse: Target::plain,
    open: |target, _| open(target.path()),
};

/// A folder that contains a root file system.
struct RootFolder {
    name: String,
    path: PathBuf,
}

/// Opens a folder.
fn open(path: &Path) -> Result<Box<dyn Medium>, SourceError> {
    if !path.is_dir() {
        return Err(SourceError::invalid(format!("{} is not a folder", path.display())));
    }
    Ok(Box::new(RootFolder { name: format!("root:{}", path.display()), path: path.to_owned() }))
}

impl Medium for RootFolder {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        let layer = PlannedLayer {
            location: LayerLocation::Folder(self.path.clone()),
            media_type: None,
            diff_id: None,
            history: None,
        };
        Ok(vec![ImagePlan {
            layers: vec![layer],
            notes: vec![environment(&request.environment)],
            ..ImagePlan::default()
        }])
    }

    fn scan(&self, _plan: &mut ImagePlan, _request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        let meter = context.progress.begin(&self.name, None);
        let scan = scan_folder(&self.path, context.tree(&*meter));
        let scan = scan.map_err(|error| ImageError::Layer { layer: self.name.clone(), error })?;
        Ok(vec![ScannedLayer::unhashed(scan)])
    }
}

/// Note on the origin of the environment.
fn environment(launch: &BTreeMap<String, String>) -> String {
    if launch.is_empty() {
        return "an unpacked root file system has no image configuration: its environment is unknown".to_owned();
    }
    format!("the environment consists only of the launch variables: {}", names(launch))
}
