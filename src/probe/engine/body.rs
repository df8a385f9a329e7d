//! An arrangement as a request of the engine's API (Docker Engine API, ContainerCreate).

use bollard::models::{ContainerCreateBody, DeviceMapping, DeviceRequest, HostConfig, ResourcesUlimits};

use super::super::arrangement::{Arrangement, GpuWay, Gpus, Ulimit};
use super::super::command::TMP;

pub(super) fn body(arrangement: &Arrangement) -> ContainerCreateBody {
    let some = |texts: &[String]| (!texts.is_empty()).then(|| texts.to_vec());
    let signed = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let host = HostConfig {
        // Removes it when its process ends, also when nobody is left to ask for that.
        auto_remove: Some(true),
        device_requests: device_request(arrangement).map(|request| vec![request]),
        devices: Some(arrangement.devices.iter().map(|path| device(path)).collect()),
        network_mode: Some(arrangement.network.clone()),
        ipc_mode: arrangement.ipc.clone(),
        pid_mode: arrangement.pid.clone(),
        shm_size: arrangement.shm_size.map(signed),
        ulimits: Some(arrangement.ulimits.iter().map(ulimit).collect()),
        memory: arrangement.memory.map(signed),
        pids_limit: Some(arrangement.pids.into()),
        cap_drop: Some(vec!["ALL".to_owned()]),
        cap_add: some(&arrangement.capabilities),
        security_opt: Some(vec!["no-new-privileges".to_owned()]),
        readonly_rootfs: Some(true),
        tmpfs: Some([(TMP.0.to_owned(), TMP.1.to_owned())].into()),
        binds: some(&arrangement.volumes),
        ..HostConfig::default()
    };
    ContainerCreateBody {
        image: Some(arrangement.image.clone()),
        hostname: arrangement.hostname.clone(),
        user: arrangement.user.clone(),
        env: Some(arrangement.env.iter().map(|(name, value)| format!("{name}={value}")).collect()),
        entrypoint: Some(vec![arrangement.python.clone()]),
        cmd: Some(arrangement.arguments.clone()),
        labels: Some(arrangement.labels.iter().cloned().collect()),
        attach_stdin: Some(true),
        attach_stdout: Some(true),
        attach_stderr: Some(true),
        open_stdin: Some(true),
        // Our going away closes it, which the program inside takes for its end.
        stdin_once: Some(true),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    }
}

fn device_request(arrangement: &Arrangement) -> Option<DeviceRequest> {
    match arrangement.way {
        GpuWay::Request => {
            let (count, ids) = match &arrangement.gpus {
                Gpus::All => (Some(-1), None),
                Gpus::Count(count) => (Some(i64::from(*count)), None),
                Gpus::These(ids) => (None, Some(ids.clone())),
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
