//! The driver and the GPUs, by NVML.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use crate::facts::Facts;
use crate::facts::key::{self, Key};
use crate::model::{Fact, Gap, Host, Value, Version};

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
    let each = |describe: Describe| {
        let (mut found, mut gap) = (Vec::new(), None);
        for gpu in &gpus {
            let index = gpu.number("index").unwrap_or_default();
            match describe(*gpu) {
                Ok(Some(text)) => found.push(format!("GPU {index}: {text}")),
                Ok(None) => {}
                Err(why) => gap = gap.or(Some(Gap::new(format!("GPU {index}: {}", why.why)))),
            }
        }
        // What one GPU does not tell may be what is asked for.
        gap.filter(|_| found.is_empty()).map_or_else(|| texts(step, found), Fact::Unknown)
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
    facts.insert(key::RUN_GPU_SLOWED, each(slowed));
    facts.insert(key::RUN_GPU_PCIE, each(narrow));
    facts.insert(key::RUN_GPU_NVLINK_DOWN, each(links_down));
    facts.insert(key::RUN_GPU_ECC, each(ecc_errors));
    facts.insert(key::RUN_GPU_ROWS, each(row_remapping));
    facts.insert(key::RUN_GPU_MIG, each(mig));
    facts.insert(key::RUN_GPU_FABRIC, each(fabric));
    let xid = body.object("xid");
    let events = xid.list("events").map(|event| {
        format!("Xid {} on {}", event.number("xid").unwrap_or_default(), event.text("pci").unwrap_or("a GPU"))
    });
    // Few containers see the kernel's log; NVML keeps no history.
    facts.insert(key::RUN_GPU_LOG, seen(step, xid.get("events").value().is_some()));
    facts.insert(key::RUN_GPU_XID, xid.get("events").and_then(|_, _| texts(step, events.collect())));
    facts.insert(key::RUN_GPU_PERSISTENCE, each(persistence_off));
    facts.insert(key::RUN_LIBCUDA, cuda.text("library").map_or(Fact::Absent, |path| seen(step, path)));
    facts.insert(key::RUN_LIBCUDA_COMPAT, cuda.flag("in_compat_folder").map_or(Fact::Absent, |is| seen(step, is)));
    let least = gpus.iter().filter_map(|gpu| nvlink_gb_s(*gpu)).min();
    facts.insert(key::RUN_NVLINK_GB_S, least.map_or(Fact::Absent, |speed| seen(step, Value::Int(speed))));
}

/// What is wrong with a GPU, if something is, or why that is not known.
type Describe = fn(Reading<'_>) -> Result<Option<String>, Gap>;

fn slowed(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let clocks = gpu.object("clocks");
    clocks.known("event_reasons")?;
    let reasons = clocks.texts("event_reasons");
    let trouble: Vec<_> = reasons.iter().filter(|reason| TROUBLE.contains(&reason.as_str())).cloned().collect();
    let celsius =
        gpu.object("temperature").number("gpu_celsius").map(|now| format!(" at {now} °C")).unwrap_or_default();
    Ok((!trouble.is_empty()).then(|| format!("{}{celsius}", trouble.join(", "))))
}

/// An idle GPU may lower the generation of its link, and some its width (nvidia-smi(1), "PCIe link info").
fn narrow(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let pcie = gpu.object("pcie");
    let (now, most) = (pcie.known("width")?, pcie.known("width_max")?);
    let widths = now.and_then(Json::as_i64).zip(most.and_then(Json::as_i64));
    Ok(widths.filter(|(now, most)| now < most).map(|(now, most)| format!("x{now} of x{most}")))
}

fn links_down(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    gpu.known("nvlinks")?;
    let links: Vec<_> = gpu.list("nvlinks").collect();
    let states = links.iter().map(|link| link.known("active")).collect::<Result<Vec<_>, _>>()?;
    let down = states.iter().flatten().filter(|active| active.as_bool() == Some(false)).count();
    Ok((down > 0).then(|| format!("{down} of {} NVLinks are not active", links.len())))
}

fn ecc_errors(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let errors = gpu.object("ecc").known("volatile_uncorrected")?.and_then(Json::as_i64).unwrap_or_default();
    Ok((errors > 0).then(|| format!("{errors} uncorrected errors")))
}

fn row_remapping(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let rows = gpu.object("remapped_rows");
    let is = |name: &str| Ok::<_, Gap>(rows.known(name)?.and_then(Json::as_bool) == Some(true));
    if is("failure")? {
        return Ok(Some("a row could not be remapped".to_owned()));
    }
    Ok(is("pending")?.then(|| "a row waits for a reset to be remapped".to_owned()))
}

fn mig(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let is_on = gpu.object("mig").known("enabled")?.and_then(Json::as_bool) == Some(true);
    Ok(is_on.then(|| "MIG is on".to_owned()))
}

fn persistence_off(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let is_off = gpu.known("persistence_mode")?.and_then(Json::as_bool) == Some(false);
    Ok(is_off.then(|| "persistence mode is off".to_owned()))
}

fn fabric(gpu: Reading<'_>) -> Result<Option<String>, Gap> {
    let fabric = gpu.object("fabric");
    let Some(state) = fabric.known("state")?.and_then(Json::as_str) else { return Ok(None) };
    let status = fabric.text("status").unwrap_or("SUCCESS");
    Ok(match state {
        "not_supported" => None,
        "completed" if status == "SUCCESS" => None,
        "completed" => Some(format!("its registration ended with {status}")),
        other => Some(other.replace('_', " ")),
    })
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

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(gpu: &str) -> Facts {
        let line = format!(
            r#"{{"ncclcheck":1,"event":"result","step":"gpus","seconds":1.0,"body":{{"gpus":[{{"index":0,{gpu}}}]}}}}"#
        );
        let mut facts = Facts::default();
        produce(&Recording::read(line.as_bytes()), &mut facts);
        facts
    }

    #[test]
    fn what_could_not_be_read_of_a_gpu_is_unknown() {
        let denied = facts(
            r#""ecc":{"volatile_uncorrected":null,"unread":{"volatile_uncorrected":"NVML_ERROR_NO_PERMISSION"}}"#,
        );
        let Fact::Unknown(gap) = denied.get(key::RUN_GPU_ECC.name) else { panic!("{denied:?}") };
        assert_eq!(gap.why, "GPU 0: NVML_ERROR_NO_PERMISSION");
        let without = facts(
            r#""ecc":{"volatile_uncorrected":null,"unread":{"volatile_uncorrected":"NVML_ERROR_NOT_SUPPORTED"}}"#,
        );
        assert_eq!(without.get(key::RUN_GPU_ECC.name), &Fact::Absent);
        let errors = facts(r#""ecc":{"volatile_uncorrected":2}"#);
        assert_eq!(errors.get(key::RUN_GPU_ECC.name).value().unwrap().to_string(), "GPU 0: 2 uncorrected errors");
    }
}
