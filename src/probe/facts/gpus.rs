//! Facts about the driver and the GPUs, from NVML.

use std::collections::BTreeMap;

use crate::facts::Facts;
use crate::facts::key::{self, Definition};
use crate::model::{Fact, Gap, Host, Version};

use super::super::recording::Recording;
use super::super::wire::StepBody as _;
use super::super::wire::gpus::{GpuState, GpusBody, XidEvent};
use super::{none_of, seen, texts, untold};

const KEYS: &[&Definition] = key::definitions![
    RUN_DRIVER,
    RUN_GPU_COUNT,
    RUN_GPU_MODELS,
    RUN_GPU_UNREACHABLE,
    RUN_GPU_CUDA_MISSES,
    RUN_GPU_SLOWED,
    RUN_GPU_PCIE,
    RUN_GPU_NVLINK_DOWN,
    RUN_GPU_ECC,
    RUN_GPU_ROWS,
    RUN_GPU_MIG,
    RUN_GPU_FABRIC,
    RUN_GPU_LOG,
    RUN_GPU_XID,
    RUN_GPU_PERSISTENCE,
    RUN_LIBCUDA,
    RUN_LIBCUDA_COMPAT,
    RUN_NVLINK_GB_S,
];

/// Reasons for lower clocks that indicate a problem. An idle GPU and a configured power cap do not (nvml.h,
/// nvmlClocksEventReason*).
const TROUBLE: &[&str] = &["hw_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown", "sw_thermal_slowdown"];

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<GpusBody>() else {
        return none_of(KEYS, &untold(recording, GpusBody::STEP), facts);
    };
    let gpus = body.gpus.list();
    let version = body.driver.value().and_then(|driver| driver.version.text()).and_then(Version::parse);
    facts.insert(key::RUN_DRIVER, version.map_or(Fact::Absent, |version| seen(step, version)));
    let count = seen(step, i64::try_from(gpus.len()).unwrap_or(i64::MAX));
    facts.insert(key::RUN_GPU_COUNT, body.gpus.known().map_or_else(Fact::Unknown, |_| count));
    let each = |describe: Describe| {
        let (mut found, mut gap) = (Vec::new(), body.gpus.known().err());
        for gpu in gpus {
            let index = gpu.index.copied().unwrap_or_default();
            match describe(gpu) {
                Ok(Some(text)) => found.push(format!("GPU {index}: {text}")),
                Ok(None) => {}
                Err(why) => gap = gap.or(Some(Gap::new(format!("GPU {index}: {}", why.why)))),
            }
        }
        // The value that one GPU does not report may be the problem that the fact is about.
        gap.filter(|_| found.is_empty()).map_or_else(|| texts(step, found), Fact::Unknown)
    };
    let models: Vec<_> = gpus.iter().filter_map(|gpu| gpu.name.text()).map(ToOwned::to_owned).collect();
    facts.insert(key::RUN_GPU_MODELS, body.gpus.known().map_or_else(Fact::Unknown, |_| texts(step, models)));
    let unreachable =
        body.unreachable_gpus.list().iter().map(|gpu| {
            format!("GPU {}: {}", gpu.index.copied().unwrap_or_default(), gpu.why.text().unwrap_or_default())
        });
    facts.insert(key::RUN_GPU_UNREACHABLE, texts(step, unreachable.collect()));
    let misses = body.cuda.fact().as_ref().and_then(|cuda, _| cuda.only_nvml_sees.fact().clone());
    let misses = misses.and_then(|uuids, _| texts(step, uuids));
    facts.insert(key::RUN_GPU_CUDA_MISSES, misses);
    facts.insert(key::RUN_GPU_SLOWED, each(slowed));
    facts.insert(key::RUN_GPU_PCIE, each(narrow));
    facts.insert(key::RUN_GPU_NVLINK_DOWN, each(links_down));
    facts.insert(key::RUN_GPU_ECC, each(ecc_errors));
    facts.insert(key::RUN_GPU_ROWS, each(row_remapping));
    facts.insert(key::RUN_GPU_MIG, each(mig));
    facts.insert(key::RUN_GPU_FABRIC, each(fabric));
    let events = body.xid.fact().as_ref().and_then(|xid, _| xid.events.fact().as_ref());
    let describe = |event: &XidEvent| {
        format!("Xid {} on {}", event.xid.copied().unwrap_or_default(), event.pci.text().unwrap_or("a GPU"))
    };
    // Few containers can read the kernel's log, and NVML keeps no history.
    facts.insert(key::RUN_GPU_LOG, seen(step, events.value().is_some()));
    facts.insert(key::RUN_GPU_XID, events.and_then(|events, _| texts(step, events.iter().map(describe).collect())));
    facts.insert(key::RUN_GPU_PERSISTENCE, each(persistence_off));
    let cuda = body.cuda.value();
    let library = cuda.and_then(|cuda| cuda.library.text());
    facts.insert(key::RUN_LIBCUDA, library.map_or(Fact::Absent, |path| seen(step, path)));
    let is_compat = cuda.and_then(|cuda| cuda.in_compat_folder.copied());
    facts.insert(key::RUN_LIBCUDA_COMPAT, is_compat.map_or(Fact::Absent, |is| seen(step, is)));
    let least = gpus.iter().filter_map(nvlink_gb_s).min();
    facts.insert(key::RUN_NVLINK_GB_S, least.map_or(Fact::Absent, |speed| seen(step, speed)));
}

