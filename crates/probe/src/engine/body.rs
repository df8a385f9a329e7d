//! Converts an arrangement to a request of the engine's API (Docker Engine API, ContainerCreate).

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, HostConfig, HostConfigLogConfig, ResourcesUlimits,
};

use super::super::arrangement::{Arrangement, EntrypointUse, GpuSelection, GpuWay, SecurityOption, Ulimit};
use super::super::wire::host_config;

pub(super) fn body(arrangement: &Arrangement) -> ContainerCreateBody {
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let tmpfs = arrangement.tmpfs_mounts();
    let host = HostConfig {
        // The engine removes the container when its process ends, even if ncclcheck is gone by then.
        auto_remove: Some(true),
        // ncclcheck reads the output as it comes; the engine would keep all of it on disk.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        device_requests: some(&device_requests(arrangement)),
        devices: Some(arrangement.devices.iter().filter(|name| !is_cdi(name)).map(|text| device(text)).collect()),
        network_mode: Some(arrangement.network.clone()),
        ipc_mode: arrangement.ipc.clone(),
        pid_mode: arrangement.pid.clone(),
        shm_size: arrangement.shm_size.map(signed),
        ulimits: Some(arrangement.ulimits.iter().flatten().map(ulimit).collect()),
        runtime: arrangement.runtime.clone(),
        nano_cpus: arrangement.cpus.map(|cpus| cpus.0),
        cpuset_cpus: arrangement.cpuset_cpus.clone(),
        cpuset_mems: arrangement.cpuset_mems.clone(),
        memory: arrangement.memory.map(signed),
        pids_limit: Some(arrangement.pids.into()),
        cap_add: some(&arrangement.capabilities),
        binds: some(&arrangement.volumes),
        tmpfs: (!tmpfs.is_empty()).then(|| tmpfs.into_iter().collect()),
        ..privileges(arrangement)
    };
    let python = std::iter::once(&arrangement.python);
    let (entrypoint, command) = match arrangement.entrypoint {
        EntrypointUse::Replaced => (Some(vec![arrangement.python.clone()]), arrangement.arguments.clone()),
        EntrypointUse::OfImage => (None, python.chain(&arrangement.arguments).cloned().collect()),
    };
    ContainerCreateBody {
        image: Some(arrangement.image.clone()),
        hostname: arrangement.hostname.clone(),
        user: arrangement.user.clone(),
        env: Some(arrangement.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        entrypoint,
        cmd: Some(command),
        labels: Some(arrangement.labels.iter().cloned().collect()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // The engine closes standard input when ncclcheck disconnects, and the program inside then ends.
        stdin_once: Some(true),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn some<T: Clone>(list: &[T]) -> Option<Vec<T>> {
    (!list.is_empty()).then(|| list.to_vec())
}

/// What the container may do.
fn privileges(arrangement: &Arrangement) -> HostConfig {
    let is_sealed = arrangement.is_sealed();
    let options = arrangement.security_options();
    let sent: Vec<_> = options.iter().filter_map(|option| option.sent().map(ToOwned::to_owned)).collect();
    let opened = options.iter().any(SecurityOption::opens_system_paths).then(Vec::new);
    HostConfig {
        cap_drop: is_sealed.then(|| vec!["ALL".to_owned()]),
        readonly_rootfs: is_sealed.then_some(true),
        privileged: arrangement.privileged.then_some(true),
        security_opt: some(&sent),
        masked_paths: opened.clone(),
        readonly_paths: opened,
        ..HostConfig::default()
    }
}

/// The configuration that the engine is asked for, in the form of its own account of a container.
pub(in super::super) fn requested(arrangement: &Arrangement) -> Option<serde_json::Value> {
    let body = body(arrangement);
    let entrypoint = body.entrypoint.as_ref().unwrap_or(&arrangement.image_entrypoint);
    Some(host_config::answer(serde_json::to_value(body.host_config?).ok()?, entrypoint))
}

/// The request for GPUs, and one for the other devices of the Container Device Interface.
fn device_requests(arrangement: &Arrangement) -> Vec<DeviceRequest> {
    let named: Vec<_> = arrangement.devices.iter().filter(|name| is_cdi(name)).cloned().collect();
    gpu_request(arrangement).into_iter().chain((!named.is_empty()).then(|| cdi_request(named))).collect()
}

fn cdi_request(names: Vec<String>) -> DeviceRequest {
    DeviceRequest { driver: Some("cdi".to_owned()), device_ids: Some(names), ..DeviceRequest::default() }
}

/// True for the name of a device of the Container Device Interface: `VENDOR/CLASS=NAME`.
fn is_cdi(name: &str) -> bool {
    !name.starts_with('/') && name.contains('=')
}

fn gpu_request(arrangement: &Arrangement) -> Option<DeviceRequest> {
    match arrangement.gpu_way? {
        GpuWay::Request => {
            let (count, ids) = match &arrangement.gpus {
                GpuSelection::All => (Some(-1), None),
                GpuSelection::Count(count) => (Some(i64::from(*count)), None),
                GpuSelection::These(ids) => (None, Some(ids.clone())),
            };
            Some(DeviceRequest {
                driver: Some(String::new()),
                count,
                device_ids: ids,
                capabilities: Some(vec![[&arrangement.gpu_capabilities[..], &["gpu".to_owned()]].concat()]),
                options: None,
            })
        }
        GpuWay::Cdi => Some(cdi_request(arrangement.gpus.cdi_names())),
        GpuWay::Devices | GpuWay::None => None,
    }
}

/// A device node of `HOST[:CONTAINER[:rwm]]`, of which the second part may be left out (docker/cli, `parseLinuxDevice`).
fn device(text: &str) -> DeviceMapping {
    let mut parts = text.split(':');
    let host = parts.next().unwrap_or(text);
    let mut rest: Vec<_> = parts.collect();
    let is_mode = |part: &&str| !part.is_empty() && part.chars().all(|letter| "rwm".contains(letter));
    let mode = rest.pop_if(|part| is_mode(&&**part)).unwrap_or("rwm");
    DeviceMapping {
        path_on_host: Some(host.to_owned()),
        path_in_container: Some(rest.first().copied().unwrap_or(host).to_owned()),
        cgroup_permissions: Some(mode.to_owned()),
    }
}

fn ulimit(limit: &Ulimit) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(limit.name.clone()), soft: Some(limit.soft), hard: Some(limit.hard) }
}

#[cfg(test)]
mod tests {
    use super::super::super::arrangement::tests::plain;
    use super::super::super::command::TMP;
    use super::*;

    #[test]
    fn the_request_has_least_privilege_and_every_option() {
        let request = serde_json::to_value(body(&plain())).unwrap();
        let host = &request["HostConfig"];
        for (name, value) in [
            ("CapDrop", serde_json::json!(["ALL"])),
            ("CapAdd", serde_json::json!(["IPC_LOCK"])),
            ("SecurityOpt", serde_json::json!(["no-new-privileges", "seccomp=unconfined"])),
            ("Tmpfs", serde_json::json!({"/scratch": "size=1g", "/tmp": TMP.1})),
            ("NanoCpus", 1_500_000_000_i64.into()),
            ("CpusetCpus", "0-1".into()),
            ("CpusetMems", "0".into()),
            ("Runtime", "runc".into()),
            ("ReadonlyRootfs", true.into()),
            ("AutoRemove", true.into()),
            ("LogConfig", serde_json::json!({"Type": "none"})),
            ("NetworkMode", "host".into()),
            ("IpcMode", "host".into()),
            ("ShmSize", (8_u64 << 30).into()),
            ("Memory", (1_u64 << 30).into()),
            ("PidsLimit", 4096.into()),
            ("Binds", serde_json::json!(["/data:/data:ro"])),
            ("Ulimits", serde_json::json!([{"Name": "memlock", "Soft": -1, "Hard": -1}])),
        ] {
            assert_eq!(host[name], value, "{name}");
        }
        assert_eq!(host["DeviceRequests"][0]["DeviceIDs"], serde_json::json!(["0", "2"]));
        assert_eq!(host["DeviceRequests"][0]["Driver"], "");
        assert!(host.get("Privileged").is_none());
        assert_eq!((&request["User"], &request["StdinOnce"]), (&"1000".into(), &true.into()));
        assert_eq!(request["Entrypoint"], serde_json::json!(["python3"]));
    }

    #[test]
    fn the_images_entrypoint_gets_the_program_and_the_engines_default_privileges() {
        let arrangement = Arrangement { entrypoint: EntrypointUse::OfImage, ..plain() };
        let request = serde_json::to_value(body(&arrangement)).unwrap();
        assert_eq!(request.get("Entrypoint"), None);
        assert_eq!(request["Cmd"], serde_json::json!(["python3", "-c", "print('it')"]));
        for name in ["CapDrop", "ReadonlyRootfs", "Privileged"] {
            assert_eq!(request["HostConfig"].get(name), None, "{name}");
        }
        assert_eq!(request["HostConfig"]["SecurityOpt"], serde_json::json!(["seccomp=unconfined"]));
        assert_eq!(request["HostConfig"]["Tmpfs"], serde_json::json!({"/scratch": "size=1g"}));
        assert_eq!(request["HostConfig"]["PidsLimit"], 4096);
        let entrypoint = |arrangement| requested(arrangement).unwrap()["Config"]["Entrypoint"].clone();
        assert_eq!(entrypoint(&arrangement), serde_json::json!(["/entry.sh"]));
        assert_eq!(entrypoint(&plain()), serde_json::json!(["python3"]));
    }

    fn host_config(arrangement: &Arrangement) -> serde_json::Value {
        serde_json::to_value(body(arrangement)).unwrap()["HostConfig"].clone()
    }

    #[test]
    fn a_privileged_container_is_not_sealed() {
        let security = vec![SecurityOption::read("systempaths=unconfined").unwrap()];
        let host = host_config(&Arrangement { privileged: true, security, ..plain() });
        assert_eq!(host["Privileged"], true);
        for name in ["CapDrop", "ReadonlyRootfs", "SecurityOpt"] {
            assert_eq!(host.get(name), None, "{name}");
        }
        assert_eq!((&host["MaskedPaths"], &host["ReadonlyPaths"]), (&serde_json::json!([]), &serde_json::json!([])));
    }

    #[test]
    fn devices_have_dockers_syntax() {
        let devices =
            ["/dev/a", "/dev/a:r", "/dev/a:/dev/b", "/dev/a:/dev/b:rw", "vendor.com/nic=0"].map(ToOwned::to_owned);
        let host = host_config(&Arrangement { devices: devices.to_vec(), ..plain() });
        let node = |target: &str, mode: &str| serde_json::json!({"PathOnHost": "/dev/a", "PathInContainer": target, "CgroupPermissions": mode});
        let nodes = [node("/dev/a", "rwm"), node("/dev/a", "r"), node("/dev/b", "rwm"), node("/dev/b", "rw")];
        assert_eq!(host["Devices"], serde_json::json!(nodes));
        assert_eq!(host["DeviceRequests"][1], serde_json::json!({"Driver": "cdi", "DeviceIDs": ["vendor.com/nic=0"]}));
    }

    #[test]
    fn capabilities_of_the_driver_are_requested() {
        let capabilities = vec!["utility".to_owned()];
        let host = host_config(&Arrangement { gpu_capabilities: capabilities, ..plain() });
        assert_eq!(host["DeviceRequests"][0]["Capabilities"], serde_json::json!([["utility", "gpu"]]));
    }
}
