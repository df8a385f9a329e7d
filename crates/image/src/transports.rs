//! The list of transports: the media that a reference can name.

use super::medium::Transport;

/// All transports, in the order of the help and in which a folder's marker file is looked for.
pub static TRANSPORTS: &[&Transport] = &[
    &super::registry::medium::TRANSPORT,
    &super::daemon::medium::TRANSPORT,
    &super::daemon::medium::FOLDERS,
    &super::storage::TRANSPORT,
    &super::archive::docker::TRANSPORT,
    &super::layout::TRANSPORT,
    &super::archive::oci::TRANSPORT,
    &super::directory::TRANSPORT,
    &super::squash::sif::TRANSPORT,
    &super::squash::sqsh::TRANSPORT,
    &super::root::TRANSPORT,
];

/// The transport that prefixes a reference, and the rest of the reference. `None` for a bare name or path.
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
