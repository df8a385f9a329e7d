//! What the documents of images say, without their layers: enough to plan a large run.

use unpack::pipe::Cancel;

use model::{BlobRef, Digest, NoProgress, Platform};

use super::daemon::Engine;
use super::reference::Reference;
use super::registry::listing;
use super::source::{AccessOptions, SourceError};
use super::{ImageError, PlatformChoice, Request, ScanContext, choose};

/// An image as its documents describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageOutline {
    /// A reference that always means this image; `None` where the medium has no images by digest.
    pub reference: Option<String>,
    /// Names in the index of a layout or an archive. A tag alone, which many of them share, follows the reference of its place.
    pub names: Vec<String>,
    /// Digest of the manifest, if the image has one.
    pub manifest: Option<Digest>,
    /// Digest of the configuration.
    pub config: Option<Digest>,
    /// Platform in the configuration.
    pub platform: Option<Platform>,
    /// The stored layers, lowest first; none where the medium does not address layers by digest.
    pub layers: Vec<BlobRef>,
    /// Time of the build, as the configuration says (RFC 3339).
    pub created: Option<String>,
}

/// Reads the documents of the images that a request names: of each platform if it asks for all, and of each name in a
/// layout that it names without a selector.
///
/// # Errors
/// The image cannot be found or its documents cannot be read, as of [`load`](super::load).
pub fn survey(request: &Request, cancel: &Cancel) -> Result<Vec<ImageOutline>, ImageError> {
    outlines(request, cancel).map_err(|error| error.of(&request.text))
}

fn outlines(request: &Request, cancel: &Cancel) -> Result<Vec<ImageOutline>, ImageError> {
    let context = ScanContext {
        jobs: request.jobs,
        limits: &request.limits,
        cache: &request.cache,
        pool: None,
        progress: &NoProgress,
        cancel,
    };
    let mut medium = choose::choose(request)?;
    let place = medium.place();
    let outline = |plan: super::plan::ImagePlan| ImageOutline {
        reference: place.as_ref().zip(plan.manifest.as_ref()).map(|(place, digest)| format!("{place}@{digest}")),
        layers: plan.layers.iter().filter_map(|layer| layer.location.blob()).collect(),
        platform: plan.platform().cloned(),
        names: full_names(request, plan.names),
        manifest: plan.manifest,
        config: plan.config_digest,
        created: plan.created,
    };
    let wanted = |outline: &ImageOutline| match (&request.choice, &outline.platform) {
        (PlatformChoice::One(asked), Some(offered)) => asked.is_served_by(offered),
        _ => true,
    };
    let plans = medium.plans(request, context)?;
    Ok(plans.into_iter().map(outline).filter(wanted).collect())
}

/// The names of an image by which it can be told from those of other places.
fn full_names(request: &Request, names: Vec<String>) -> Vec<String> {
    let has_selector = match &request.reference {
        Reference::Transport(_, target) => target.selector().is_some(),
        Reference::Stdin(selector) => selector.is_some(),
        Reference::Bare(_) => false,
    };
    let (full, tags): (Vec<_>, Vec<_>) = names.into_iter().partition(|name| name.contains(['/', ':']));
    if !full.is_empty() || has_selector {
        return full;
    }
    tags.into_iter().map(|tag| format!("{}:{tag}", request.text)).collect()
}

/// The tags of a repository of a registry, such as `registry.example/team/train`.
///
/// # Errors
/// The registry does not answer, or refuses.
pub fn tags(repository: &str, options: &AccessOptions) -> Result<Vec<String>, SourceError> {
    listing::tags(repository, options)
}

/// The repositories of a registry, without its host. Most public registries refuse.
///
/// # Errors
/// The registry does not answer, or refuses.
pub fn repositories(host: &str, options: &AccessOptions) -> Result<Vec<String>, SourceError> {
    listing::repositories(host, options)
}

/// The names of the images that this machine's engine holds, each with its tag.
///
/// # Errors
/// No engine answers.
pub fn engine_images(options: &AccessOptions) -> Result<Vec<String>, SourceError> {
    Engine::connect(options)?.images()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_alone_follows_the_reference_of_its_place() {
        let named = |text: &str, names: &[&str]| {
            let names = names.iter().map(|name| (*name).to_owned()).collect();
            full_names(&Request::new(text).unwrap(), names)
        };
        assert_eq!(named("a/x.tar", &["latest"]), ["a/x.tar:latest"]);
        assert_eq!(named("oci:lay", &["v1", "v2"]), ["oci:lay:v1", "oci:lay:v2"]);
        assert_eq!(named("oci:lay", &["v1", "reg.example/team/train:1"]), ["reg.example/team/train:1"]);
        // The text says which image it is.
        assert_eq!(named("oci:lay:v1", &["v1"]), [""; 0]);
        assert_eq!(named("-:v1", &["v1"]), [""; 0]);
        assert_eq!(named("docker://reg.example/train:1", &[]), [""; 0]);
    }
}
