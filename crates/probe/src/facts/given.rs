//! Differences between the container that was requested, the one that the engine describes, and the one that the
//! program sees.

use facts::cpu_numbers;
use model::size;

use super::super::arrangement::Cpus;
use super::super::recording::Recording;
use super::super::wire::events::LaunchEvent;
use super::super::wire::gpus::GpusBody;
use super::super::wire::host_config::HostConfig;
use super::super::wire::limits::LimitsBody;

/// Describes each difference; empty if there is none, or if no container was launched.
pub(super) fn find_differences(recording: &Recording, limits: &LimitsBody) -> Vec<String> {
    let Some(launch) = &recording.launch else { return Vec::new() };
    let count = recording.result::<GpusBody>().and_then(|(_, body)| body.gpus.value().map(Vec::len));
    let mut differences = Vec::new();
    differences.extend(gpus(launch, limits, count.unwrap_or_default()));
    let Some(given) = launch.host_config() else { return differences };
    differences.extend(entrypoint(launch));
    if let Some(requested) = launch.requested_config() {
        differences.extend(privileges(&requested, &given));
        differences.extend(mounts(&requested, &given));
        differences.extend(bounds(&requested, &given));
        differences.extend(modes(&requested, &given));
        differences.extend(choices(&requested, &given));
    }
    differences.extend(shared_memory(&given, limits));
    differences.extend(ulimits(&given, limits));
    differences.extend(processors(&given, limits));
    differences.extend(namespaces(launch, &given, limits));
    differences.extend(rdma_devices(&given, limits));
    differences
}

fn gpus(launch: &LaunchEvent, limits: &LimitsBody, seen: usize) -> Option<String> {
    let has_node = has_device(limits, |path| path.starts_with("/dev/nvidia") || path == "/dev/dxg");
    if !launch.gpus {
        return (seen > 0).then(|| format!("requested no GPUs but found {seen}"));
    }
    if !has_node {
        return Some("requested GPUs but found no GPU device node".to_owned());
    }
    let asked = launch.host_config().and_then(|given| gpus_asked(&given))?;
    (seen > 0 && asked != seen).then(|| format!("requested {asked} GPUs but found {seen}"))
}

/// Number of GPUs in the device request; `None` if it requests all GPUs, or if one name may stand for several.
fn gpus_asked(host: &HostConfig) -> Option<usize> {
    let request = host.device_requests.list().first()?;
    let names = request.device_ids.list();
    match request.count.copied() {
        Some(count) if count > 0 => usize::try_from(count).ok(),
        _ if names.is_empty() || names.iter().any(|name| name.ends_with("all")) => None,
        _ => Some(names.len()),
    }
}

/// Returns true for a device that the program sees. An unreadable list proves nothing.
fn has_device(limits: &LimitsBody, wanted: fn(&str) -> bool) -> bool {
    limits.devices.known_list().is_err()
        || limits.devices.list().iter().filter_map(|device| device.path.text()).any(wanted)
}

fn privileges(requested: &HostConfig, given: &HostConfig) -> Vec<String> {
    let mut more = Vec::new();
    let is_privileged = |config: &HostConfig| config.privileged.copied() == Some(true);
    if is_privileged(requested) && !is_privileged(given) {
        more.push("requested a privileged container but the engine made it without privileges".to_owned());
    }
    if is_privileged(given) && !is_privileged(requested) {
        more.push("the engine made the container privileged, which was not requested".to_owned());
    }
    // Podman adds the prefix.
    let plain = |name: &String| name.trim_start_matches("CAP_").to_uppercase();
    let kept: Vec<_> = requested.cap_add.list().iter().map(plain).collect();
    let is_kept = |name: &String| is_privileged(requested) || kept.contains(name);
    for capability in given.cap_add.list().iter().map(plain).filter(|name| !is_kept(name)) {
        more.push(format!("the engine added the capability {capability}, which was not requested"));
    }
    if requested.readonly_rootfs.copied() == Some(true) && given.readonly_rootfs.copied() == Some(false) {
        more.push("requested a read-only root file system but the engine made it writable".to_owned());
    }
    let forbids_more = |options: &[String]| options.iter().any(|option| option.starts_with("no-new-privileges"));
    if forbids_more(requested.security_opt.list()) && !forbids_more(given.security_opt.list()) {
        more.push("requested no-new-privileges but the engine omitted it".to_owned());
    }
    more
}

