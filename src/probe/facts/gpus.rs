//! The driver and the GPUs, by NVML.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key::{self, Key};
use crate::model::{Fact, Host, Value, Version};

use super::super::recording::Recording;
use super::reading::Reading;
use super::{none_of, seen, texts, untold};

const KEYS: &[&Key] = &[
    key::RUN_DRIVER,
    key::RUN_GPU_COUNT,
    key::RUN_GPU_MODELS,
    key::RUN_GPU_UNREACHABLE,
    key::RUN_GPU_CUDA_MISSES,
    key::RUN_GPU_SLOWED,
    key::RUN_GPU_PCIE,
    key::RUN_GPU_NVLINK_DOWN,
    key::RUN_GPU_ECC,
    key::RUN_GPU_ROWS,
    key::RUN_GPU_MIG,
    key::RUN_GPU_FABRIC,
    key::RUN_GPU_LOG,
    key::RUN_GPU_XID,
    key::RUN_GPU_PERSISTENCE,
    key::RUN_LIBCUDA,
    key::RUN_LIBCUDA_COMPAT,
    key::RUN_NVLINK_GB_S,
];

/// Reasons for lower clocks that are trouble; an idle GPU and a power cap that somebody set are none (nvml.h,
/// nvmlClocksEventReason*).
const TROUBLE: &[&str] = &["hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"];

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.find("gpus").and_then(|step| Some((step, step.body()?))) else {
        return none_of(KEYS, &untold(recording, "gpus"), facts);
    };
    let object = Json::Object(body.clone());
    let body = Reading::new(&object);
    let gpus: Vec<_> = body.list("gpus").collect();
    let version = body.object("driver").text("version").and_then(Version::parse);
    facts.insert(key::RUN_DRIVER, version.map_or(Fact::Absent, |version| seen(step, version)));
    facts.insert(key::RUN_GPU_COUNT, seen(step, Value::Int(i64::try_from(gpus.len()).unwrap_or(i64::MAX))));
    let each = |describe: &dyn Fn(Reading<'_>) -> Option<String>| {
        let found = gpus.iter().filter_map(|gpu| {
            let index = gpu.number("index").unwrap_or_default();
            Some(format!("GPU {index}: {}", describe(*gpu)?))
        });
        texts(step, found.collect())
    };
    let models: Vec<_> = gpus.iter().filter_map(|gpu| gpu.text("name")).map(ToOwned::to_owned).collect();
    facts.insert(key::RUN_GPU_MODELS, texts(step, models));
    let unreachable = body
        .list("unreachable_gpus")
        .map(|gpu| format!("GPU {}: {}", gpu.number("index").unwrap_or_default(), gpu.text("why").unwrap_or_default()));
    facts.insert(key::RUN_GPU_UNREACHABLE, texts(step, unreachable.collect()));
    let cuda = body.object("cuda");
    let misses = cuda.get("only_nvml_sees").and_then(|_, _| texts(step, cuda.texts("only_nvml_sees")));
    facts.insert(key::RUN_GPU_CUDA_MISSES, misses);
    facts.insert(key::RUN_GPU_SLOWED, each(&slowed));
    facts.insert(key::RUN_GPU_PCIE, each(&narrow));
    facts.insert(key::RUN_GPU_NVLINK_DOWN, each(&links_down));
    facts.insert(key::RUN_GPU_ECC, each(&ecc_errors));
    facts.insert(key::RUN_GPU_ROWS, each(&row_remapping));
    facts.insert(key::RUN_GPU_MIG, each(&|gpu| gpu.object("mig").flag("enabled")?.then(|| "MIG is on".to_owned())));
    facts.insert(key::RUN_GPU_FABRIC, each(&fabric));
    let xid = body.object("xid");
    let events = xid.list("events").map(|event| {
        format!("Xid {} on {}", event.number("xid").unwrap_or_default(), event.text("pci").unwrap_or("a GPU"))
    });
    // Few containers see the kernel's log; NVML keeps no history.
    facts.insert(key::RUN_GPU_LOG, seen(step, xid.get("events").value().is_some()));
    facts.insert(key::RUN_GPU_XID, xid.get("events").and_then(|_, _| texts(step, events.collect())));
    facts.insert(
        key::RUN_GPU_PERSISTENCE,
        each(&|gpu| (!gpu.flag("persistence_mode")?).then(|| "persistence mode is off".to_owned())),
    );
    facts.insert(key::RUN_LIBCUDA, cuda.text("library").map_or(Fact::Absent, |path| seen(step, path)));
    facts.insert(key::RUN_LIBCUDA_COMPAT, cuda.flag("in_compat_folder").map_or(Fact::Absent, |is| seen(step, is)));
    let least = gpus.iter().filter_map(|gpu| nvlink_gb_s(*gpu)).min();
    facts.insert(key::RUN_NVLINK_GB_S, least.map_or(Fact::Absent, |speed| seen(step, Value::Int(speed))));
}

