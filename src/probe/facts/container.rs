//! What the container got, and how the probe went as a whole.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key;
use crate::model::{Fact, Gap, Value};

use super::super::recording::{Outcome, Recording, Step};
use super::reading::Reading;
use super::{none_of, seen, site, untold};

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

    let Some((step, body)) = recording.find("limits").and_then(|step| Some((step, step.body()?))) else {
        let keys = &[
            key::RUN_SHM,
            key::RUN_MEMLOCK,
            key::RUN_NOFILE,
            key::RUN_PROCESSORS,
            key::RUN_RUNTIME_VARIABLES,
            key::RUN_GIVEN_OTHERWISE,
        ];
        return none_of(keys, &untold(recording, "limits"), facts);
    };
    let object = Json::Object(body.clone());
    let body = Reading::new(&object);
    let number = |value: Option<i64>, name: &str| match value {
        Some(value) => seen(step, Value::Int(value)),
        None => body.get(name).and_then(|_, _| Fact::Absent),
    };
    facts.insert(key::RUN_SHM, number(body.object("shm").number("size_bytes"), "shm"));
    let limit = |name| body.object("rlimits").object(name).number("soft");
    facts.insert(key::RUN_MEMLOCK, number(limit("memlock"), "rlimits"));
    facts.insert(key::RUN_NOFILE, number(limit("nofile"), "rlimits"));
    facts.insert(key::RUN_PROCESSORS, number(processors(body), "affinity"));
    let variables: BTreeMap<String, String> = body
        .object("variables")
        .entries()
        .filter_map(|(name, value)| Some((name.to_owned(), value.as_text()?.to_owned())))
        .collect();
    facts.insert(key::RUN_RUNTIME_VARIABLES, if variables.is_empty() { Fact::Absent } else { seen(step, variables) });
    let otherwise = given_otherwise(recording, body);
    facts.insert(
        key::RUN_GIVEN_OTHERWISE,
        match launch {
            _ if !otherwise.is_empty() => seen(step, otherwise),
            Some(launch) if launch.given.is_none() => {
                Fact::Unknown(Gap::new(format!("{} does not say what it gave", launch.engine)))
            }
            _ => Fact::Absent,
        },
    );
}

