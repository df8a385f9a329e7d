//! An engine's image as a medium: its export, or its folders where verification is waived.

use crate::image::archive::stream::Stream;
use crate::image::medium::{Medium, Transport, TransportKind};
use crate::image::source::SourceError;
use crate::image::target::Target;
use crate::image::{PlatformChoice, Request};
use crate::model::Platform;

use super::Engine;
use super::unverified::FolderImage;

pub(in crate::image) static TRANSPORT: Transport = Transport {
    prefix: "docker-daemon:",
    syntax: "NAME",
    description: "an image in an engine",
    kind: TransportKind::Engine,
    mark: None,
    parse: Target::plain,
    open: |target, request| open(target.text(), request),
};

/// Opens the image of this name in the first engine that answers.
pub(in crate::image) fn open(name: &str, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let engine = Engine::connect(&request.options)?;
    let place = format!("docker-daemon:{name} ({})", engine.describe());
    if request.unverified {
        return Ok(Box::new(FolderImage { name: place, folders: engine.folders(name)? }));
    }
    let image = engine.find(name)?;
    let platform: Option<&Platform> = match &request.choice {
        PlatformChoice::One(platform) => Some(platform),
        PlatformChoice::Host | PlatformChoice::All => None,
    };
    // Export by ID: a name without a tag would export every tag of the repository.
    let export = engine.export(image.id.as_str(), platform)?;
    let what = format!("{name} of {}", engine.describe());
    Ok(Box::new(Stream::new(place, &what, export, image.size)))
}