/// Another first program than the requested one.
fn entrypoint(launch: &LaunchEvent) -> Option<String> {
    let (requested, given) = launch.entrypoints()?;
    let shown = |words: &[String]| if words.is_empty() { "no entrypoint".to_owned() } else { words.join(" ") };
    (requested != given).then(|| {
        format!("requested the entrypoint {} but the engine's account has {}", shown(&requested), shown(&given))
    })
}

/// Mounts that were not requested. An engine may add options to those that were.
fn mounts(requested: &HostConfig, given: &HostConfig) -> Vec<String> {
    let place = |bind: &String| bind.split(':').take(2).map(ToOwned::to_owned).collect::<Vec<_>>();
    let asked: Vec<_> = requested.binds.list().iter().map(place).collect();
    let more = given.binds.list().iter().filter(|bind| !asked.contains(&place(bind)));
    more.map(|bind| format!("the engine mounted {bind}, which was not requested")).collect()
}

fn bounds(requested: &HostConfig, given: &HostConfig) -> Vec<String> {
    let mut other = Vec::new();
    let bounded = |limit: Option<i64>| limit.filter(|limit| *limit > 0);
    if let Some(asked) = bounded(requested.memory.copied())
        && given.memory.copied() != Some(asked)
    {
        let got = bounded(given.memory.copied()).map_or("none".to_owned(), |got| size(got.unsigned_abs()));
        other.push(format!("requested a memory limit of {} but got {got}", size(asked.unsigned_abs())));
    }
    if let Some(asked) = bounded(requested.nano_cpus.copied())
        && given.nano_cpus.copied() != Some(asked)
    {
        let got = bounded(given.nano_cpus.copied()).map_or("none".to_owned(), |got| Cpus(got).to_string());
        other.push(format!("requested a limit of {} CPUs but got {got}", Cpus(asked)));
    }
    if let Some(asked) = bounded(requested.pids_limit.copied())
        && given.pids_limit.copied() != Some(asked)
    {
        let got = bounded(given.pids_limit.copied()).map_or("none".to_owned(), |got| got.to_string());
        other.push(format!("requested a limit of {asked} processes but got {got}"));
    }
    other
}

/// Choices of the request that the engine's account has not.
fn choices(requested: &HostConfig, given: &HostConfig) -> Vec<String> {
    let choices = [
        ("the runtime", &requested.runtime, &given.runtime),
        ("the CPUs", &requested.cpuset_cpus, &given.cpuset_cpus),
        ("the NUMA nodes", &requested.cpuset_mems, &given.cpuset_mems),
    ];
    let differ = choices.into_iter().filter_map(|(what, requested, given)| {
        let asked = requested.text()?;
        let got = given.text().filter(|text| !text.is_empty());
        (got != Some(asked))
            .then(|| format!("requested {what} {asked} but the engine's account has {}", got.unwrap_or("none")))
    });
    differ.collect()
}

/// Namespaces of the host that only one of the two has.
fn modes(requested: &HostConfig, given: &HostConfig) -> Vec<String> {
    let modes = [
        ("network", &requested.network_mode, &given.network_mode),
        ("IPC", &requested.ipc_mode, &given.ipc_mode),
        ("PID", &requested.pid_mode, &given.pid_mode),
    ];
    let differ = modes.into_iter().filter_map(|(name, requested, given)| {
        let asked = requested.text() == Some("host");
        let got = given.text()? == "host";
        match (asked, got) {
            (true, false) => Some(format!("requested the host's {name} namespace but the engine gave another")),
            (false, true) => Some(format!("the engine gave the host's {name} namespace, which was not requested")),
            _ => None,
        }
    });
    differ.collect()
}

fn shared_memory(given: &HostConfig, limits: &LimitsBody) -> Option<String> {
    let asked = given.shm_size.copied()?;
    let got = limits.shm_bytes()?;
    let differs = given.ipc_mode.text() != Some("host") && asked > 0 && asked != got;
    differs
        .then(|| format!("requested {} of /dev/shm but found {}", size(asked.unsigned_abs()), size(got.unsigned_abs())))
}

