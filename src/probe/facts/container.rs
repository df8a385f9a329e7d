//! What the container got, and how the probe went as a whole.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key;
use crate::model::{Fact, Value};

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
    let processors = body.list("affinity").count();
    facts.insert(key::RUN_PROCESSORS, number(i64::try_from(processors).ok().filter(|count| *count > 0), "affinity"));
    let variables: BTreeMap<String, String> = body
        .object("variables")
        .entries()
        .filter_map(|(name, value)| Some((name.to_owned(), value.as_text()?.to_owned())))
        .collect();
    facts.insert(key::RUN_RUNTIME_VARIABLES, if variables.is_empty() { Fact::Absent } else { seen(step, variables) });
    let otherwise = given_otherwise(recording, body);
    facts.insert(key::RUN_GIVEN_OTHERWISE, if otherwise.is_empty() { Fact::Absent } else { seen(step, otherwise) });
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
    let wants_rdma = host
        .list("Devices")
        .any(|device| device.text("PathOnHost").is_some_and(|path| path.starts_with("/dev/infiniband")));
    if wants_rdma && !devices.iter().any(|path| path.starts_with("/dev/infiniband")) {
        otherwise.push("/dev/infiniband was to be there, and is not".to_owned());
    }
    otherwise
}
