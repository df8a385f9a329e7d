//! What asking an engine needs of this machine.

use std::path::Path;

use super::{Address, endpoints, root, store, transport};
use crate::needs::ImageNeeds;
use crate::source::AccessOptions;
use layer::scan::OwnProcess;

/// Programs that reach an engine on another machine.
const SSH: &str = "ssh";

/// What an image of an engine needs: the files that name the engine, its certificates, and the folders where an engine of
/// this machine keeps images.
pub(crate) fn needs(options: &AccessOptions) -> ImageNeeds {
    let environment = &options.environment;
    // Read now, while it can be: it says whether the folders of an engine can be understood.
    let _kept = OwnProcess::read();
    let config = environment.get("DOCKER_CONFIG").map(Into::into);
    let config = config.or_else(|| environment.get("HOME").map(|home| Path::new(home).join(".docker")));
    let mut needs = ImageNeeds { files: config.into_iter().collect(), has_network: true, ..ImageNeeds::default() };
    let mut is_first = true;
    for endpoint in endpoints(environment) {
        match &endpoint.address {
            // The first that answers is the one that is used; see `Engine::connect`.
            Address::Unix(_) if is_first => {
                let client = transport(&endpoint.address, None, &options.limits).and_then(|way| way.client());
                let Some((root, _)) = client.ok().and_then(|docker| root(&docker)) else { continue };
                needs.files.extend(store::folders(&root));
                is_first = false;
            }
            Address::Tls { certificates, .. } => drop(needs.files.insert(certificates.clone())),
            Address::Ssh(_) => drop(needs.programs.insert(SSH.to_owned())),
            Address::Unix(_) | Address::Http(_) | Address::Unusable(_) => {}
        }
    }
    needs
}
