use facts::machine::HostTree;

use super::*;

fn options(variables: &[(&str, &str)]) -> AccessOptions {
    let owned = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    AccessOptions { environment: owned.collect(), ..AccessOptions::default() }
}

/// The states of an area on a machine with these files.
fn examined(
    files: &[(&str, &str)],
    variables: &[(&str, &str)],
    area: &str,
) -> Vec<(String, OfferState, Option<String>)> {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let record = Record::collect(&HostTree::new(folder.path()));
    let folders = OwnFolders::new(Some(folder.path().join("new/cache")), "/nonexistent".into());
    let offers = examine(&record, &options(variables), &folders);
    offers.into_iter().filter(|offer| offer.area == area).map(|offer| (offer.name, offer.state, offer.help)).collect()
}

#[test]
fn engines_by_their_sockets() {
    let [(name, state, help)] = &*examined(&[], &[("DOCKER_HOST", "unix:///nonexistent.sock")], "engines") else {
        panic!("one engine");
    };
    assert!(name.contains("/nonexistent.sock") && *state == OfferState::Broken && help.is_some());
    let file = tempfile::NamedTempFile::new().unwrap();
    let socket = format!("unix://{}", file.path().display());
    let [(_, state, help)] = &*examined(&[], &[("DOCKER_HOST", &socket)], "engines") else { panic!("one engine") };
    assert!(*state == OfferState::Broken && help.is_some());
}

#[test]
fn helpers_that_are_not_installed_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("auth.json");
    std::fs::write(&file, r#"{"auths": {"a.io": {"auth": "dTpw"}}, "credHelpers": {"b.io": "none-such"}}"#).unwrap();
    let found = examined(&[], &[("REGISTRY_AUTH_FILE", file.to_str().unwrap()), ("PATH", "/bin")], "registries");
    let state = |name: &str| found.iter().find(|(other, ..)| other == name).unwrap();
    assert_eq!(state("a.io").1, OfferState::Works);
    let (_, broken, help) = state("b.io");
    assert_eq!(*broken, OfferState::Broken);
    assert!(help.as_deref().unwrap().starts_with("install docker-credential-none-such"), "{help:?}");
}

#[test]
fn a_driver_without_device_nodes_or_toolkit_is_broken() {
    let version = [("sys/module/nvidia/version", "580.95.05\n")];
    let found = examined(&version, &[], "gpus");
    let broken: Vec<_> =
        found.iter().filter(|(_, state, _)| *state == OfferState::Broken).map(|(name, ..)| &**name).collect();
    assert!(broken.contains(&"device nodes") && broken.contains(&"container toolkit"), "{found:?}");
    let specification = "cdiVersion: 0.6.0\nkind: nvidia.com/gpu\ndevices: [{name: all, containerEdits: {}}]\n";
    let found = examined(&[version[0], ("etc/cdi/nvidia.yaml", specification)], &[], "gpus");
    let state = |name: &str| found.iter().find(|(other, ..)| other.contains(name)).map(|(_, state, _)| *state);
    assert_eq!(state("container toolkit"), Some(OfferState::Absent), "{found:?}");
    assert_eq!(state("CDI "), Some(OfferState::Works), "{found:?}");
    let found = examined(&[], &[], "gpus");
    assert!(found.iter().all(|(_, state, _)| *state == OfferState::Absent), "{found:?}");
}

/// A machine with NVIDIA's driver and container toolkit.
const TOOLKIT: [(&str, &str); 2] =
    [("sys/module/nvidia/version", "580.95.05\n"), ("etc/nvidia-container-runtime/config.toml", "")];

#[test]
fn a_toolkit_without_specification_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = [("PATH", folder.path().to_str().unwrap())];
    let state = |files: &[(&str, &str)]| {
        let found = examined(&[&TOOLKIT, files].concat(), &path, "gpus");
        found.into_iter().find(|(name, ..)| name == "CDI specification").map(|(_, state, help)| (state, help.is_some()))
    };
    let runtime = ("etc/docker/daemon.json", r#"{"runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}"#);
    let specification = ("etc/cdi/nvidia.yaml", "kind: nvidia.com/gpu\ndevices: [{name: all, containerEdits: {}}]\n");
    assert_eq!(state(&[]), Some((OfferState::Absent, false)));
    // Docker's --gpus needs neither a specification nor the runtime.
    std::fs::write(folder.path().join("docker"), "").unwrap();
    assert_eq!(state(&[]), Some((OfferState::Absent, false)));
    assert_eq!(state(&[runtime]), Some((OfferState::Absent, false)));
    std::fs::write(folder.path().join("podman"), "").unwrap();
    assert_eq!(state(&[runtime]), Some((OfferState::Broken, true)));
    assert_eq!(state(&[("etc/cdi/nic.yaml", "kind: vendor.com/nic\n")]), Some((OfferState::Broken, true)));
    assert_eq!(state(&[runtime, specification]), None);
    assert!(examined(&TOOLKIT[1..], &path, "gpus").iter().all(|(name, ..)| name != "CDI specification"));
}