/// Fields of a record; one without text is left out.
type Fields = [(&'static str, String); 3];

fn records(recording: &Recording, record: fn(&Step) -> Option<Fields>) -> Fact {
    let found = recording.steps.iter().filter_map(|step| Some((step, record(step)?)));
    let (at, records): (Vec<_>, Vec<Value>) = found
        .map(|(step, fields)| {
            let fields = fields.into_iter().filter(|(_, text)| !text.is_empty());
            let record: BTreeMap<_, _> = fields.map(|(name, text)| (name.to_owned(), text)).collect();
            (site(&step.name), record.into())
        })
        .unzip();
    if records.is_empty() { Fact::Absent } else { Fact::Seen { value: Value::List(records), at } }
}

/// How many GPUs a device request names; `None` where it is all of them, or where one name may be several.
fn gpus_asked(host: Reading<'_>) -> Option<usize> {
    let request = host.list("DeviceRequests").next()?;
    let names = request.texts("DeviceIDs");
    match request.number("Count") {
        Some(count) if count > 0 => usize::try_from(count).ok(),
        _ if names.is_empty() || names.iter().any(|name| name.ends_with("all")) => None,
        _ => Some(names.len()),
    }
}

fn failed(step: &Step) -> Option<Fields> {
    let Outcome::Failed(failed) = &step.outcome else { return None };
    let message = match &failed.kind {
        Some(kind) => format!("{kind}: {}", failed.message),
        None => failed.message.clone(),
    };
    Some([("step", step.name.clone()), ("how", failed.how.clone()), ("message", message)])
}

fn skipped(step: &Step) -> Option<Fields> {
    let Outcome::Skipped(why) = &step.outcome else { return None };
    Some([("step", step.name.clone()), ("why", why.clone()), ("", String::new())])
}

fn unclean(step: &Step) -> Vec<String> {
    let Outcome::Done { body, unclean_exit } = &step.outcome else { return Vec::new() };
    let object = Json::Object(body.clone());
    let own = unclean_exit.iter().map(|how| format!("{}: {how}", step.name));
    let ranks = Reading::new(&object).list("unclean_exits").map(|exit| {
        let rank = exit.number("rank").map_or_else(|| "a rank".to_owned(), |rank| format!("rank {rank}"));
        let how =
            exit.text("ending").or_else(|| exit.text("words")).or_else(|| exit.as_text()).unwrap_or("ended badly");
        format!("{}: {rank}: {how}", step.name)
    });
    own.chain(ranks).collect()
}

/// Processors that the container may use: those it is bound to, and no more than its quota of time comes to.
fn processors(body: Reading<'_>) -> Option<i64> {
    let bound = i64::try_from(body.list("affinity").count()).ok().filter(|count| *count > 0)?;
    let quota = body.object("cgroup").float("cpu_quota").filter(|quota| *quota > 0.0);
    // A part of one counts as one: there is no less.
    Some(quota.map_or(bound, |quota| bound.min(super::whole(quota.floor()).max(1))))
}

/// What the engine was asked for, by its own account of the container, against what is seen from within.
fn given_otherwise(recording: &Recording, body: Reading<'_>) -> Vec<String> {
    let mut otherwise = Vec::new();
    let Some(launch) = &recording.launch else { return otherwise };
    let devices = body.list("devices").filter_map(|device| device.text("path"));
    let devices: Vec<_> = devices.collect();
    if launch.gpus && !devices.iter().any(|path| path.starts_with("/dev/nvidia") || *path == "/dev/dxg") {
        otherwise.push("GPUs were asked for, and there is no device node of one".to_owned());
    }
    let Some(given) = &launch.given else { return otherwise };
    let host = Reading::new(given).object("HostConfig");
    let seen = recording.find("gpus").and_then(|step| step.body()?.get("gpus")?.as_array().map(Vec::len));
    if let (Some(asked), Some(seen)) = (gpus_asked(host), seen)
        && seen > 0
        && asked != seen
    {
        otherwise.push(format!("{asked} GPUs were asked for, and there are {seen}"));
    }
    if let (Some(asked), Some(got)) = (host.number("ShmSize"), body.object("shm").number("size_bytes"))
        && host.text("IpcMode") != Some("host")
        && asked > 0
        && asked != got
    {
        otherwise.push(format!("/dev/shm was to have {asked} bytes, and has {got}"));
    }
    for limit in host.list("Ulimits") {
        let (Some(name), Some(asked)) = (limit.text("Name"), limit.number("Soft")) else { continue };
        let got =
            body.object("rlimits").object(name.trim_start_matches("RLIMIT_").to_lowercase().as_str()).number("soft");
        if let Some(got) = got.filter(|got| *got != asked) {
            otherwise.push(format!("the limit {name} was to be {asked}, and is {got}"));
        }
    }
    for (mode, namespace) in [("NetworkMode", "net"), ("IpcMode", "ipc"), ("PidMode", "pid")] {
        let ours = launch.namespaces.get(namespace).and_then(|inode| i64::try_from(*inode).ok());
        let theirs = body.object("namespaces").number(namespace);
        if host.text(mode) == Some("host") && ours.is_some() && theirs.is_some() && ours != theirs {
            otherwise.push(format!(
                "the host's {namespace} namespace was to be shared, and is not: the engine has one of its own"
            ));
        }
    }
    let wants_rdma = host
        .list("Devices")
        .any(|device| device.text("PathOnHost").is_some_and(|path| path.starts_with("/dev/infiniband")));
    if wants_rdma && !devices.iter().any(|path| path.starts_with("/dev/infiniband")) {
        otherwise.push("/dev/infiniband was to be there, and is not".to_owned());
    }
    otherwise
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Facts of a container by what the engine gave and what was seen in it.
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
    fn what_was_asked_and_not_given() {
        let limits = LIMITS.replace('\n', "");
        let host = r#"{"NetworkMode":"host","ShmSize":8589934592,"Ulimits":[{"Name":"memlock","Soft":-1,"Hard":-1}],
            "Devices":[{"PathOnHost":"/dev/infiniband"}],"DeviceRequests":[{"Count":2}]}"#
            .replace('\n', "");
        let facts = facts(&host, &limits, r#"{"gpus":[{"index":0}]}"#);
        let told = facts.get(key::RUN_GIVEN_OTHERWISE.name).value().unwrap().to_string();
        for wanted in [
            "2 GPUs were asked for, and there are 1",
            "/dev/shm was to have 8589934592 bytes, and has 67108864",
            "the limit memlock was to be -1, and is 65536",
            "/dev/infiniband was to be there, and is not",
            "the host's net namespace was to be shared, and is not",
        ] {
            assert!(told.contains(wanted), "{told}");
        }
        assert_eq!(facts.get(key::RUN_PROCESSORS.name).value(), Some(&Value::Int(2)));
    }

    #[test]
    fn what_was_given_as_asked() {
        let limits = LIMITS.replace('\n', "");
        let host = r#"{"NetworkMode":"bridge","IpcMode":"host","ShmSize":67108864,"DeviceRequests":[{"DeviceIDs":["nvidia.com/gpu=0"]}]}"#;
        let facts = facts(host, &limits, r#"{"gpus":[{"index":0}]}"#);
        assert_eq!(facts.get(key::RUN_GIVEN_OTHERWISE.name), &Fact::Absent);
        assert_eq!(gpus_asked(Reading::new(&serde_json::json!({"DeviceRequests": [{"Count": -1}]}))), None);
    }
}
