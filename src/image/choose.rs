//! Chooses the medium that a reference means. Reads documents at most, never a layer.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use oci_spec::distribution::Reference as RegistryName;

use crate::image::reference::Reference;
use crate::image::source::SourceError;
use crate::model::printable;

use super::archive::{self, ArchiveForm, stream::Stream};
use super::medium::Medium;
use super::target::Target;
use super::transports::TRANSPORTS;
use super::{ImageError, Request, daemon, registry};

/// Opens the medium that the request names.
pub(super) fn choose(request: &Request) -> Result<Box<dyn Medium>, ImageError> {
    match &request.reference {
        Reference::Transport(transport, target) => Ok((transport.open)(target, request)?),
        Reference::Stdin(selector) => Ok(Box::new(Stream::standard_input(selector.as_ref()))),
        Reference::Bare(text) => bare(text, request),
    }
}

/// Tries an existing path, then an image of the engine, then one of a registry.
fn bare(text: &str, request: &Request) -> Result<Box<dyn Medium>, ImageError> {
    let path = Path::new(text);
    let missing = match fs::metadata(path) {
        Ok(metadata) => return Ok(by_content(text, &metadata, request)?),
        Err(error) if error.kind() == ErrorKind::NotFound => "no such file or folder".to_owned(),
        Err(error) => error.to_string(),
    };
    let mut places = vec![("path".to_owned(), SourceError::NotFound(missing))];
    if text.starts_with(['/', '.', '~']) {
        return Err(ImageError::Nowhere { name: text.to_owned(), places });
    }
    match daemon::medium::open(text, request) {
        Ok(medium) => return Ok(medium),
        // Go on only if the engine does not have the image: a damaged image that exists is an answer.
        Err(error @ (SourceError::NotFound(_) | SourceError::Unreachable { .. } | SourceError::Denied { .. })) => {
            places.push(("engine".to_owned(), error));
        }
        Err(error) => return Err(error.into()),
    }
    let name: RegistryName = text.parse().map_err(|error| {
        let text = printable(text);
        ImageError::invalid(format!("'{text}' is neither an existing path nor an image name: {error}"))
    })?;
    registry::medium::open(&name, request).map_err(|error| {
        places.push((format!("registry docker://{name}"), error));
        ImageError::Nowhere { name: text.to_owned(), places }
    })
}

/// Detects the medium of an existing path by its content.
fn by_content(text: &str, metadata: &fs::Metadata, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let path = Path::new(text);
    if metadata.is_file() {
        return archive::open(path, None, ArchiveForm::Any, request);
    }
    let marked = TRANSPORTS.iter().filter_map(|transport| Some((transport, transport.mark.as_ref()?)));
    if let Some((transport, _)) = marked.clone().find(|(_, mark)| (mark.is_in)(path)) {
        return (transport.open)(&Target::whole(text), request);
    }
    let known: Vec<_> = marked.map(|(_, mark)| mark.description).collect();
    Err(SourceError::invalid(format!("the folder {} contains neither {}", path.display(), known.join(" nor "))))
}
