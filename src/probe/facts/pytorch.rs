//! The torch that was imported.

use std::collections::BTreeSet;

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key::{self, Key};
use crate::model::{Fact, Value};

use super::super::events::Body;
use super::super::recording::{Outcome, Recording, Step};
use super::reading::Reading;
use super::{none_of, seen, site, texts, untold};

const BUILD: &[&Key] = &[key::RUN_TORCH_VERSION, key::RUN_TORCH_FILE, key::RUN_TORCH_NCCL, key::RUN_TORCH_LOADED];
const DEVICES: &[&Key] =
    &[key::RUN_TORCH_CUDA_ERROR, key::RUN_TORCH_NO_CODE, key::RUN_TORCH_PTX, key::RUN_TORCH_KERNELS];

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let untold = untold(recording, "pytorch");
    let Some(step) = recording.find("pytorch") else {
        facts.insert(key::RUN_TORCH_ERROR, untold.clone());
        none_of(BUILD, &untold, facts);
        return none_of(DEVICES, &untold, facts);
    };
    // The import is told as soon as it is done, whatever comes after it.
    let build = part(step, "kind", "build").map(|part| Json::Object(part.clone()));
    match &build {
        None => none_of(BUILD, &untold, facts),
        Some(build) => {
            let build = Reading::new(build);
            let version = build.text("version").map_or(Fact::Absent, |version| seen(step, version));
            facts.insert(key::RUN_TORCH_VERSION, version);
            facts.insert(key::RUN_TORCH_FILE, build.text("file").map_or(Fact::Absent, |file| seen(step, file)));
            let nccl = build
                .get("nccl_available")
                .and_then(|value, _| value.as_bool().map_or(Fact::Absent, |is| seen(step, is)));
            facts.insert(key::RUN_TORCH_NCCL, nccl);
            let mapped = part(step, "when", "import").map(|part| Json::Object(part.clone()));
            let paths = mapped.map(|part| Reading::new(&part).texts("paths")).unwrap_or_default();
            facts.insert(key::RUN_TORCH_LOADED, texts(step, paths));
        }
    }
    let error = match &step.outcome {
        Outcome::Failed(failed) if build.is_none() => {
            let kind = failed.kind.as_ref().map(|kind| format!("{kind}: ")).unwrap_or_default();
            seen(step, format!("{kind}{}", failed.message))
        }
        _ => Fact::Absent,
    };
    facts.insert(key::RUN_TORCH_ERROR, error);
    let Some(body) = step.body() else { return none_of(DEVICES, &untold, facts) };
    devices(step, body, facts);
}

fn devices(step: &Step, body: &Body, facts: &mut Facts) {
    let object = Json::Object(body.clone());
    let body = Reading::new(&object);
    let error = body.text("cuda_error").map_or(Fact::Absent, |error| seen(step, error));
    facts.insert(key::RUN_TORCH_CUDA_ERROR, error);
    let each = |describe: &dyn Fn(Reading<'_>) -> Option<String>| {
        let found = body.list("devices").filter_map(|device| {
            let index = device.number("index").unwrap_or_default();
            let (name, capability) = (device.text("name").unwrap_or("?"), device.text("capability").unwrap_or("?"));
            Some(format!("GPU {index} ({name}, {capability}): {}", describe(device)?))
        });
        body.get("devices").and_then(|_, _| texts(step, found.collect()))
    };
    facts.insert(
        key::RUN_TORCH_NO_CODE,
        each(&|device| (device.text("code") == Some("none")).then(|| "no code for it".to_owned())),
    );
    facts.insert(
        key::RUN_TORCH_PTX,
        each(&|device| {
            (device.text("code") == Some("ptx")).then(|| device.text("code_from").unwrap_or("PTX").to_owned())
        }),
    );
    facts.insert(
        key::RUN_TORCH_KERNELS,
        each(&|device| match (device.text("error"), device.flag("kernel_correct")) {
            (Some(error), _) => Some(error.to_owned()),
            (None, Some(false)) => Some("the result of a small kernel is wrong".to_owned()),
            (None, _) => None,
        }),
    );
}

/// The part in which a field has this text.
pub(super) fn part<'s>(step: &'s Step, field: &str, text: &str) -> Option<&'s Body> {
    step.parts.iter().find(|part| part.get(field).and_then(Json::as_str) == Some(text))
}

/// Paths that only one of the two lists has. The driver's libraries come from the host, and of what was mapped only what
/// the prediction speaks about is compared: modules of Python and what they alone need are not.
pub(super) fn differences(predicted: &Fact, loaded: &Fact) -> Fact {
    let list = |fact: &Fact| -> Option<BTreeSet<String>> {
        let Value::List(paths) = fact.value()? else { return None };
        Some(paths.iter().map(ToString::to_string).collect())
    };
    let (Some(predicted), Some(loaded)) = (list(predicted), list(loaded)) else {
        return match (predicted, loaded) {
            (Fact::Unknown(gap), _) | (_, Fact::Unknown(gap)) => Fact::Unknown(gap.clone()),
            _ => Fact::Absent,
        };
    };
    let missed = predicted.difference(&loaded).map(|path| format!("{path} was predicted, and is not loaded"));
    let more = loaded.difference(&predicted).filter(|path| concerns(path));
    let more = more.map(|path| format!("{path} is loaded, and was not predicted"));
    let all: Vec<String> = missed.chain(more).collect();
    if all.is_empty() { Fact::Absent } else { Fact::seen(all.into(), [site("pytorch")]) }
}

/// Whether a library is one that decides about NCCL, CUDA or RDMA and belongs to the image.
fn concerns(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let starts = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
    starts(&[
        "libnccl",
        "libcudart",
        "libtorch",
        "libc10",
        "libibverbs",
        "libmlx5",
        "libcudnn",
        "libcublas",
        "libnvshmem",
    ])
}