/// Describes a problem of a GPU, if there is one. Returns the gap if that is unknown.
type Describe = fn(&GpuState) -> Result<Option<String>, Gap>;

fn slowed(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let reasons = gpu.clocks.known_in(|clocks| &clocks.event_reasons)?;
    let trouble: Vec<_> =
        reasons.into_iter().flatten().filter(|reason| TROUBLE.contains(&reason.as_str())).cloned().collect();
    let celsius = gpu.temperature.value().and_then(|temperature| temperature.gpu_celsius.copied());
    let celsius = celsius.map(|now| format!(" at {now} °C")).unwrap_or_default();
    Ok((!trouble.is_empty()).then(|| format!("{}{celsius}", trouble.join(", "))))
}

/// An idle GPU may lower the generation of its PCIe link, and some GPUs the width (nvidia-smi(1), "PCIe link info").
fn narrow(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let (now, most) = (gpu.pcie.known_in(|pcie| &pcie.width)?, gpu.pcie.known_in(|pcie| &pcie.width_max)?);
    Ok(now.zip(most).filter(|(now, most)| now < most).map(|(now, most)| format!("x{now} of x{most}")))
}

fn links_down(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let links = gpu.nvlinks.known()?.map_or(&[][..], Vec::as_slice);
    let states = links.iter().map(|link| link.active.known()).collect::<Result<Vec<_>, _>>()?;
    let down = states.iter().flatten().filter(|active| !**active).count();
    Ok((down > 0).then(|| format!("{down} of {} NVLinks are not active", links.len())))
}

fn ecc_errors(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let errors = gpu.ecc.known_in(|ecc| &ecc.volatile_uncorrected)?.copied().unwrap_or_default();
    Ok((errors > 0).then(|| format!("{errors} uncorrected errors")))
}

fn row_remapping(gpu: &GpuState) -> Result<Option<String>, Gap> {
    if gpu.remapped_rows.known_in(|rows| &rows.failure)? == Some(&true) {
        return Ok(Some("a row could not be remapped".to_owned()));
    }
    let is_pending = gpu.remapped_rows.known_in(|rows| &rows.pending)? == Some(&true);
    Ok(is_pending.then(|| "a row waits for a reset to be remapped".to_owned()))
}

fn mig(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let is_on = gpu.mig.known_in(|mig| &mig.enabled)? == Some(&true);
    Ok(is_on.then(|| "MIG is on".to_owned()))
}

