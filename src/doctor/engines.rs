//! Container engines: every place where one may listen, and what rootless Podman needs.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use super::{Offer, is_in_path, program_in_path};
use facts::machine::Record;
use image::daemon::{Address, Endpoint, EngineError, survey};
use image::source::{AccessOptions, SourceErrorKind};
use model::{Environment, Fact, shell_word, text_within};

const AREA: &str = "engines";

pub(super) fn offers(record: &Record, options: &AccessOptions) -> Vec<Offer> {
    let answers = survey(&options.environment);
    // A place that the user names is the only one, and an engine is expected there.
    let is_named = answers.len() == 1;
    let has_engine = answers.iter().any(|(_, answer)| answer.is_ok());
    // Docker's command does nothing without its daemon; Podman's needs none.
    let has_command = !has_engine && has_docker(&options.environment);
    let offers = answers.into_iter().map(|(endpoint, answer)| match answer {
        Ok(engine) => Offer::works(AREA, endpoint.to_string(), engine),
        Err(error) if is_named => unreached(&endpoint, error, Some("")),
        Err(error) => {
            let expected = has_command && endpoint.origin == "Docker's default";
            unreached(&endpoint, error, expected.then_some("; the docker command is installed, but no daemon answers"))
        }
    });
    let rootless = is_in_path("podman", &options.environment).then(|| rootless(record)).flatten();
    offers.chain(rootless).collect()
}

/// Returns true if Docker's command is installed. Podman has a script or a link of this name, which needs no daemon.
fn has_docker(environment: &Environment) -> bool {
    const SCRIPT: u64 = 4096;
    program_in_path("docker", environment).is_some_and(|program| {
        let is_link = program.canonicalize().is_ok_and(|program| program.ends_with("podman"));
        !is_link && !text_within(&program, SCRIPT).is_ok_and(|text| text.contains("podman"))
    })
}

/// The user and group IDs of a rootless container, which root does not need.
fn rootless(record: &Record) -> Option<Offer> {
    const NAME: &str = "rootless Podman";
    match &record.containers.without_subordinate_ids {
        Fact::Absent => None,
        Fact::Unknown(gap) => Some(Offer::unknown(AREA, NAME, gap.to_string())),
        Fact::Seen { value, .. } if value.is_empty() => {
            Some(Offer::works(AREA, NAME, "/etc/subuid and /etc/subgid give you IDs for containers"))
        }
        Fact::Seen { value, .. } => Some(Offer::broken(
            AREA,
            NAME,
            format!(
                "no IDs for you in {}: images whose files have several owners cannot be unpacked",
                value.join(" and ")
            ),
            "with numbers that no line of these files has: sudo usermod --add-subuids 100000-165535 --add-subgids \
             100000-165535 \"$USER\" && podman system migrate",
        )),
    }
}

/// The command that starts the engine of a socket.
fn start(socket: &str) -> &'static str {
    match (socket.contains("podman"), socket.starts_with("/run/user/")) {
        (true, true) => "systemctl --user restart podman.socket",
        (true, false) => "sudo systemctl restart podman.socket",
        (false, true) => "systemctl --user restart docker",
        (false, false) => "sudo systemctl restart docker",
    }
}

/// How a user gets to open a socket: by its group, if that may write to it.
fn joining(socket: &Path) -> String {
    const WRITABLE_BY_GROUP: u32 = 0o020;
    const ROOT: u32 = 0;
    let rootless = "set DOCKER_HOST to a rootless engine";
    match std::fs::metadata(socket) {
        Ok(found) if found.mode() & WRITABLE_BY_GROUP != 0 && found.gid() != ROOT => {
            let group = group_name(found.gid()).unwrap_or_else(|| found.gid().to_string());
            format!("sudo usermod -aG {} \"$USER\", then log in again; or {rootless}", shell_word(&group))
        }
        _ => format!("use sudo: no group but root's may open it; or {rootless}"),
    }
}

/// The name of a group: the first field of the line whose third is the ID (group(5)).
fn group_name(id: u32) -> Option<String> {
    const LARGEST: u64 = 4 << 20;
    let groups = text_within(Path::new("/etc/group"), LARGEST).ok()?;
    let line = groups.lines().find(|line| line.split(':').nth(2).and_then(|field| field.parse().ok()) == Some(id));
    Some(line?.split(':').next()?.to_owned())
}

/// A place where no engine answers. `expected` ends the sentence where one should.
fn unreached(endpoint: &Endpoint, error: EngineError, expected: Option<&str>) -> Offer {
    let place = endpoint.to_string();
    let about = error.text + expected.unwrap_or_default();
    match &endpoint.address {
        Address::Unix(path) if error.kind == SourceErrorKind::Denied => {
            Offer::broken(AREA, place, about, joining(Path::new(path)))
        }
        Address::Unix(path) if expected.is_none() && !Path::new(path).exists() => Offer::absent(AREA, place, about),
        Address::Unix(path) => Offer::broken(AREA, place, about, format!("start the engine: {}", start(path))),
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
        assert_eq!(offer.help.unwrap(), "start the engine: sudo systemctl restart docker");
        assert_eq!(start("/run/user/1000/podman/podman.sock"), "systemctl --user restart podman.socket");
    }

    #[test]
    fn podmans_script_is_not_dockers_command() {
        let folder = tempfile::tempdir().unwrap();
        let environment = || [("PATH".to_owned(), folder.path().display().to_string())].into_iter().collect();
        assert!(!has_docker(&environment()));
        let program = folder.path().join("docker");
        std::fs::write(&program, "#!/bin/sh\nexec /usr/bin/podman \"$@\"\n").unwrap();
        assert!(!has_docker(&environment()));
        std::fs::write(&program, b"\x7fELF podman \xff").unwrap();
        assert!(has_docker(&environment()));
        std::fs::rename(&program, folder.path().join("podman")).unwrap();
        std::os::unix::fs::symlink("podman", &program).unwrap();
        assert!(!has_docker(&environment()));
    }

    #[test]
    fn the_group_of_a_socket_is_the_one_to_join() {
        use std::os::unix::fs::PermissionsExt as _;

        let socket = tempfile::NamedTempFile::new().unwrap();
        let chmod = |mode| std::fs::set_permissions(socket.path(), std::fs::Permissions::from_mode(mode)).unwrap();
        chmod(0o600);
        assert!(joining(socket.path()).starts_with("use sudo"));
        chmod(0o660);
        let mut own = socket.as_file().metadata().unwrap().gid();
        if own == 0 {
            assert!(joining(socket.path()).starts_with("use sudo"));
            own = 1;
            std::os::unix::fs::chown(socket.path(), None, Some(own)).unwrap();
        }
        let expected = format!("sudo usermod -aG {} ", group_name(own).unwrap());
        assert!(joining(socket.path()).starts_with(&expected), "{}", joining(socket.path()));
        assert_eq!(group_name(0).as_deref(), Some("root"));
    }
}
