//! Facts about the container's resources, and about the probe as a whole.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::facts::key;
use crate::facts::records::{FailedStep, SkippedStep};
use crate::facts::value::ListItem;
use crate::model::{Fact, Gap, size};

use super::super::recording::{Recording, StepOutcome, StepRecord};
use super::super::wire::StepBody as _;
use super::super::wire::collectives::{CollectivesBody, UncleanExit};
use super::super::wire::gpus::GpusBody;
use super::super::wire::host_config::HostConfig;
use super::super::wire::limits::LimitsBody;
use super::super::wire::{self, Nullable};
use super::{filled, none_of, seen, site, untold};

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let launch = recording.launch.as_ref();
    let engine = launch.map_or(Fact::Absent, |launch| Fact::seen(launch.engine.clone(), []));
    facts.insert(key::RUN_ENGINE, engine);
    facts.insert(key::RUN_GPUS_ASKED, launch.map_or(Fact::Absent, |launch| Fact::seen(launch.gpus, [])));
    let unfinished = recording.broken.clone().filter(|_| !recording.ended);
    facts.insert(key::RUN_UNFINISHED, unfinished.map_or(Fact::Absent, |why| Fact::seen(why, [])));
    facts.insert(key::RUN_FAILED_STEPS, records(recording, failed));
    facts.insert(key::RUN_SKIPPED_STEPS, records(recording, skipped));
    let unclean: Vec<String> = recording.steps.iter().flat_map(unclean).collect();
    facts.insert(key::RUN_UNCLEAN_EXITS, if unclean.is_empty() { Fact::Absent } else { Fact::seen(unclean, []) });

    let Some((step, body)) = recording.result::<LimitsBody>() else {
        let keys = key::definitions![
            RUN_SHM,
            RUN_MEMLOCK,
            RUN_NOFILE,
            RUN_PROCESSORS,
            RUN_RUNTIME_VARIABLES,
            RUN_GIVEN_OTHERWISE,
        ];
        return none_of(keys, &untold(recording, LimitsBody::STEP), facts);
    };
    facts.insert(key::RUN_SHM, number(step, shm_bytes(&body), &body.shm));
    facts.insert(key::RUN_MEMLOCK, number(step, soft_limit(&body, "memlock"), &body.rlimits));
    facts.insert(key::RUN_NOFILE, number(step, soft_limit(&body, "nofile"), &body.rlimits));
    facts.insert(key::RUN_PROCESSORS, number(step, processors(&body), &body.affinity));
    let variables = body.variables.fact().clone();
    let seen_if_any =
        |variables: BTreeMap<_, _>, _| if variables.is_empty() { Fact::Absent } else { seen(step, variables) };
    facts.insert(key::RUN_RUNTIME_VARIABLES, variables.and_then(seen_if_any));
    let otherwise = given_otherwise(recording, &body);
    facts.insert(
        key::RUN_GIVEN_OTHERWISE,
        match launch {
            _ if !otherwise.is_empty() => seen(step, otherwise),
            Some(launch) if launch.given.is_none() => {
                Fact::Unknown(Gap::new(format!("{} did not report the container's configuration", launch.engine)))
            }
            _ => Fact::Absent,
        },
    );
}

/// A number from a step. Without a number, the fact takes the gap of `field`, the field that contains it.
fn number<T>(step: &StepRecord, value: Option<i64>, field: &Nullable<T>) -> Fact<i64> {
    match value {
        Some(value) => seen(step, value),
        None => field.fact().as_ref().and_then(|_, _| Fact::Absent),
    }
}

fn shm_bytes(limits: &LimitsBody) -> Option<i64> {
    limits.shm.value()?.size_bytes.copied()
}

/// The soft limit of a resource, by its name in lower case and without `RLIMIT_`.
fn soft_limit(limits: &LimitsBody, resource: &str) -> Option<i64> {
    limits.rlimits.value()?.get(resource)?.soft.copied()
}

