//! Files that a registry keeps as artifacts: a manifest with one layer, which is the file (OCI image-spec, "Guidelines
//! for Artifact Usage"), as `oras push` writes it.

use oci_spec::image::ImageManifest;

use super::go_json::parse_document;
use super::registry::{Registries, RegistryContacts};
use super::source::{AccessOptions, Source as _, SourceError, read_bounded};
use super::verify::Verified;
use model::{BlobRef, Digest};

/// Fetches an artifact that is a text.
///
/// # Errors
/// Those of [`fetch_file`], or the text is not UTF-8.
pub fn fetch_text(name: &str, options: &AccessOptions) -> Result<String, SourceError> {
    let text = fetch_file(name, options)?;
    String::from_utf8(text).map_err(|error| SourceError::invalid(format!("{name}: {error}")))
}

/// Fetches the file of an artifact.
///
/// # Errors
/// The name has no digest, the registry does not have the artifact, the artifact has not exactly one layer, or the file
/// is longer than [`Limits::text_file`](model::Limits::text_file) or does not have its digest.
pub fn fetch_file(name: &str, options: &AccessOptions) -> Result<Vec<u8>, SourceError> {
    let reference =
        name.parse().map_err(|error| SourceError::invalid(format!("{name} is not an image name: {error}")))?;
    if oci_spec::distribution::Reference::digest(&reference).is_none() {
        return Err(SourceError::invalid(format!("{name} has no digest, so its content could change"))
            .with_hint("name it as HOST/NAME@sha256:DIGEST".to_owned()));
    }
    let registry = Registries::read(options)?.open(&reference, options, &RegistryContacts::default())?;
    let document = registry.top()?;
    let manifest: ImageManifest =
        parse_document(&document.bytes).map_err(|error| SourceError::invalid(format!("{}: {error}", document.name)))?;
    let [layer] = &**manifest.layers() else {
        let count = manifest.layers().len();
        return Err(SourceError::invalid(format!("{name} has {count} layers; expected one, the file")));
    };
    let digest: Digest = layer.digest().to_string().parse()?;
    let blob = BlobRef { digest, size: layer.size() };
    let reader = Verified::new(registry.open(&blob)?, blob);
    read_bounded(reader, options.limits.text_file, name)
}
