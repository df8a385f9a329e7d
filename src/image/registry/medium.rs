//! An image in a registry, as a medium.

use oci_spec::distribution::Reference as Name;

use crate::image::Request;
use crate::image::by_digest::ByDigest;
use crate::image::medium::{Medium, Transport, TransportKind};
use crate::image::needs::PlaceNeeds;
use crate::image::source::SourceError;
use crate::image::target::Target;

use super::Registries;

pub(in crate::image) static TRANSPORT: Transport = Transport {
    prefix: "docker://",
    syntax: "NAME",
    description: "an image in a registry",
    kind: TransportKind::Registry,
    mark: None,
    needs: PlaceNeeds::Registry,
    parse: Target::registry_name,
    open: |target, request| {
        let name = target.text().parse().map_err(|why| SourceError::invalid(format!("{why}")))?;
        open(&name, &Registries::read(&request.options)?, request)
    },
};

/// Opens an image at the first place that has it.
pub(in crate::image) fn open(
    name: &Name,
    registries: &Registries,
    request: &Request,
) -> Result<Box<dyn Medium>, SourceError> {
    let source = registries.open(name, &request.options, &request.contacts)?;
    Ok(Box::new(ByDigest { name: format!("docker://{name}"), selector: None, source }))
}
