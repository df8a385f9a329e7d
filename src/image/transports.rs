//! The transports: one line for each medium that a reference can name.

use super::medium::Transport;
use super::{archive, daemon, layout, registry, root};

/// All transports, in the order of the help.
pub static TRANSPORTS: [&Transport; 6] = [
    &registry::medium::TRANSPORT,
    &daemon::medium::TRANSPORT,
    &archive::docker::TRANSPORT,
    &layout::TRANSPORT,
    &archive::oci::TRANSPORT,
    &root::TRANSPORT,
];

/// The transport that a reference begins with, and what follows it. `None` for a bare name or path.
pub fn split(reference: &str) -> Option<(&'static Transport, &str)> {
    TRANSPORTS.iter().find_map(|transport| Some((*transport, reference.strip_prefix(transport.prefix)?)))
}
