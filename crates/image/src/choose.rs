//! Chooses the medium that a reference means. Reads documents at most, never a layer.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use model::Digest;

use crate::reference::Reference;
use crate::source::{SourceError, SourceErrorKind};

use super::archive::{self, ArchiveForm, stream::Stream};
use super::medium::Medium;
use super::missing::{is_path, missing};
use super::needs::{ImageNeeds, PlaceNeeds};
use super::registry::Registries;
use super::target::Target;
use super::transports::TRANSPORTS;
use super::{ImageError, Request, daemon, registry, squash, storage};

/// Opens the medium that the request names.
pub(super) fn choose(request: &Request) -> Result<Box<dyn Medium>, ImageError> {
    match &request.reference {
        Reference::Transport(transport, target) => Ok((transport.open)(target, request)?),
        Reference::Stdin(selector) => Ok(Box::new(Stream::standard_input(selector.as_ref()))),
        Reference::Bare(text) => bare(text, request),
    }
}

/// What reading the images that the requests name needs of this machine. The requests have the same options. An engine
/// on this machine is asked where it keeps its images.
pub fn needs<'r>(requests: impl IntoIterator<Item = &'r Request>) -> ImageNeeds {
    let mut needs = ImageNeeds::default();
    let mut names = BTreeSet::new();
    let mut has_engine = false;
    let mut options = None;
    for request in requests {
        options = Some(&request.options);
        let found = match &request.reference {
            Reference::Stdin(_) => continue,
            Reference::Transport(transport, target) => match transport.needs {
                PlaceNeeds::Path => ImageNeeds::of_path(target.text()),
                PlaceNeeds::Store => storage::needs(target.text(), request),
                PlaceNeeds::Registry => {
                    names.insert(target.text());
                    continue;
                }
                PlaceNeeds::Engine => {
                    has_engine = true;
                    continue;
                }
            },
            Reference::Bare(text) if fs::metadata(text).is_ok() || is_path(text) => ImageNeeds::of_path(text),
            Reference::Bare(text) => {
                has_engine = true;
                names.insert(text);
                continue;
            }
        };
        needs = needs.and(found);
    }
    let Some(options) = options else { return needs };
    if has_engine {
        needs = needs.and(daemon::needs(options));
    }
    if names.is_empty() { needs } else { needs.and(registry::needs(&names, options)) }
}

/// Tries an existing path, then an image of the engine, then one of a registry.
fn bare(text: &str, request: &Request) -> Result<Box<dyn Medium>, ImageError> {
    let error = match fs::metadata(Path::new(text)) {
        Ok(metadata) => return Ok(by_content(text, &metadata, request)?),
        Err(error) => error,
    };
    if is_path(text) {
        return Err(missing(text, &error).into());
    }
    let registries = Registries::read(&request.options)?;
    // The ID of an image is known to the engine alone.
    let candidates = if text.parse::<Digest>().is_ok() { Vec::new() } else { registries.candidates(text)? };
    let mut places = Vec::new();
    match daemon::medium::open(text, request) {
        Ok(medium) => return Ok(medium),
        // Go on only if the engine does not have the image: a damaged image that exists is an answer.
        Err(error) => match error.kind() {
            SourceErrorKind::NotFound | SourceErrorKind::Unreachable | SourceErrorKind::Denied => {
                places.push(("engine".to_owned(), error));
            }
            _ => return Err(error.into()),
        },
    }
    for candidate in candidates {
        match registry::medium::open(&candidate.name, &registries, request) {
            Ok(medium) => return Ok(medium),
            Err(error) => {
                let origin = candidate.origin.map(|origin| format!(" ({origin})")).unwrap_or_default();
                places.push((format!("registry docker://{}{origin}", candidate.name), error));
            }
        }
    }
    // The likeliest cause first: a registry that answered, an engine that answered, a place that did not answer.
    places.sort_by_key(|(place, error)| (error.kind() == SourceErrorKind::Unreachable, place == "engine"));
    let hint = is_image_id(text).then(|| {
        "the name looks like the ID of an image, which only the engine that holds the image knows; write the image's name \
         for a registry"
            .to_owned()
    });
    places.push(("path".to_owned(), SourceError::not_found("no such file or folder").with_hint(hint)));
    Err(ImageError::Nowhere { name: text.to_owned(), places })
}

/// Returns true for the digits that `docker images` lists, and for all 64.
fn is_image_id(text: &str) -> bool {
    matches!(text.len(), 12 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// Detects the medium of an existing path by its content.
fn by_content(text: &str, metadata: &fs::Metadata, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let path = Path::new(text);
    if !metadata.is_dir() {
        if let Some(opened) = squash::detect(path, request).filter(|_| metadata.is_file()) {
            return opened;
        }
        return archive::open(path, None, ArchiveForm::Any, request);
    }
    let marked = TRANSPORTS.iter().filter_map(|transport| Some((transport, transport.mark.as_ref()?)));
    if let Some((transport, _)) = marked.clone().find(|(_, mark)| (mark.is_in)(path)) {
        return (transport.open)(&Target::whole(text), request);
    }
    let known: Vec<_> = marked.map(|(_, mark)| mark.description).collect();
    let what = format!("the folder {} contains neither {}", path.display(), known.join(" nor "));
    let hint = "name the image, such as registry.example/train:7, or the file or the folder that holds it".to_owned();
    Err(SourceError::invalid(what).with_hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_images_are_recognized() {
        for (text, is_id) in [
            ("ab12cd34ef56", true),
            (&"0a".repeat(32), true),
            ("ab12cd34ef5", false),
            ("ab12cd34ef5g", false),
            ("AB12CD34EF56", false),
            ("ab12/d34ef56", false),
        ] {
            assert_eq!(is_image_id(text), is_id, "{text}");
        }
    }
}
