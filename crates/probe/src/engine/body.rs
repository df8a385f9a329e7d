//! Converts an arrangement to a request of the engine's API (Docker Engine API, ContainerCreate).

use bollard::models::{
    ContainerCreateBody, DeviceMapping, DeviceRequest, HostConfig, HostConfigLogConfig, ResourcesUlimits,
};

use super::super::arrangement::{Arrangement, EntrypointUse, GpuSelection, GpuWay, Ulimit};
use super::super::command::TMP;
use super::super::wire::host_config;

pub(super) fn body(arrangement: &Arrangement) -> ContainerCreateBody {
    let some = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec());
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let host = HostConfig {
        // The engine removes the container when its process ends, even if ncclcheck is gone by then.
        auto_remove: Some(true),
        // ncclcheck reads the output as it comes; the engine would keep all of it on disk.
        log_config: Some(HostConfigLogConfig { typ: Some("none".to_owned()), config: None }),
        device_requests: device_request(arrangement).map(|request| vec![request]),
        devices: Some(arrangement.devices.iter().map(|path| device(path)).collect()),
        network_mode: Some(arrangement.network.clone()),
        ipc_mode: arrangement.ipc.clone(),
        pid_mode: arrangement.pid.clone(),
        shm_size: arrangement.shm_size.map(signed),
        ulimits: Some(arrangement.ulimits.iter().map(ulimit).collect()),
        memory: arrangement.memory.map(signed),
        pids_limit: Some(arrangement.pids.into()),
        cap_add: some(&arrangement.capabilities),
        binds: some(&arrangement.volumes),
        ..privileges(arrangement.entrypoint)
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

/// What the container may do, as far as that depends on its entrypoint.
fn privileges(entrypoint: EntrypointUse) -> HostConfig {
    match entrypoint {
        EntrypointUse::Replaced => HostConfig {
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(vec!["no-new-privileges".to_owned()]),
            readonly_rootfs: Some(true),
            tmpfs: Some([(TMP.0.to_owned(), TMP.1.to_owned())].into()),
            ..HostConfig::default()
        },
        EntrypointUse::OfImage => HostConfig::default(),
    }
}

/// The configuration that the engine is asked for, in the form of its own account of a container.
pub(in super::super) fn requested(arrangement: &Arrangement) -> Option<serde_json::Value> {
    let body = body(arrangement);
    let entrypoint = body.entrypoint.as_ref().unwrap_or(&arrangement.image_entrypoint);
    Some(host_config::answer(serde_json::to_value(body.host_config?).ok()?, entrypoint))
}

fn device_request(arrangement: &Arrangement) -> Option<DeviceRequest> {
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
                capabilities: Some(vec![vec!["gpu".to_owned()]]),
                options: None,
            })
        }
        GpuWay::Cdi => Some(DeviceRequest {
            driver: Some("cdi".to_owned()),
            device_ids: Some(arrangement.gpus.cdi_names()),
            ..DeviceRequest::default()
        }),
        GpuWay::Devices | GpuWay::None => None,
    }
}

fn device(path: &str) -> DeviceMapping {
    DeviceMapping {
        path_on_host: Some(path.to_owned()),
        path_in_container: Some(path.to_owned()),
        cgroup_permissions: Some("rwm".to_owned()),
    }
}

fn ulimit(limit: &Ulimit) -> ResourcesUlimits {
    ResourcesUlimits { name: Some(limit.name.clone()), soft: Some(limit.soft), hard: Some(limit.hard) }
}

#[cfg(test)]
mod tests {
    use super::super::super::arrangement::tests::plain;
    use super::*;

    #[test]
    fn the_request_has_least_privilege_and_every_option() {
        let request = serde_json::to_value(body(&plain())).unwrap();
        let host = &request["HostConfig"];
        for (name, value) in [
            ("CapDrop", serde_json::json!(["ALL"])),
            ("CapAdd", serde_json::json!(["IPC_LOCK"])),
            ("SecurityOpt", serde_json::json!(["no-new-privileges"])),
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
        for name in ["CapDrop", "SecurityOpt", "ReadonlyRootfs", "Tmpfs", "Privileged"] {
            assert_eq!(request["HostConfig"].get(name), None, "{name}");
        }
        assert_eq!(request["HostConfig"]["PidsLimit"], 4096);
        let entrypoint = |arrangement| requested(arrangement).unwrap()["Config"]["Entrypoint"].clone();
        assert_eq!(entrypoint(&arrangement), serde_json::json!(["/entry.sh"]));
        assert_eq!(entrypoint(&plain()), serde_json::json!(["python3"]));
    }
}
