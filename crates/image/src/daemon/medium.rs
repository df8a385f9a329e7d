//! An engine's image as a medium: what is known of it, its store, or its export; its folders where verification is
//! waived.

use crate::archive::stream::Stream;
use crate::medium::{Medium, Transport, TransportKind};
use crate::needs::PlaceNeeds;
use crate::plan::ImagePlan;
use crate::scanned::ScannedLayers;
use crate::source::SourceError;
use crate::target::Target;
use crate::{ImageError, PlatformChoice, Request, ScanContext};
use model::Platform;

use super::store::StoredImage;
use super::unverified::FolderImage;
use super::{Engine, LocalImage};

pub(crate) static TRANSPORT: Transport = Transport {
    prefix: "docker-daemon:",
    syntax: "NAME",
    description: "an image in an engine",
    kind: TransportKind::Engine,
    mark: None,
    needs: PlaceNeeds::Engine,
    parse: Target::plain,
    open: |target, request| open(target.text(), request),
};

pub(crate) static FOLDERS: Transport = Transport {
    prefix: "docker-storage:",
    syntax: "NAME",
    description: "the same, read unverified from the engine's own folders (overlay2, as root)",
    kind: TransportKind::Engine,
    mark: None,
    needs: PlaceNeeds::Engine,
    parse: Target::plain,
    open: |target, request| open_folders(target.text(), request),
};

/// Opens the folders of the image of this name.
fn open_folders(name: &str, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let engine = Engine::connect(&request.options)?;
    let place = format!("docker-storage:{name} ({})", engine.describe());
    Ok(Box::new(FolderImage { name: place, folders: engine.folders(name)? }))
}

/// Opens the image of this name in the first engine that answers.
pub(crate) fn open(name: &str, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let engine = Engine::connect(&request.options)?;
    let place = format!("docker-daemon:{name} ({})", engine.describe());
    let image = engine.find(name)?;
    Ok(Box::new(EngineImage {
        name: place,
        what: format!("{name} of {}", engine.describe()),
        engine,
        image,
        opened: None,
    }))
}

/// An image in an engine.
struct EngineImage {
    /// Name for reports.
    name: String,
    /// Name in messages.
    what: String,
    engine: Engine,
    image: LocalImage,
    /// How the image is read; `None` until it is planned.
    opened: Option<OpenedImage>,
}

enum OpenedImage {
    Stored(StoredImage),
    Exported(Stream),
}

impl EngineImage {
    /// Requests an export by ID: a name without a tag would export every tag of the repository.
    fn export(&self, request: &Request) -> Result<Stream, SourceError> {
        let platform: Option<&Platform> = match &request.choice {
            PlatformChoice::One(platform) => Some(platform),
            PlatformChoice::Host | PlatformChoice::All => None,
        };
        let bytes = self.engine.export(self.image.id.as_str(), platform)?;
        Ok(Stream::new(self.name.clone(), &self.what, bytes, self.image.size))
    }

    /// Removes what the export adds to an image. An image whose ID is the digest of its configuration has no manifest;
    /// newer engines write one for the archive.
    fn without_export(&self, plan: ImagePlan) -> ImagePlan {
        if plan.config_digest.as_ref() != Some(&self.image.id) {
            return plan;
        }
        ImagePlan { manifest: None, ..plan }
    }
}

impl Medium for EngineImage {
    fn name(&self) -> &str {
        &self.name
    }

    fn plans(&mut self, request: &Request, context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError> {
        if let Some((stored, plans)) = StoredImage::plans(&self.engine, &self.image.id, request, context) {
            self.opened = Some(OpenedImage::Stored(stored));
            return Ok(plans);
        }
        let mut stream = self.export(request)?;
        let plans = stream.plans(request, context)?;
        for digest in plans.iter().flat_map(|plan| plan.documents().chain([&self.image.id])) {
            stream.keep_document(digest, context);
        }
        self.opened = Some(OpenedImage::Exported(stream));
        Ok(plans.into_iter().map(|plan| self.without_export(plan)).collect())
    }

    fn scan(&self, plan: &mut ImagePlan, request: &Request, context: ScanContext<'_>) -> ScannedLayers {
        match &self.opened {
            Some(OpenedImage::Stored(stored)) => stored.scan(plan, context),
            Some(OpenedImage::Exported(stream)) => stream.scan(plan, request, context),
            None => Err(ImageError::invalid(format!("{} was not planned", self.what))),
        }
    }
}
