//! Images in the store of Podman, Buildah and CRI-O, read directly (containers-transports(5), `containers-storage:`;
//! containers/storage). No engine needs to run.

mod config;
mod records;

use std::io;
use std::path::PathBuf;

use layer::scan::{OverlayMarks, OwnProcess, ScanError};
use model::{Digest, printable};

use super::medium::{Medium, Transport, TransportKind};
use super::needs::{ImageNeeds, PlaceNeeds};
use super::oci::Finder;
use super::overlay::scan_folders;
use super::plan::{ImagePlan, LayerLocation, check_platform};
use super::scanned::ScannedLayers;
use super::source::SourceError;
use super::target::Target;
use super::{ImageError, Request, ScanContext};

use config::{Stores, named, stores};
use records::{ImageRecord, LayerRecord, StorageDriver, Store};

pub(super) static TRANSPORT: Transport = Transport {
    prefix: "containers-storage:",
    syntax: "[STORE]NAME",
    description: "an image in the store of Podman or Buildah, read without them",
    kind: TransportKind::Engine,
    mark: None,
    needs: PlaceNeeds::Store,
    parse: Target::plain,
    open: |target, request| open(target.text(), request),
};

/// The files that say where stores are, and the stores.
pub(super) fn needs(text: &str, request: &Request) -> ImageNeeds {
    let environment = &request.options.environment;
    // Read now, while it can be.
    let _kept = OwnProcess::read();
    let mut needs = ImageNeeds { files: config::configuration(environment).collect(), ..ImageNeeds::default() };
    // A reference or a configuration that is wrong is reported where the store is opened.
    let found = named(text).and_then(|(place, _)| stores(place, environment, &request.limits));
    needs.files.extend(found.into_iter().flat_map(|stores| stores.roots));
    needs
}

/// An image in a store.
struct StorageImage {
    /// Name for reports.
    name: String,
    /// The store that has the image's documents.
    store: Store,
    image: ImageRecord,
    /// The layers, lowest first, each with its folder.
    layers: Vec<(PathBuf, LayerRecord)>,
    marks: OverlayMarks,
}

/// Opens the image of this name in the first store that has it.
fn open(text: &str, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let (place, name) = named(text)?;
    let Stores { roots, driver } = stores(place, &request.options.environment, &request.limits)?;
    let known = roots
        .iter()
        .map(|root| Store::open(root, driver.as_deref(), &request.limits))
        .collect::<Result<Vec<_>, _>>()?;
    let places = || roots.iter().map(|root| root.display().to_string()).collect::<Vec<_>>().join(", ");
    let missing = || {
        SourceError::not_found(format!(
            "the store {} has no image '{}': list its images with podman images",
            places(),
            printable(name)
        ))
    };
    let mut found = known
        .iter()
        .enumerate()
        .filter_map(|(index, store)| store.find(name).transpose().map(|image| image.map(|image| (index, image))));
    let (index, image) = found.next().ok_or_else(missing)??;
    let layers = layers_of(&image, &known)?;
    let store = known.into_iter().nth(index).ok_or_else(missing)?;
    let marks = store.marks()?;
    let name = format!("containers-storage:{} ({})", printable(name), store.root().display());
    Ok(Box::new(StorageImage { name, store, image, layers, marks }))
}

/// The layers of an image, lowest first.
fn layers_of(image: &ImageRecord, stores: &[Store]) -> Result<Vec<(PathBuf, LayerRecord)>, SourceError> {
    let mut layers = Vec::new();
    let mut next = image.layer.clone();
    while let Some(id) = next.take() {
        let found = stores.iter().find_map(|store| Some((store.folder(&id), store.layer(&id)?)));
        let (folder, layer) = found.ok_or_else(|| {
            SourceError::invalid(format!(
                "the store has no layer '{}' of image {}",
                printable(&id),
                printable(&image.id)
            ))
            .with_hint("repair it with podman system check --repair, or pull the image again".to_owned())
        })?;
        next.clone_from(&layer.parent);
        if layers.iter().any(|(known, _)| *known == folder) {
            return Err(SourceError::invalid(format!("the layers of image {} form a loop", printable(&image.id))));
        }
        layers.push((folder, layer.clone()));
    }
    layers.reverse();
    Ok(layers)
}

impl StorageImage {
    /// Puts the folders of the store in place of the blobs of a manifest.
    fn place(&self, plan: &mut ImagePlan) -> Result<(), ImageError> {
        let wrong = |what: String| {
            let hint = Some("pull the image again".to_owned());
            ImageError::Source(SourceError::invalid(format!("{}: {what}", self.name)).with_hint(hint))
        };
        if plan.layers.len() != self.layers.len() {
            let here = self.layers.len();
            let there = plan.layers.len();
            return Err(wrong(format!("the store has {here} layers, but the manifest has {there}")));
        }
        for (index, (planned, (folder, stored))) in plan.layers.iter_mut().zip(&self.layers).enumerate() {
            let here = stored.diff_digest.as_deref();
            let said = planned.diff_id.as_ref();
            if here.is_some() && here != said.map(Digest::as_str) {
                let here = here.unwrap_or_default();
                let said = said.map_or("none", Digest::as_str);
                let here = printable(here);
                return Err(wrong(format!(
                    "layer {} has the diff ID {here} in the store, but {said} in the image configuration",
                    index + 1
                )));
            }
            planned.location = LayerLocation::Folder(folder.clone());
            planned.media_type = None;
        }
        if self.store.driver == StorageDriver::Vfs {
            // The folder of the uppermost layer has the files of all, of which no layer's diff ID and step hold.
            plan.layers.drain(..plan.layers.len().saturating_sub(1));
            for layer in &mut plan.layers {
                (layer.diff_id, layer.history) = (None, None);
            }
            plan.notes.push(
                "the storage driver vfs keeps the files of all layers in one folder: they are not attributed to layers \
                 and build steps"
                    .to_owned(),
            );
        }
        Ok(())
    }
}

impl Medium for StorageImage {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, _context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        let documents = self.store.documents(&self.image)?;
        let mut plans = Finder::plans(&documents, None, &request.choice, &request.limits)?;
        for plan in &mut plans {
            check_platform(plan, &request.choice)?;
            self.place(plan)?;
            plan.notes.push(
                "the layers were not verified: they were read from the folders where the store keeps them, from which \
                 their bytes cannot be reconstructed"
                    .to_owned(),
            );
        }
        Ok(plans)
    }

    fn scan(&self, plan: &mut ImagePlan, _request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        let marks = (self.store.driver == StorageDriver::Overlay).then_some(self.marks);
        scan_folders(plan, marks, context).map_err(|error| match error {
            ImageError::Layer { layer, error: ScanError::Read(error) } if is_refused(&error, self.marks) => {
                let what = format!("{layer}: {error}");
                let hint = "run it in the user namespace of the engine: podman unshare ncclcheck check ...".to_owned();
                SourceError::denied(what).with_hint(hint).into()
            }
            error => error,
        })
    }
}

/// True if the files of a store without root belong to other users of its namespace.
fn is_refused(error: &io::Error, marks: OverlayMarks) -> bool {
    marks == OverlayMarks::User && error.kind() == io::ErrorKind::PermissionDenied
}

#[cfg(test)]
mod tests;