fn ulimits(given: &HostConfig, limits: &LimitsBody) -> Vec<String> {
    let differ = given.ulimits.list().iter().filter_map(|limit| {
        let name = limit.name.text()?;
        let asked = limit.soft.copied()?;
        let got = limits.soft_limit(&name.trim_start_matches("RLIMIT_").to_lowercase())?;
        (got != asked).then(|| format!("requested the limit {name}={asked} but found {got}"))
    });
    differ.collect()
}

/// Kernels keep a limit as microseconds in a period, which is not exactly the number that was requested.
const HUNDREDTH: f64 = 0.01;

/// Another limit on CPUs, or other CPUs, than the engine's account has.
fn processors(given: &HostConfig, limits: &LimitsBody) -> Vec<String> {
    let mut other = Vec::new();
    let Some(group) = limits.cgroup.value() else { return other };
    if let (Some(asked), Some(got)) = (given.nano_cpus.copied().filter(|asked| *asked > 0), group.cpu_quota.copied())
        && (got < 0.0 || (Cpus(asked).count() - got).abs() > HUNDREDTH)
    {
        let got = if got < 0.0 { "none".to_owned() } else { format!("{got:.2}") };
        other.push(format!("requested a limit of {} CPUs but found {got}", Cpus(asked)));
    }
    if let (Some(asked), Some(got)) = (given.cpuset_cpus.text().filter(|asked| !asked.is_empty()), group.cpuset.text())
        && cpu_numbers(asked) != cpu_numbers(got)
    {
        other.push(format!("requested the CPUs {asked} but found {got}"));
    }
    other
}

/// Namespaces of the host by the engine's account that are others by their inodes.
fn namespaces(launch: &LaunchEvent, given: &HostConfig, limits: &LimitsBody) -> Vec<String> {
    let modes = [(&given.network_mode, "net"), (&given.ipc_mode, "ipc"), (&given.pid_mode, "pid")];
    let differ = modes.into_iter().filter_map(|(mode, namespace)| {
        let ours = launch.namespaces.get(namespace).and_then(|inode| i64::try_from(*inode).ok())?;
        let theirs = limits.namespaces.value().and_then(|namespaces| namespaces.get(namespace).copied())?;
        (mode.text() == Some("host") && ours != theirs).then(|| {
            format!("requested the host's {namespace} namespace but the engine runs in a namespace of its own")
        })
    });
    differ.collect()
}