fn slowed(gpu: Reading<'_>) -> Option<String> {
    let reasons = gpu.object("clocks").texts("event_reasons");
    let trouble: Vec<_> = reasons.iter().filter(|reason| TROUBLE.contains(&reason.as_str())).cloned().collect();
    let celsius =
        gpu.object("temperature").number("gpu_celsius").map(|now| format!(" at {now} °C")).unwrap_or_default();
    (!trouble.is_empty()).then(|| format!("{}{celsius}", trouble.join(", ")))
}

/// An idle GPU may lower the generation of its link, and some its width (nvidia-smi(1), "PCIe link info").
fn narrow(gpu: Reading<'_>) -> Option<String> {
    let pcie = gpu.object("pcie");
    let (now, most) = (pcie.number("width")?, pcie.number("width_max")?);
    (now < most).then(|| format!("x{now} of x{most}"))
}

fn links_down(gpu: Reading<'_>) -> Option<String> {
    let states: Vec<_> = gpu.list("nvlinks").filter_map(|link| link.flag("active")).collect();
    let down = states.iter().filter(|active| !**active).count();
    (down > 0).then(|| format!("{down} of {} NVLinks are not active", states.len()))
}

fn ecc_errors(gpu: Reading<'_>) -> Option<String> {
    let errors = gpu.object("ecc").number("volatile_uncorrected")?;
    (errors > 0).then(|| format!("{errors} uncorrected errors"))
}

fn row_remapping(gpu: Reading<'_>) -> Option<String> {
    let rows = gpu.object("remapped_rows");
    match (rows.flag("failure"), rows.flag("pending")) {
        (Some(true), _) => Some("a row could not be remapped".to_owned()),
        (_, Some(true)) => Some("a row waits for a reset to be remapped".to_owned()),
        _ => None,
    }
}

fn fabric(gpu: Reading<'_>) -> Option<String> {
    let fabric = gpu.object("fabric");
    let state = fabric.text("state")?;
    let status = fabric.text("status").unwrap_or("SUCCESS");
    match state {
        "not_supported" => None,
        "completed" if status == "SUCCESS" => None,
        "completed" => Some(format!("its registration ended with {status}")),
        other => Some(other.replace('_', " ")),
    }
}

/// GB/s in one direction over all active NVLinks.
fn nvlink_gb_s(gpu: Reading<'_>) -> Option<i64> {
    let active = gpu.list("nvlinks").filter(|link| link.flag("active") == Some(true));
    let speeds: Vec<_> = active.filter_map(|link| link.number("speed_mbytes_per_s")).collect();
    (!speeds.is_empty()).then(|| speeds.iter().sum::<i64>() / 1000)
}

/// The host by what NVML and the kernel say of it.
pub(super) fn host(recording: &Recording) -> Option<Host> {
    let object = Json::Object(recording.find("gpus")?.body()?.clone());
    let body = Reading::new(&object);
    let gpus: Vec<_> = body.list("gpus").collect();
    let capability = gpus.first()?.text("compute_capability")?.replace('.', "");
    let driver = body.object("driver");
    let pairs = BTreeMap::from([
        ("name", "this host".to_owned()),
        ("driver", driver.text("version")?.to_owned()),
        ("cuda", driver.text("cuda_version")?.to_owned()),
        ("gpu", format!("sm_{capability}x{}", gpus.len())),
    ]);
    Host::from_pairs(pairs.iter().map(|(key, value)| (*key, value.as_str()))).ok()
}
