//! Facts about the driver and the GPUs, from NVML.

use std::collections::{BTreeMap, BTreeSet};

use facts::Facts;
use facts::key::{self, Definition};
use facts::machine::Host;
use model::{Fact, Gap, Version, size};

use super::super::recording::{Recording, StepOutcome, StepRecord};
use super::super::wire::StepBody as _;
use super::super::wire::collectives::CollectivesBody;
use super::super::wire::gpus::{GpuState, GpusBody, LinkTraffic, XidEvent};
use super::{none_of, seen, texts, unanswered};

const KEYS: &[&Definition] = key::definitions![
    RUN_DRIVER,
    RUN_GPU_COUNT,
    RUN_GPU_BUSY,
    RUN_GPU_TAKEN,
    RUN_GPU_HIDDEN,
    RUN_GPU_MODELS,
    RUN_GPU_UNREACHABLE,
    RUN_GPU_CUDA_MISSES,
    RUN_GPU_SLOWED,
    RUN_GPU_PCIE,
    RUN_GPU_NVLINK_DOWN,
    RUN_GPU_ECC,
    RUN_GPU_ROWS,
    RUN_GPU_MIG,
    RUN_GPU_COMPUTE_MODE,
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

/// The GPUs that CUDA lists in the tasks of a job. A launcher may give each task a GPU of its own and hide the others.
#[derive(Debug, Default)]
pub struct JobGpus {
    /// As CUDA writes them, without the `GPU-` of NVML.
    uuids: BTreeSet<String>,
}

impl JobGpus {
    /// Gathers the GPUs of these tasks.
    pub fn of<'r>(tasks: impl IntoIterator<Item = &'r Recording>) -> Self {
        let bodies = tasks.into_iter().filter_map(|task| task.result::<GpusBody>());
        let listed = |(_, body): (_, GpusBody)| {
            let devices = body.cuda.value()?.devices.value()?;
            Some(devices.iter().filter_map(|device| device.uuid.text().map(ToOwned::to_owned)).collect::<Vec<_>>())
        };
        Self { uuids: bodies.filter_map(listed).flatten().collect() }
    }

    /// Whether a task has the GPU with this UUID of NVML.
    fn has(&self, uuid: &str) -> bool {
        uuid.split_once('-').is_some_and(|(_, bare)| self.uuids.contains(bare))
    }
}

