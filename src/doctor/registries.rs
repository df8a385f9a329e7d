//! Registries: configuration files, and credentials by name.

use super::{Offer, is_in_path};
use image::source::AccessOptions;
use image::{StoredLogin, registry_configuration, stored_logins};
use model::Environment;

const AREA: &str = "registries";

pub(super) fn offers(options: &AccessOptions) -> Vec<Offer> {
    let configuration = match registry_configuration(options) {
        Ok(()) => Offer::works(AREA, "configuration", "registries.conf and Docker's mirrors are valid, or not there"),
        Err(error) => Offer::broken(AREA, "configuration", error.to_string(), "correct this file"),
    };
    let (logins, unreadable) = stored_logins(options);
    let unreadable = unreadable.into_iter().map(|(file, why)| {
        let help = "correct its permissions or its JSON, or name another file with --authfile";
        Offer::broken(AREA, file.display().to_string(), why, help)
    });
    let none = logins.is_empty().then(|| Offer::absent(AREA, "credentials", "none: private images cannot be fetched"));
    let logins = logins.iter().map(|login| offer(login, &options.environment));
    std::iter::once(configuration).chain(unreadable).chain(none).chain(logins).collect()
}

fn offer(login: &StoredLogin, environment: &Environment) -> Offer {
    let name = if login.registry == "*" { "all registries" } else { &login.registry };
    let file = login.file.display();
    let Some(helper) = &login.helper else {
        return Offer::works(AREA, name, format!("credentials in {file}"));
    };
    let program = format!("docker-credential-{helper}");
    if is_in_path(&program, environment) {
        return Offer::works(AREA, name, format!("credentials by {program}, named in {file}"));
    }
    let help = format!("install {program}, or remove '{helper}' from {file} and log in again");
    Offer::broken(AREA, name, format!("{program}, named in {file}, is not in PATH"), help)
}
