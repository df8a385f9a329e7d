//! What asking a registry needs of this machine.

use std::collections::BTreeSet;
use std::path::Path;

use super::certs::usual_folders;
use super::config::ConfigFiles;
use super::credentials::usual_files;
use super::pull::Registries;
use super::stored_logins::stored_logins;
use crate::needs::ImageNeeds;
use crate::source::AccessOptions;

/// What images of these names need: the files that configure registries, certificates and credentials, and the
/// credential helpers of the registries that may be asked.
pub(crate) fn needs(names: &BTreeSet<&str>, options: &AccessOptions) -> ImageNeeds {
    let mut files: BTreeSet<_> = ConfigFiles::usual(&options.environment).all().collect();
    match &options.cert_dir {
        Some(folder) => drop(files.insert(folder.clone())),
        None => files.extend(usual_folders(options)),
    }
    let (logins, _unreadable) = stored_logins(options);
    let given = options.authfile.clone().or_else(|| options.environment.get("REGISTRY_AUTH_FILE").map(Into::into));
    match given {
        Some(file) => drop(files.insert(file)),
        // Their folders too: a login that is renewed during a long run replaces the file.
        None => {
            for file in usual_files(&options.environment) {
                files.extend(file.parent().map(Path::to_owned));
                files.insert(file);
            }
        }
    }
    // If the configuration is wrong, no image is asked for.
    let registries = Registries::read(options).ok();
    let hosts: BTreeSet<_> = names.iter().filter_map(|name| registries.as_ref()?.hosts(name).ok()).flatten().collect();
    let helpers = logins.into_iter().filter_map(|login| Some((login.helper?, login.registry)));
    let programs = helpers.filter(|(_, registry)| applies(registry, &hosts));
    let programs = programs.map(|(helper, _)| format!("docker-credential-{helper}")).collect();
    ImageNeeds { files, has_network: true, programs, ..ImageNeeds::default() }
}

/// Returns true if credentials under this key may be those of one of the hosts.
fn applies(key: &str, hosts: &BTreeSet<String>) -> bool {
    let place = key.split_once("://").map_or(key, |(_, place)| place);
    let host = place.split('/').next().unwrap_or_default();
    let is_hub = |host: &str| host.ends_with("docker.io");
    key == "*" || hosts.contains(host) || (is_hub(host) && hosts.iter().any(|host| is_hub(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_helper_is_needed_for_its_registries_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        let programs = |text: &str, name: &str| {
            std::fs::write(&file, text).unwrap();
            let options = AccessOptions { authfile: Some(file.clone()), ..AccessOptions::default() };
            let needs = needs(&BTreeSet::from([name]), &options);
            assert!(needs.has_network && needs.files.contains(&file));
            needs.programs.into_iter().collect::<Vec<_>>().join(" ")
        };
        let of_one =
            r#"{"credHelpers": {"gcr.io": "gcloud", "r.io/team": "own", "https://index.docker.io/v1/": "hub"}}"#;
        assert_eq!(programs(of_one, "gcr.io/a/b:1"), "docker-credential-gcloud");
        assert_eq!(programs(of_one, "r.io/other/b"), "docker-credential-own");
        assert_eq!(programs(of_one, "docker.io/library/debian"), "docker-credential-hub");
        assert_eq!(programs(of_one, "quay.io/a"), "");
        assert_eq!(programs(r#"{"credsStore": "pass"}"#, "quay.io/a"), "docker-credential-pass");
        assert_eq!(programs(r#"{"auths": {"quay.io": {"auth": "dTpw"}}}"#, "quay.io/a"), "");
    }
}
