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
pub fn transport_of(reference: &str) -> Option<(&'static Transport, &str)> {
    TRANSPORTS.iter().find_map(|transport| Some((*transport, reference.strip_prefix(transport.prefix)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_prefix_hides_another() {
        for transport in TRANSPORTS {
            let text = format!("{}a:b@c", transport.prefix);
            let (found, rest) = transport_of(&text).unwrap();
            assert_eq!((found.prefix, rest), (transport.prefix, "a:b@c"));
        }
        assert!(transport_of("localhost:5000/oci:torch").is_none());
    }
}
