//! Facts about the imported torch.

use std::collections::BTreeSet;

use facts::Facts;
use facts::key::{self, Definition};
use model::Fact;

use super::super::recording::{Recording, StepOutcome, StepRecord};
use super::super::wire::StepBody as _;
use super::super::wire::pytorch::{MappedLibraries, PytorchBody, TorchBuild, TorchDevice};
use super::{none_of, seen, site, texts, unanswered};

const BUILD: &[&Definition] = key::definitions![RUN_TORCH_VERSION, RUN_TORCH_FILE, RUN_TORCH_NCCL, RUN_TORCH_LOADED];
const DEVICES: &[&Definition] =
    key::definitions![RUN_TORCH_CUDA_ERROR, RUN_TORCH_NO_CODE, RUN_TORCH_PTX, RUN_TORCH_KERNELS];

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let unanswered: Fact = unanswered(recording, PytorchBody::STEP);
    let Some(step) = recording.find(PytorchBody::STEP) else {
        none_of(key::definitions![RUN_TORCH_ERROR], &unanswered, facts);
        none_of(BUILD, &unanswered, facts);
        return none_of(DEVICES, &unanswered, facts);
    };
    // The program reports the build right after the import, whatever happens later.
    let build = step.parts_of::<TorchBuild>().next();
    match &build {
        None => none_of(BUILD, &unanswered, facts),
        Some(build) => {
            let version = build.version.text().map_or(Fact::Absent, |version| seen(step, version));
            facts.insert(key::RUN_TORCH_VERSION, version);
            facts.insert(key::RUN_TORCH_FILE, build.file.text().map_or(Fact::Absent, |file| seen(step, file)));
            let nccl = build.nccl_available.fact().clone().and_then(|is, _| seen(step, is));
            facts.insert(key::RUN_TORCH_NCCL, nccl);
            let mut mapped = step.parts_of::<MappedLibraries>();
            let at_import = mapped.find(|part| part.when.text() == Some("import"));
            let paths = at_import.map(|part| part.paths.list().to_vec()).unwrap_or_default();
            facts.insert(key::RUN_TORCH_LOADED, texts(step, paths));
        }
    }
    let error = match &step.outcome {
        StepOutcome::Failed(failed) if build.is_none() => seen(step, failed.worded(&failed.message)),
        _ => Fact::Absent,
    };
    facts.insert(key::RUN_TORCH_ERROR, error);
    match recording.result::<PytorchBody>() {
        Some((step, body)) => devices(step, &body, facts),
        None => none_of(DEVICES, &unanswered, facts),
    }
}

fn devices(step: &StepRecord, body: &PytorchBody, facts: &mut Facts) {
    let error = body.cuda_error.text().map_or(Fact::Absent, |error| seen(step, error));
    facts.insert(key::RUN_TORCH_CUDA_ERROR, error);
    let each = |describe: fn(&TorchDevice) -> Option<String>| {
        body.devices.fact().as_ref().and_then(|devices, _| {
            let found = devices.iter().filter_map(|device| {
                let index = device.index.copied().unwrap_or_default();
                let name = device.name.text().unwrap_or("?");
                let capability = device.capability.text().unwrap_or("?");
                Some(format!("GPU {index} ({name}, {capability}): {}", describe(device)?))
            });
            texts(step, found.collect())
        })
    };
    facts.insert(key::RUN_TORCH_NO_CODE, each(no_code));
    facts.insert(key::RUN_TORCH_PTX, each(ptx));
    facts.insert(key::RUN_TORCH_KERNELS, each(kernel));
}

fn no_code(device: &TorchDevice) -> Option<String> {
    (device.code.text() == Some("none")).then(|| "no code for this GPU".to_owned())
}

fn ptx(device: &TorchDevice) -> Option<String> {
    (device.code.text() == Some("ptx")).then(|| device.code_from.text().unwrap_or("PTX").to_owned())
}

fn kernel(device: &TorchDevice) -> Option<String> {
    match (device.error.text(), device.kernel_correct.copied()) {
        (Some(error), _) => Some(error.to_owned()),
        (None, Some(false)) => Some("the result of a small kernel is wrong".to_owned()),
        (None, _) => None,
    }
}

/// Paths that are in only one of the two lists. Loaded libraries count only if the prediction covers them: the driver's
/// libraries come from the host, and Python's extension modules and their own dependencies are not predicted.
pub(super) fn differences(predicted: &Fact<Vec<String>>, loaded: &Fact<Vec<String>>) -> Fact<Vec<String>> {
    let set = |fact: &Fact<Vec<String>>| fact.value().map(|paths| paths.iter().cloned().collect::<BTreeSet<_>>());
    let (Some(predicted), Some(loaded)) = (set(predicted), set(loaded)) else {
        return match (predicted, loaded) {
            (Fact::Unknown(gap), _) | (_, Fact::Unknown(gap)) => Fact::Unknown(gap.clone()),
            _ => Fact::Absent,
        };
    };
    let missed = predicted.difference(&loaded).map(|path| format!("{path} is predicted but not loaded"));
    let more = loaded.difference(&predicted).filter(|path| concerns(path));
    let more = more.map(|path| format!("{path} is loaded but not predicted"));
    let all: Vec<String> = missed.chain(more).collect();
    if all.is_empty() { Fact::Absent } else { Fact::seen(all, [site(PytorchBody::STEP)]) }
}

/// Returns true for a library of the image that matters for NCCL, CUDA or RDMA.
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