/// A record for each step that has one.
fn records<T: ListItem>(recording: &Recording, record: fn(&StepRecord) -> Option<T>) -> Fact<Vec<T>> {
    let found = recording.steps.iter().filter_map(|step| Some((site(&step.name), record(step)?)));
    let (at, records): (Vec<_>, Vec<_>) = found.unzip();
    if records.is_empty() { Fact::Absent } else { Fact::Seen { value: records, at } }
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

fn failed(step: &StepRecord) -> Option<FailedStep> {
    let StepOutcome::Failed(failed) = &step.outcome else { return None };
    Some(FailedStep {
        step: filled(step.name.clone()),
        how: filled(failed.how.clone()),
        message: filled(failed.worded(&failed.message)),
    })
}

fn skipped(step: &StepRecord) -> Option<SkippedStep> {
    let StepOutcome::Skipped(why) = &step.outcome else { return None };
    Some(SkippedStep { step: filled(step.name.clone()), why: filled(why.clone()) })
}

fn unclean(step: &StepRecord) -> Vec<String> {
    let StepOutcome::Done { body, unclean_exit } = &step.outcome else { return Vec::new() };
    let own = unclean_exit.iter().map(|how| format!("{}: {how}", step.name));
    // Steps without ranks have no such exits.
    let body: CollectivesBody = wire::read(body);
    // An unreadable failure is still a failure.
    let ranks = match body.unclean_exits.known_list() {
        Ok(exits) => exits.iter().map(|exit| format!("{}: {}", step.name, ending(exit))).collect(),
        Err(gap) => vec![format!("{}: {gap}", step.name)],
    };
    own.chain(ranks).collect()
}

fn ending(exit: &UncleanExit) -> String {
    let rank = exit.rank.copied().map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
    format!("{rank}: {}", exit.ending.text().unwrap_or("ended abnormally"))
}

/// Number of processors that the container may use: the size of its CPU affinity, limited by its CPU quota.
fn processors(limits: &LimitsBody) -> Option<i64> {
    let bound = i64::try_from(limits.affinity.list().len()).ok().filter(|count| *count > 0)?;
    let quota = limits.cgroup.value().and_then(|cgroup| cgroup.cpu_quota.copied()).filter(|quota| *quota > 0.0);
    // A quota below one processor counts as one.
    Some(quota.map_or(bound, |quota| bound.min(super::whole(quota.floor()).max(1))))
}

/// Differences between the engine's account of the container and what the container sees.
fn given_otherwise(recording: &Recording, limits: &LimitsBody) -> Vec<String> {
    let mut otherwise = Vec::new();
    let Some(launch) = &recording.launch else { return otherwise };
    // An unreadable list proves nothing.
    let has_device = |wanted: fn(&str) -> bool| {
        limits.devices.known_list().is_err()
            || limits.devices.list().iter().filter_map(|device| device.path.text()).any(wanted)
    };
    if launch.gpus && !has_device(|path| path.starts_with("/dev/nvidia") || path == "/dev/dxg") {
        otherwise.push("requested GPUs but found no GPU device node".to_owned());
    }
    let Some(host) = launch.host_config() else { return otherwise };
    let seen = recording.result::<GpusBody>().and_then(|(_, body)| body.gpus.value().map(Vec::len));
    if let (Some(asked), Some(seen)) = (gpus_asked(&host), seen)
        && seen > 0
        && asked != seen
    {
        otherwise.push(format!("requested {asked} GPUs but found {seen}"));
    }
    if let (Some(asked), Some(got)) = (host.shm_size.copied(), shm_bytes(limits))
        && host.ipc_mode.text() != Some("host")
        && asked > 0
        && asked != got
    {
        let (asked, got) = (size(asked.unsigned_abs()), size(got.unsigned_abs()));
        otherwise.push(format!("requested {asked} of /dev/shm but found {got}"));
    }
    for limit in host.ulimits.list() {
        let (Some(name), Some(asked)) = (limit.name.text(), limit.soft.copied()) else { continue };
        let got = soft_limit(limits, &name.trim_start_matches("RLIMIT_").to_lowercase());
        if let Some(got) = got.filter(|got| *got != asked) {
            otherwise.push(format!("requested the limit {name}={asked} but found {got}"));
        }
    }
    for (mode, namespace) in [(&host.network_mode, "net"), (&host.ipc_mode, "ipc"), (&host.pid_mode, "pid")] {
        let ours = launch.namespaces.get(namespace).and_then(|inode| i64::try_from(*inode).ok());
        let theirs = limits.namespaces.value().and_then(|namespaces| namespaces.get(namespace).copied());
        if mode.text() == Some("host") && ours.is_some() && theirs.is_some() && ours != theirs {
            otherwise.push(format!(
                "requested the host's {namespace} namespace but the engine runs in a namespace of its own"
            ));
        }
    }
    let wants_rdma = host
        .devices
        .list()
        .iter()
        .any(|device| device.path_on_host.text().is_some_and(|path| path.starts_with("/dev/infiniband")));
    if wants_rdma && !has_device(|path| path.starts_with("/dev/infiniband")) {
        otherwise.push("requested /dev/infiniband but it is missing".to_owned());
    }
    otherwise
}

#[cfg(test)]
mod tests {
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
        produce(&Recording::read(lines.as_bytes()), &mut facts);
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
}