pub(super) fn produce(recording: &Recording, job: &JobGpus, facts: &mut Facts) {
    facts.insert(key::RUN_GPU_MISSING, missing(recording));
    let Some((step, body)) = recording.result::<GpusBody>() else {
        return none_of(KEYS, &unanswered(recording, GpusBody::STEP), facts);
    };
    let gpus = body.gpus.list();
    let version = body.driver.value().and_then(|driver| driver.version.text()).and_then(Version::parse);
    facts.insert(key::RUN_DRIVER, version.map_or(Fact::Absent, |version| seen(step, version)));
    let count = seen(step, i64::try_from(gpus.len()).unwrap_or(i64::MAX));
    facts.insert(key::RUN_GPU_COUNT, body.gpus.known().map_or_else(Fact::Unknown, |_| count));
    let each = |describe: Describe| {
        let mut found = Vec::new();
        let mut gap = body.gpus.known().err();
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
    let missed = misses.value().is_none_or(|uuids| uuids.iter().any(|uuid| !job.has(uuid)));
    let misses = misses.and_then(|uuids, _| texts(step, uuids.into_iter().filter(|uuid| !job.has(uuid)).collect()));
    facts.insert(key::RUN_GPU_CUDA_MISSES, misses);
    facts.insert(key::RUN_GPU_BUSY, with_more(each(busy), step, busy_after(recording)));
    facts.insert(key::RUN_GPU_TAKEN, each(memory_taken));
    let hidden = hidden(&body).filter(|_| missed);
    facts.insert(key::RUN_GPU_HIDDEN, hidden.map_or(Fact::Absent, |text| seen(step, text)));
    facts.insert(key::RUN_GPU_SLOWED, with_more(each(slowed), step, slowed_during(recording)));
    facts.insert(key::RUN_GPU_PCIE, each(narrow));
    facts.insert(key::RUN_GPU_NVLINK_DOWN, each(links_down));
    facts.insert(key::RUN_GPU_ECC, each(ecc_errors));
    facts.insert(key::RUN_GPU_ROWS, each(row_remapping));
    facts.insert(key::RUN_GPU_MIG, each(mig));
    facts.insert(key::RUN_GPU_COMPUTE_MODE, each(compute_mode));
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

/// The reason why there is no GPU. The program skips the step if it cannot ask the driver.
fn missing(recording: &Recording) -> Fact<String> {
    let Some(step) = recording.find(GpusBody::STEP) else { return unanswered(recording, GpusBody::STEP) };
    match (&step.outcome, recording.result::<GpusBody>()) {
        (StepOutcome::Skipped(why), _) => seen(step, why.clone()),
        (_, Some((step, body))) => match body.gpus.known_list() {
            Ok([]) => seen(step, "NVML lists none"),
            Ok(_) => Fact::Absent,
            Err(gap) => Fact::Unknown(gap),
        },
        _ => unanswered(recording, GpusBody::STEP),
    }
}

/// Describes a problem of a GPU, if there is one. Returns the gap if that is unknown.
type Describe = fn(&GpuState) -> Result<Option<String>, Gap>;

/// Adds what the collectives show of the GPUs to what the step `gpus` shows.
fn with_more(before: Fact<Vec<String>>, step: &StepRecord, more: Vec<String>) -> Fact<Vec<String>> {
    if more.is_empty() {
        return before;
    }
    texts(step, before.value().into_iter().flatten().cloned().chain(more).collect())
}

/// Share of a sample period from which on a GPU counts as busy. An idle GPU has 0.
const BUSY_PERCENT: i64 = 25;

/// Bytes per second in one direction from which on the NVLinks of a GPU count as used. Those of an idle GPU carry nothing.
const USED_LINKS: i64 = 10_000_000_000;

fn busy(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let percent = gpu.busy_percent.known()?.filter(|percent| **percent >= BUSY_PERCENT);
    let used = gpu.memory.value().and_then(|memory| memory.used_bytes.copied());
    let used = used.map(|used| format!(", {} of its memory in use", size(used.unsigned_abs()))).unwrap_or_default();
    let busy = percent.map(|percent| format!("{percent} % busy{used}"));
    Ok(load(busy, gpu.traffic.value()).map(|load| load + &users(gpu)))
}

/// Joins what computes on a GPU and what crosses its links; `None` without either.
fn load(busy: Option<String>, traffic: Option<&LinkTraffic>) -> Option<String> {
    let parts: Vec<_> = busy.into_iter().chain(traffic.and_then(links_used)).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Describes the data that crosses a GPU's NVLinks, if it is more than a little.
fn links_used(traffic: &LinkTraffic) -> Option<String> {
    let ways =
        [("send", &traffic.nvlink_sent_bytes_per_second), ("receive", &traffic.nvlink_received_bytes_per_second)];
    let used = ways.into_iter().filter_map(|(way, rate)| {
        let rate = rate.copied().filter(|rate| *rate >= USED_LINKS)?;
        Some(format!("{way} {} GB/s", rate / 1_000_000_000))
    });
    let used: Vec<_> = used.collect();
    (!used.is_empty()).then(|| format!("its NVLinks {}", used.join(" and ")))
}

/// The GPUs that other processes used after all ranks had ended.
fn busy_after(recording: &Recording) -> Vec<String> {
    let Some((_, body)) = recording.result::<CollectivesBody>() else { return Vec::new() };
    let described = body.gpus_after.list().iter().filter_map(|gpu| {
        let percent = gpu.busy_percent.copied().filter(|percent| *percent >= BUSY_PERCENT);
        let load = load(percent.map(|percent| format!("{percent} % busy")), gpu.traffic.value())?;
        Some(format!("GPU {} after the run: {load}", gpu.index.copied().unwrap_or_default()))
    });
    described.collect()
}

/// The GPUs whose clocks were throttled while the collectives ran.
fn slowed_during(recording: &Recording) -> Vec<String> {
    let Some((_, body)) = recording.result::<CollectivesBody>() else { return Vec::new() };
    let described = body.gpus_during.list().iter().filter_map(|gpu| {
        let reasons = troubles(gpu.event_reasons.list());
        let celsius = gpu.celsius_most.copied().map(|most| format!(" at {most} °C")).unwrap_or_default();
        let index = gpu.index.copied().unwrap_or_default();
        (!reasons.is_empty()).then(|| format!("GPU {index} during the collectives: {}{celsius}", reasons.join(", ")))
    });
    described.collect()
}

/// The reasons that are problems.
fn troubles(reasons: &[String]) -> Vec<String> {
    reasons.iter().filter(|reason| TROUBLE.contains(&reason.as_str())).cloned().collect()
}

/// Names the processes that use a GPU, where the container shares the host's PID namespace: ` by python3 (PID 7)`.
fn users(gpu: &GpuState) -> String {
    let named = gpu.processes.list().iter().filter_map(|process| {
        let used = process.used_bytes.copied().map(|used| format!(", {}", size(used.unsigned_abs())));
        Some(format!("{} (PID {}{})", process.name.text()?, process.pid.copied()?, used.unwrap_or_default()))
    });
    let named: Vec<_> = named.collect();
    if named.is_empty() { String::new() } else { format!(" by {}", named.join(", ")) }
}

fn memory_taken(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let total = gpu.memory.known_in(|memory| &memory.total_bytes)?;
    let free = gpu.memory.known_in(|memory| &memory.free_bytes)?;
    let is_taken = |(total, free): &(&i64, &i64)| **free < **total / 2;
    let users = users(gpu);
    let by = if users.is_empty() { users } else { format!(", taken{users}") };
    let text = |(total, free): (&i64, &i64)| {
        format!("{} of {} free{by}", size(free.unsigned_abs()), size(total.unsigned_abs()))
    };
    Ok(total.zip(free).filter(is_taken).map(text))
}

/// Describes what CUDA_VISIBLE_DEVICES leaves of the GPUs that NVML lists, if it hides some. With MIG, CUDA lists
/// instances.
fn hidden(body: &GpusBody) -> Option<String> {
    const VARIABLE: &str = "CUDA_VISIBLE_DEVICES";
    let value = body.environment.value()?.get(VARIABLE)?;
    let gpus = body.gpus.list();
    let devices = body.cuda.value()?.devices.fact();
    let count = match devices {
        Fact::Seen { value, .. } => value.len(),
        // CUDA initializes only if there is a device.
        Fact::Unknown(gap) if gap.why.contains("CUDA_ERROR_NO_DEVICE") => 0,
        Fact::Unknown(_) | Fact::Absent => return None,
    };
    let is_partitioned = gpus.iter().any(|gpu| mig(gpu).is_ok_and(|mig| mig.is_some()));
    let count_text = if count == 0 { "none".to_owned() } else { count.to_string() };
    (count < gpus.len() && !is_partitioned).then(|| format!("CUDA sees {count_text} with {VARIABLE}={value}"))
}

fn slowed(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let reasons = gpu.clocks.known_in(|clocks| &clocks.event_reasons)?;
    let trouble = troubles(reasons.map_or(&[], Vec::as_slice));
    let celsius = gpu.temperature.value().and_then(|temperature| temperature.gpu_celsius.copied());
    let celsius = celsius.map(|now| format!(" at {now} °C")).unwrap_or_default();
    Ok((!trouble.is_empty()).then(|| format!("{}{celsius}", trouble.join(", "))))
}

/// An idle GPU may lower the generation of its PCIe link, and some GPUs the width (nvidia-smi(1), "PCIe link info").
fn narrow(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let now = gpu.pcie.known_in(|pcie| &pcie.width)?;
    let most = gpu.pcie.known_in(|pcie| &pcie.width_max)?;
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

/// Describes a compute mode other than the default, in which processes share a GPU (nvml.h, `nvmlComputeMode_t`).
fn compute_mode(gpu: &GpuState) -> Result<Option<String>, Gap> {
    let mode = gpu.compute_mode.known()?.filter(|mode| *mode != "default");
    Ok(mode.map(|mode| mode.replace('_', " ")))
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
        produce(&Recording::read(line.as_bytes()), &JobGpus::default(), &mut facts);
        facts
    }

    #[test]
    fn the_reason_for_no_gpu() {
        let missing = |event: &str| {
            let line = format!(r#"{{"ncclcheck":1,"step":"gpus",{event}}}"#);
            let mut facts = Facts::default();
            produce(&Recording::read(line.as_bytes()), &JobGpus::default(), &mut facts);
            facts.get(key::RUN_GPU_MISSING).clone()
        };
        let skipped = missing(r#""event":"skipped","why":"no driver""#);
        assert_eq!(skipped.value().map(String::as_str), Some("no driver"));
        let none = missing(r#""event":"result","seconds":1.0,"body":{"gpus":[]}"#);
        assert_eq!(none.value().map(String::as_str), Some("NVML lists none"));
        assert_eq!(missing(r#""event":"result","seconds":1.0,"body":{"gpus":[{}]}"#), Fact::Absent);
        let unread = missing(r#""event":"result","seconds":1.0,"body":{"gpus":7}"#);
        assert!(matches!(unread, Fact::Unknown(_)), "{unread:?}");
    }

    #[test]
    fn load_of_other_processes_is_seen_on_the_links_and_after_the_run() {
        let traffic = r#"{"nvlink_sent_bytes_per_second":393731921576,"nvlink_received_bytes_per_second":0}"#;
        let gpus = format!(
            r#"{{"ncclcheck":1,"event":"result","step":"gpus","seconds":1.0,"body":{{"gpus":[{{"index":1,"traffic":{traffic}}}]}}}}"#
        );
        let after = format!(
            r#"{{"ncclcheck":1,"event":"result","step":"collectives","seconds":1.0,"body":{{"gpus_after":[{{"index":0,"busy_percent":5,"traffic":{{}}}},{{"index":1,"busy_percent":99,"traffic":{traffic}}}],"gpus_during":[{{"index":0,"event_reasons":["sw_power_cap","hw_thermal_slowdown"],"celsius_most":91}}]}}}}"#
        );
        let mut facts = Facts::default();
        super::super::add(&Recording::read([gpus, after].join("\n").as_bytes()), &JobGpus::default(), &mut facts);
        let busy = facts.get(key::RUN_GPU_BUSY).value().unwrap();
        let sends = "its NVLinks send 393 GB/s";
        assert_eq!(*busy, [format!("GPU 1: {sends}"), format!("GPU 1 after the run: 99 % busy, {sends}")]);
        let slowed = facts.get(key::RUN_GPU_SLOWED).value().unwrap();
        assert_eq!(*slowed, ["GPU 0 during the collectives: hw_thermal_slowdown at 91 °C"]);
    }

    #[test]
    fn gpus_of_other_processes() {
        let memory = r#""memory":{"total_bytes":150323855360,"free_bytes":1395864372,"used_bytes":148927990989}"#;
        let full = facts(&format!(r#""busy_percent":100,{memory}"#));
        assert_eq!(
            full.get(key::RUN_GPU_BUSY).value().unwrap(),
            &["GPU 0: 100 % busy, 138.7 GiB of its memory in use"]
        );
        assert_eq!(full.get(key::RUN_GPU_TAKEN).value().unwrap(), &["GPU 0: 1.3 GiB of 140 GiB free"]);
        let idle = facts(r#""busy_percent":3,"memory":{"total_bytes":100,"free_bytes":90}"#);
        assert_eq!((idle.get(key::RUN_GPU_BUSY), idle.get(key::RUN_GPU_TAKEN)), (&Fact::Absent, &Fact::Absent));
        let unread = facts(r#""busy_percent":null,"unread":{"busy_percent":"NVML_ERROR_GPU_IS_LOST"}"#);
        assert!(matches!(unread.get(key::RUN_GPU_BUSY), Fact::Unknown(_)));
    }

    #[test]
    fn processes_are_named_where_they_can_be_seen() {
        let gpu = |processes: &str| {
            facts(&format!(
                r#""busy_percent":90,"processes":{processes},"memory":{{"total_bytes":100,"free_bytes":9,"used_bytes":91}}"#
            ))
        };
        let named = gpu(r#"[{"pid":7,"name":"python3","used_bytes":90},{"pid":8,"name":"x","used_bytes":null}]"#);
        let by = "by python3 (PID 7, 90 bytes), x (PID 8)";
        let busy = format!("GPU 0: 90 % busy, 91 bytes of its memory in use {by}");
        assert_eq!(named.get(key::RUN_GPU_BUSY).value().unwrap(), &[busy]);
        let taken = format!("GPU 0: 9 bytes of 100 bytes free, taken {by}");
        assert_eq!(named.get(key::RUN_GPU_TAKEN).value().unwrap(), &[taken]);
        let hidden = gpu(r#"[{"pid":7,"name":null,"used_bytes":90,"unread":{"name":"another namespace"}}]"#);
        assert_eq!(hidden.get(key::RUN_GPU_TAKEN).value().unwrap(), &["GPU 0: 9 bytes of 100 bytes free"]);
    }

    #[test]
    fn gpus_that_a_variable_hides() {
        let hidden = |value: &str, cuda: &str| {
            let line = format!(
                r#"{{"ncclcheck":1,"event":"result","step":"gpus","seconds":1.0,"body":{{"environment":{{"CUDA_VISIBLE_DEVICES":"{value}"}},"gpus":[{{}},{{}}],"cuda":{cuda}}}}}"#
            );
            let mut facts = Facts::default();
            produce(&Recording::read(line.as_bytes()), &JobGpus::default(), &mut facts);
            facts.get(key::RUN_GPU_HIDDEN).value().cloned()
        };
        let unread = r#"{"devices":null,"unread":{"devices":"cuInit: CUDA_ERROR_NO_DEVICE"}}"#;
        assert_eq!(hidden("", unread).as_deref(), Some("CUDA sees none with CUDA_VISIBLE_DEVICES="));
        assert_eq!(hidden("0", r#"{"devices":[{}]}"#).as_deref(), Some("CUDA sees 1 with CUDA_VISIBLE_DEVICES=0"));
        assert_eq!(hidden("0,1", r#"{"devices":[{},{}]}"#), None);
        assert_eq!(hidden("0", r#"{"devices":null,"unread":{"devices":"cuInit: CUDA_ERROR_UNKNOWN"}}"#), None);
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
