//! Values of variables in the run, as the libraries of the run read them.

use std::collections::BTreeMap;

use facts::key::{self, Definition};
use facts::{Facts, misread_values};
use model::{Fact, Version};

use super::super::recording::{Recording, StepOutcome};
use super::super::wire::StepBody as _;
use super::super::wire::collectives::{CollectivesBody, Setup};
use super::super::wire::limits::LimitsBody;
use super::super::wire::pytorch::{PytorchBody, TorchBuild};
use super::{none_of, site, unanswered};
use nccllog::{NcclLog, line_form};

const KEYS: &[&Definition] = key::definitions![RUN_RUNTIME_VARIABLES, RUN_REFUSED_VALUES, RUN_MISREAD_VALUES];

pub(super) fn produce(recording: &Recording, facts: &mut Facts) {
    let Some((step, body)) = recording.result::<LimitsBody>() else {
        return none_of(KEYS, &unanswered(recording, LimitsBody::STEP), facts);
    };
    let own = match body.variables.fact() {
        Fact::Seen { value, .. } => value,
        Fact::Unknown(gap) => return none_of(KEYS, &Fact::Unknown(gap.clone()), facts),
        Fact::Absent => return none_of(KEYS, &Fact::Absent, facts),
    };
    let collectives = recording.find(CollectivesBody::STEP);
    let log = collectives.map(super::log).unwrap_or_default();
    let of_probe = collectives.and_then(|step| step.parts_of::<Setup>().next()?.env.value().cloned());
    let of_files = of_files(&log, own, &of_probe.unwrap_or_default());
    let variables: BTreeMap<_, _> =
        own.iter().chain(&of_files).map(|(name, value)| (name.clone(), value.clone())).collect();
    facts.insert(
        key::RUN_RUNTIME_VARIABLES,
        if variables.is_empty() { Fact::Absent } else { Fact::seen(variables.clone(), [site(&step.name)]) },
    );
    let torch = facts.get(key::RUN_TORCH_VERSION).value().and_then(|version| Version::parse(version));
    let (misread, gap) = misread_values(&variables, nccl_version(recording, &log), torch);
    let list = |stops: bool| {
        let with_place = |name: &str, text: String| {
            if of_files.contains_key(name) { format!("{text}, set in a configuration file of NCCL") } else { text }
        };
        let texts = misread.iter().filter(|value| value.stops == stops);
        texts.map(|value| with_place(&value.name, value.text.clone())).collect::<Vec<_>>()
    };
    let mut refused = list(true);
    refused.extend(unknown_network(&log, &variables));
    refused.extend(foreign_address(&log, &variables));
    refused.extend(unknown_allocator_key(recording, &variables));
    let mut misread = list(false);
    misread.extend(missing_topology(&log, &variables));
    for (key, texts) in [(key::RUN_REFUSED_VALUES, refused), (key::RUN_MISREAD_VALUES, misread)] {
        let at = [site(&step.name)];
        facts.insert(
            key,
            match &gap {
                _ if !texts.is_empty() => Fact::seen(texts, at),
                Some(gap) => Fact::Unknown(gap.clone()),
                None => Fact::Absent,
            },
        );
    }
}

/// Variables that NCCL reports and that neither the container's environment nor the probe sets: a configuration file
/// sets them.
fn of_files(
    log: &NcclLog,
    own: &BTreeMap<String, String>,
    of_probe: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let foreign = log.variables.iter().filter(|(name, _)| {
        !own.contains_key(*name) && !of_probe.contains_key(*name) && name.as_str() != "NCCL_DEBUG_FILE"
    });
    foreign.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The release of NCCL that ran, or with which torch was built.
fn nccl_version(recording: &Recording, log: &NcclLog) -> Option<Version> {
    let built = || {
        let build = recording.find(PytorchBody::STEP)?.parts_of::<TorchBuild>().next()?;
        Version::parse(build.nccl_version.text()?)
    };
    log.version.as_deref().and_then(Version::parse).or_else(built)
}

/// The value of `NCCL_NET`, if NCCL has no network of that name: plugins may add some.
fn unknown_network(log: &NcclLog, variables: &BTreeMap<String, String>) -> Option<String> {
    let value = variables.get("NCCL_NET").filter(|value| !value.is_empty())?;
    let form = line_form("plugin.net_none")?;
    let is_refused = log.warnings.keys().any(|warning| form.matches(&format!("x NCCL WARN {warning}")));
    is_refused.then(|| format!("NCCL_NET={value} (NCCL finds no usable network of this name)"))
}

/// The value of `NCCL_COMM_ID`, if rank 0 cannot listen there.
fn foreign_address(log: &NcclLog, variables: &BTreeMap<String, String>) -> Option<String> {
    let value = variables.get("NCCL_COMM_ID").filter(|value| !value.is_empty())?;
    let is_refused = log.warnings.keys().any(|warning| warning.contains("Call to bind failed"));
    is_refused.then(|| format!("NCCL_COMM_ID={value} (rank 0 cannot listen at this address)"))
}

/// The settings of PyTorch's allocator, if a step failed at them.
fn unknown_allocator_key(recording: &Recording, variables: &BTreeMap<String, String>) -> Option<String> {
    let failures = recording.steps.iter().filter_map(|step| match &step.outcome {
        StepOutcome::Failed(failed) => Some(&failed.message),
        _ => None,
    });
    // The wording of c10/core/AllocatorConfig.cpp, and of c10/cuda/CUDAAllocatorConfig.cpp before it.
    let is_of_allocator =
        |message: &&String| message.contains("CUDA allocator config") || message.contains("CachingAllocatorConfig");
    let message = { failures }.find(is_of_allocator)?;
    let why = message.split_once(": ").map_or(message.as_str(), |(_, why)| why).trim_end_matches('.');
    let name =
        ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"].into_iter().find(|name| variables.contains_key(*name))?;
    Some(format!("{name}={} ({why})", variables.get(name)?))
}

/// The value of `NCCL_TOPO_FILE`, if NCCL cannot open this file.
fn missing_topology(log: &NcclLog, variables: &BTreeMap<String, String>) -> Option<String> {
    let value = variables.get("NCCL_TOPO_FILE").filter(|value| log.unopened_files.contains(*value))?;
    Some(format!("NCCL_TOPO_FILE={value} (NCCL cannot open this file and detects the topology by itself)"))
}