#[test]
fn a_specification_of_another_driver_is_stale() {
    let library = ("usr/lib/libcuda.so.550.54.15", "");
    let specification = "kind: nvidia.com/gpu\ncontainerEdits: {mounts: [{hostPath: /usr/lib/libcuda.so.550.54.15}]}\n";
    let found = |version: &str| {
        let files = [("sys/module/nvidia/version", version), library, ("etc/cdi/nvidia.yaml", specification)];
        examined(&files, &[], "gpus").into_iter().find(|(name, ..)| name == "CDI /etc/cdi/nvidia.yaml").unwrap()
    };
    assert_eq!(found("550.54.15\n").1, OfferState::Works);
    let (_, state, help) = found("580.95.05\n");
    assert_eq!(state, OfferState::Broken);
    assert_eq!(help.unwrap(), "sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml");
}

#[test]
fn rootless_podman_needs_subordinate_ids() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("podman"), "").unwrap();
    let path = folder.path().to_str().unwrap();
    let user = ("proc/self/status", "Uid:\t1000\t1000\t1000\t1000\n");
    let accounts = ("etc/passwd", "root:x:0:0::/root:/bin/sh\nann:x:1000:1000::/home/ann:/bin/sh\n");
    let state = |path: &str, files: &[(&str, &str)]| {
        let found = examined(files, &[("PATH", path)], "engines");
        found.into_iter().find(|(name, ..)| name == "rootless Podman").map(|(_, state, _)| state)
    };
    let users = ("etc/subuid", "bob:100000:65536\nann:165536:65536\n");
    let groups = ("etc/subgid", "1000:165536:65536\n");
    assert_eq!(state(path, &[user, accounts]), Some(OfferState::Broken));
    assert_eq!(state(path, &[user, accounts, users]), Some(OfferState::Broken));
    assert_eq!(state(path, &[user, accounts, users, ("etc/subgid", "bob:1:2\n")]), Some(OfferState::Broken));
    assert_eq!(state(path, &[user, accounts, users, groups]), Some(OfferState::Works));
    // A user whom no file names, and IDs that a service has.
    assert_eq!(state(path, &[user, users, groups]), Some(OfferState::Unknown));
    assert_eq!(state(path, &[user, accounts, ("etc/nsswitch.conf", "subid: sss\n")]), Some(OfferState::Unknown));
    assert_eq!(state(path, &[("proc/self/status", "Uid:\t0\t0\t0\t0\n"), accounts]), None);
    assert_eq!(state("/nonexistent", &[user, accounts]), None);
}

#[test]
fn controllers_of_rootless_engines_are_named() {
    let machine = ("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
    let user = ("proc/self/status", "Name:\tx\nUid:\t1000\t1000\t1000\t1000\n");
    let delegated = "sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/cgroup.controllers";
    let state = |files: &[(&str, &str)]| {
        let found = examined(files, &[], "system");
        found.into_iter().find(|(name, ..)| name == "control groups").map(|(_, state, help)| (state, help)).unwrap()
    };
    assert_eq!(state(&[machine, user]), (OfferState::Works, None));
    assert_eq!(state(&[machine, user, (delegated, "cpu memory pids\n")]), (OfferState::Works, None));
    let (broken, help) = state(&[machine, user, (delegated, "memory pids\n")]);
    assert_eq!(broken, OfferState::Broken);
    assert!(help.unwrap().contains("Delegate=cpu"));
    // Root's engines are not those of a user.
    let root = ("proc/self/status", "Uid:\t0\t0\t0\t0\n");
    let empty = "sys/fs/cgroup/user.slice/user-0.slice/user@0.service/cgroup.controllers";
    assert_eq!(state(&[machine, root, (empty, "")]), (OfferState::Works, None));
    assert_eq!(state(&[("sys/fs/cgroup/memory/tasks", "")]), (OfferState::Works, None));
    assert_eq!(state(&[]), (OfferState::Absent, None));
}

#[test]
fn folders_are_written_to() {
    let found = examined(&[], &[], "folders");
    let states: Vec<_> = found.iter().map(|(name, state, _)| (&**name, *state)).collect();
    // The parent of a folder that does not exist is /, which only root may write to.
    assert_eq!(states.first(), Some(&("cache", OfferState::Works)));
}
