//! An image in a registry, as a medium.

use oci_spec::distribution::Reference as Name;

use crate::image::Request;
use crate::image::by_digest::ByDigest;
use crate::image::medium::{Medium, Transport, TransportKind};
use crate::image::source::{Source as _, SourceError};
use crate::image::target::Target;

pub(in crate::image) static TRANSPORT: Transport = Transport {
    prefix: "docker://",
    syntax: "NAME",
    description: "an image in a registry",
    kind: TransportKind::Registry,
    mark: None,
    parse: Target::registry_name,
    open: |target, request| {
        let name = target.text().parse().map_err(|why| SourceError::invalid(format!("{why}")))?;
        open(&name, request)
    },
};

/// Opens an image. Fetches its manifest now, so that an unknown name is an error while other places can still be tried.
pub(in crate::image) fn open(name: &Name, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let source = super::open(name, &request.options)?;
    source.top()?;
    Ok(Box::new(ByDigest { name: format!("docker://{name}"), selector: None, source }))
}