fn rdma_devices(given: &HostConfig, limits: &LimitsBody) -> Option<String> {
    let is_rdma = |path: &str| path.starts_with("/dev/infiniband");
    let wants = given.devices.list().iter().any(|device| device.path_on_host.text().is_some_and(is_rdma));
    let lacks = wants && !has_device(limits, |path| path.starts_with("/dev/infiniband"));
    lacks.then(|| "requested /dev/infiniband but it is missing".to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use facts::Facts;
    use facts::key;
    use model::Fact;

    use super::super::super::wire::host_config::DeviceRequest;
    use super::*;

    /// Facts of a container, from the engine's account and from what the container saw.
    fn facts(host: &str, limits: &str, gpus: &str) -> Facts {
        let launch = format!(
            r#"{{"ncclcheck":1,"event":"launch","engine":"Docker","image":"x","image_id":"","command":"","gpus":true,"given":{{"HostConfig":{host}}},"namespaces":{{"net":7,"ipc":8}}}}"#
        );
        let step = |name: &str, body: &str| {
            format!(r#"{{"ncclcheck":1,"event":"result","step":"{name}","seconds":1.0,"body":{body}}}"#)
        };
        let lines = [launch, step("limits", limits), step("gpus", gpus)].join("\n");
        let mut facts = Facts::default();
        super::super::container::produce(&Recording::read(lines.as_bytes()), &mut facts);
        facts
    }

    const LIMITS: &str = r#"{"shm":{"size_bytes":67108864},"rlimits":{"memlock":{"soft":65536,"hard":65536}},
        "affinity":[0,1,2,3],"namespaces":{"net":9,"ipc":8},"cgroup":{"cpu_quota":2.5},"devices":[{"path":"/dev/nvidia0","permitted":true}]}"#;

    #[test]
    fn differences_from_the_request_are_listed() {
        let limits = LIMITS.replace('\n', "");
        let host = r#"{"NetworkMode":"host","ShmSize":8589934592,"Ulimits":[{"Name":"memlock","Soft":-1,"Hard":-1}],
            "Devices":[{"PathOnHost":"/dev/infiniband"}],"DeviceRequests":[{"Count":2}]}"#
            .replace('\n', "");
        let facts = facts(&host, &limits, r#"{"gpus":[{"index":0}]}"#);
        let told = facts.view(&key::RUN_GIVEN_OTHERWISE).value().unwrap().to_string();
        for wanted in [
            "requested 2 GPUs but found 1",
            "requested 8 GiB of /dev/shm but found 64 MiB",
            "requested the limit memlock=-1 but found 65536",
            "requested /dev/infiniband but it is missing",
            "requested the host's net namespace but the engine runs in a namespace of its own",
        ] {
            assert!(told.contains(wanted), "{told}");
        }
        assert_eq!(facts.get(key::RUN_PROCESSORS).value(), Some(&2));
    }

    #[test]
    fn devices_that_cannot_be_read_are_not_missing() {
        let limits = LIMITS.replace('\n', "").replace(r#"[{"path":"/dev/nvidia0","permitted":true}]"#, "7");
        let facts = facts(r#"{"Devices":[{"PathOnHost":"/dev/infiniband"}]}"#, &limits, r#"{"gpus":[{"index":0}]}"#);
        assert_eq!(facts.get(key::RUN_GIVEN_OTHERWISE), &Fact::Absent);
    }

    #[test]
    fn a_container_as_requested_has_no_differences() {
        let limits = LIMITS.replace('\n', "");
        let host = r#"{"NetworkMode":"bridge","IpcMode":"host","ShmSize":67108864,"DeviceRequests":[{"DeviceIDs":["nvidia.com/gpu=0"]}]}"#;
        let facts = facts(host, &limits, r#"{"gpus":[{"index":0}]}"#);
        assert_eq!(facts.get(key::RUN_GIVEN_OTHERWISE), &Fact::Absent);
        let all = DeviceRequest { count: (-1).into(), ..DeviceRequest::default() };
        assert_eq!(gpus_asked(&HostConfig { device_requests: vec![all].into(), ..HostConfig::default() }), None);
    }

    /// Differences between a requested configuration and the engine's account of it.
    fn between(requested: &str, given: &str) -> Vec<String> {
        let launch = LaunchEvent {
            gpus: true,
            requested: serde_json::from_str(&format!(r#"{{"HostConfig":{requested}}}"#)).ok(),
            given: serde_json::from_str(&format!(r#"{{"HostConfig":{given}}}"#)).ok(),
            ..LaunchEvent::default()
        };
        let mut recording = Recording::default();
        recording.launch = Some(launch);
        let limits: LimitsBody = serde_json::from_str(&LIMITS.replace('\n', "")).unwrap();
        find_differences(&recording, &limits)
    }

    const REQUESTED: &str = r#"{"ReadonlyRootfs":true,"SecurityOpt":["no-new-privileges"],"Memory":1024,"PidsLimit":64,
        "NetworkMode":"host","Binds":["/data:/data:ro"],"CapAdd":["IPC_LOCK"],"NanoCpus":2500000000,"CpusetCpus":"0-3",
        "CpusetMems":"0","Runtime":"runc"}"#;

    #[test]
    fn an_engine_that_gives_more_than_was_requested_is_noticed() {
        let given = r#"{"Privileged":true,"ReadonlyRootfs":false,"SecurityOpt":[],"Memory":0,"PidsLimit":32,
            "NetworkMode":"bridge","IpcMode":"host","Binds":["/data:/data:ro","/:/host"],"CapAdd":["CAP_IPC_LOCK","CAP_SYS_ADMIN"],
            "NanoCpus":0,"CpusetCpus":"","Runtime":"crun"}"#;
        assert_eq!(
            between(REQUESTED, given),
            [
                "the engine made the container privileged, which was not requested",
                "the engine added the capability SYS_ADMIN, which was not requested",
                "requested a read-only root file system but the engine made it writable",
                "requested no-new-privileges but the engine omitted it",
                "the engine mounted /:/host, which was not requested",
                "requested a memory limit of 1 KiB but got none",
                "requested a limit of 2.5 CPUs but got none",
                "requested a limit of 64 processes but got 32",
                "requested the host's network namespace but the engine gave another",
                "the engine gave the host's IPC namespace, which was not requested",
                "requested the runtime runc but the engine's account has crun",
                "requested the CPUs 0-3 but the engine's account has none",
                "requested the NUMA nodes 0 but the engine's account has none",
            ]
        );
    }

    #[test]
    fn an_account_of_what_was_requested_has_no_differences() {
        let podman = r#"{"Privileged":false,"ReadonlyRootfs":true,"SecurityOpt":["no-new-privileges"],"Memory":1024,
            "PidsLimit":64,"NetworkMode":"host","Binds":["/data:/data:ro,rprivate,rbind"],"CapAdd":["CAP_IPC_LOCK"],"NanoCpus":2500000000,
            "CpusetCpus":"0-3","CpusetMems":"0","Runtime":"runc"}"#;
        assert_eq!(between(REQUESTED, podman), [""; 0]);
        assert_eq!(between(REQUESTED, REQUESTED), [""; 0]);
    }

    #[test]
    fn a_privileged_container_is_what_was_requested() {
        let privileged = r#"{"Privileged":true}"#;
        assert_eq!(between(privileged, r#"{"Privileged":true,"CapAdd":["CAP_SYS_ADMIN"]}"#), [""; 0]);
        assert_eq!(
            between(privileged, "{}"),
            ["requested a privileged container but the engine made it without privileges"]
        );
    }

    #[test]
    fn other_cpus_than_those_of_the_account_are_noticed() {
        let differences = |host: &str, group: &str| {
            let mut recording = Recording::default();
            let given = serde_json::from_str(&format!(r#"{{"HostConfig":{host}}}"#)).ok();
            recording.launch = Some(LaunchEvent { given, ..LaunchEvent::default() });
            let limits = serde_json::from_str(&format!(r#"{{"cgroup":{group}}}"#)).unwrap();
            find_differences(&recording, &limits)
        };
        let host = r#"{"NanoCpus":1500000000,"CpusetCpus":"0,1,4-5"}"#;
        assert_eq!(differences(host, r#"{"cpu_quota":1.499,"cpuset":"0-1,4,5"}"#), [""; 0]);
        assert_eq!(differences(host, "{}"), [""; 0]);
        assert_eq!(differences(r#"{"NanoCpus":0,"CpusetCpus":""}"#, r#"{"cpu_quota":1.0,"cpuset":"0"}"#), [""; 0]);
        assert_eq!(
            differences(host, r#"{"cpu_quota":1.25,"cpuset":"0-5"}"#),
            ["requested a limit of 1.5 CPUs but found 1.25", "requested the CPUs 0,1,4-5 but found 0-5"]
        );
        assert_eq!(differences(host, r#"{"cpu_quota":-1}"#), ["requested a limit of 1.5 CPUs but found none"]);
    }

    #[test]
    fn another_entrypoint_is_noticed() {
        let account = |entrypoint: &[&str]| Some(json!({"HostConfig": {}, "Config": {"Entrypoint": entrypoint}}));
        let differences = |given: &[&str]| {
            let mut recording = Recording::default();
            let requested = account(&["/entry.sh", "-x"]);
            let given = account(given);
            recording.launch = Some(LaunchEvent { requested, given, ..LaunchEvent::default() });
            find_differences(&recording, &LimitsBody::default())
        };
        assert_eq!(differences(&["/entry.sh", "-x"]), [""; 0]);
        let other = "requested the entrypoint /entry.sh -x but the engine's account has no entrypoint";
        assert_eq!(differences(&[]), [other]);
    }

    #[test]
    fn gpus_that_were_not_requested_are_noticed() {
        let line = r#"{"ncclcheck":1,"event":"result","step":"gpus","seconds":1.0,"body":{"gpus":[{},{}]}}"#;
        let mut recording = Recording::read(line.as_bytes());
        recording.launch = Some(LaunchEvent::default());
        assert_eq!(find_differences(&recording, &LimitsBody::default()), ["requested no GPUs but found 2"]);
    }
}
