//! Container engines: every place where one may listen.

use std::path::Path;

use super::{Offer, is_in_path};
use image::daemon::{Address, Endpoint, EngineError, survey};
use image::source::{AccessOptions, SourceErrorKind};

const AREA: &str = "engines";

pub(super) fn offers(options: &AccessOptions) -> Vec<Offer> {
    let answers = survey(&options.environment);
    // A place that the user names is the only one, and an engine is expected there.
    let is_named = answers.len() == 1;
    let has_engine = answers.iter().any(|(_, answer)| answer.is_ok());
    // Docker's command does nothing without its daemon; Podman's needs none.
    let has_command = !has_engine && is_in_path("docker", &options.environment);
    let offers = answers.into_iter().map(|(endpoint, answer)| match answer {
        Ok(engine) => Offer::works(AREA, endpoint.to_string(), engine),
        Err(error) if is_named => unreached(&endpoint, error, Some("")),
        Err(error) => {
            let expected = has_command && endpoint.origin == "Docker's default";
            unreached(&endpoint, error, expected.then_some("; the docker command is installed, but no daemon answers"))
        }
    });
    offers.collect()
}

/// A place where no engine answers. `expected` ends the sentence where one should.
fn unreached(endpoint: &Endpoint, error: EngineError, expected: Option<&str>) -> Offer {
    let place = endpoint.to_string();
    let about = error.text + expected.unwrap_or_default();
    match &endpoint.address {
        Address::Unix(_) if error.kind == SourceErrorKind::Denied => Offer::broken(
            AREA,
            place,
            about,
            "sudo usermod -aG docker \"$USER\", then log in again; or set DOCKER_HOST to a rootless engine",
        ),
        Address::Unix(path) if expected.is_none() && !Path::new(path).exists() => Offer::absent(AREA, place, about),
        Address::Unix(_) => {
            Offer::broken(AREA, place, about, "start the engine: sudo systemctl restart docker, or podman.socket")
        }
        Address::Ssh(target) => Offer::broken(AREA, place, about, format!("try: ssh {target} docker version")),
        Address::Http(_) | Address::Tls { .. } | Address::Unusable(_) => {
            Offer::broken(AREA, place, about, "correct DOCKER_HOST or the Docker context, or start the engine")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::OfferState;
    use super::*;

    #[test]
    fn a_daemon_that_its_command_needs_is_not_absent() {
        let endpoint = Endpoint {
            text: "unix:///nonexistent.sock".to_owned(),
            origin: "Docker's default".to_owned(),
            address: Address::Unix("/nonexistent.sock".to_owned()),
        };
        let error = || EngineError::new(SourceErrorKind::Unreachable, "no such socket".to_owned());
        assert_eq!(unreached(&endpoint, error(), None).state, OfferState::Absent);
        let offer = unreached(&endpoint, error(), Some("; the docker command is installed, but no daemon answers"));
        assert_eq!(offer.state, OfferState::Broken);
        assert_eq!(offer.about, "no such socket; the docker command is installed, but no daemon answers");
        assert!(offer.help.unwrap().contains("systemctl restart docker"));
    }
}