fn persistence_off(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let is_off = gpu.persistence_mode.known()? == Some(&false);
    Ok(is_off.then(|| "persistence mode is off".to_owned()))
}

fn fabric(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let Some(state) = gpu.fabric.known_in(|fabric| &fabric.state)? else { return Ok(None) };
    let status = gpu.fabric.value().and_then(|fabric| fabric.status.text()).unwrap_or("SUCCESS");
    Ok(match state.as_str() {
        "not_supported" => None,
        "completed" if status == "SUCCESS" => None,
        "completed" => Some(format!("fabric registration ended with {status}")),
        other => Some(other.replace('_', " ")),
    })
}

/// Bandwidth of all active NVLinks in one direction, in GB/s.
fn nvlink_gb_s(gpu: &GpuState) -> Option<i64> {
    let active = gpu.nvlinks.list().iter().filter(|link| link.active.copied() == Some(true));
    let speeds: Vec<_> = active.filter_map(|link| link.speed_mbytes_per_s.copied()).collect();
    (!speeds.is_empty()).then(|| speeds.iter().sum::<i64>() / 1000)
}

/// The host, as NVML and the kernel describe it.
pub(super) fn host(recording: &Recording) -> Option<Host> {
    let (_, body) = recording.result::<GpusBody>()?;
    let gpus = body.gpus.list();
    let capability = gpus.first()?.compute_capability.text()?.replace('.', "");
    let driver = body.driver.value()?;
    let pairs = BTreeMap::from([
        ("name", "this host".to_owned()),
        ("driver", driver.version.text()?.to_owned()),
        ("cuda", driver.cuda_version.text()?.to_owned()),
        ("gpu", format!("sm_{capability}x{}", gpus.len())),
    ]);
    Host::from_pairs(pairs.iter().map(|(key, value)| (*key, value.as_str()))).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(gpu: &str) -> Facts {
        facts_of(&format!(r#"[{{"index":0,{gpu}}}]"#))
    }

    fn facts_of(gpus: &str) -> Facts {
        let line =
            format!(r#"{{"ncclcheck":1,"event":"result","step":"gpus","seconds":1.0,"body":{{"gpus":{gpus}}}}}"#);
        let mut facts = Facts::default();
        produce(&Recording::read(line.as_bytes()), &mut facts);
        facts
    }

    #[test]
    fn an_unreadable_list_gives_no_count() {
        let odd = facts_of(r#"{"0": "H200"}"#);
        for key in key::definitions![RUN_GPU_COUNT, RUN_GPU_MODELS, RUN_GPU_SLOWED] {
            assert!(matches!(odd.view(key), Fact::Unknown(_)), "{}", key.name);
        }
        assert_eq!(facts_of("[]").get(key::RUN_GPU_COUNT).value(), Some(&0));
    }

    #[test]
    fn an_unreadable_value_of_a_gpu_is_unknown() {
        let denied = facts(
            r#""ecc":{"volatile_uncorrected":null,"unread":{"volatile_uncorrected":"NVML_ERROR_NO_PERMISSION"}}"#,
        );
        let Fact::Unknown(gap) = denied.get(key::RUN_GPU_ECC) else { panic!("{denied:?}") };
        assert_eq!(gap.why, "GPU 0: NVML_ERROR_NO_PERMISSION");
        let without = facts(
            r#""ecc":{"volatile_uncorrected":null,"unread":{"volatile_uncorrected":"NVML_ERROR_NOT_SUPPORTED"}}"#,
        );
        assert_eq!(without.get(key::RUN_GPU_ECC), &Fact::Absent);
        let errors = facts(r#""ecc":{"volatile_uncorrected":2}"#);
        assert_eq!(errors.view(&key::RUN_GPU_ECC).value().unwrap().to_string(), "GPU 0: 2 uncorrected errors");
    }
}
