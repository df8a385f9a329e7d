//! An image in a registry, as a medium.

use oci_spec::distribution::Reference as Name;

use crate::Request;
use crate::by_digest::ByDigest;
use crate::medium::{Medium, Transport, TransportKind};
use crate::needs::PlaceNeeds;
use crate::source::SourceError;
use crate::target::Target;

use super::Registries;

pub(crate) static TRANSPORT: Transport = Transport {
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
pub(crate) fn open(name: &Name, registries: &Registries, request: &Request) -> Result<Box<dyn Medium>, SourceError> {
    let source = registries.open(name, &request.options, &request.contacts)?;
    Ok(Box::new(ByDigest { name: format!("docker://{name}"), selector: None, source }))
}
