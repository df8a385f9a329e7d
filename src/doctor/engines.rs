//! Container engines: every place where one may listen.

use std::path::Path;

use super::Offer;
use crate::image::daemon::{Address, EngineErrorKind, survey};
use crate::image::source::AccessOptions;

const AREA: &str = "engines";

pub(super) fn offers(options: &AccessOptions) -> Vec<Offer> {
    let answers = survey(&options.environment);
    // A place that the user names is the only one, and an engine is expected there.
    let is_named = answers.len() == 1;
    let offers = answers.into_iter().map(|(endpoint, answer)| {
        let place = endpoint.to_string();
        match (answer, &endpoint.address) {
            (Ok(engine), _) => Offer::works(AREA, place, engine),
            (Err(error), Address::Unix(_)) if error.kind == EngineErrorKind::Denied => Offer::broken(
                AREA,
                place,
                error.text,
                "sudo usermod -aG docker \"$USER\", then log in again; or set DOCKER_HOST to a rootless engine",
            ),
            (Err(error), Address::Unix(path)) if !is_named && !Path::new(path).exists() => {
                Offer::absent(AREA, place, error.text)
            }
            (Err(error), Address::Unix(_)) => Offer::broken(
                AREA,
                place,
                error.text,
                "start the engine: sudo systemctl restart docker, or podman.socket",
            ),
            (Err(error), Address::Ssh(target)) => {
                Offer::broken(AREA, place, error.text, format!("try: ssh {target} docker version"))
            }
            (Err(error), Address::Http(_) | Address::Tls { .. } | Address::Unusable(_)) => {
                Offer::broken(AREA, place, error.text, "correct DOCKER_HOST or the Docker context, or start the engine")
            }
        }
    });
    offers.collect()
}
