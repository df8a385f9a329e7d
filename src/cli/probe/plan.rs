//! Resolves the arguments of `probe` to options for the engine and a plan for the program.

use std::collections::BTreeMap;
use std::path::Path;

use image::reference::transport_of;
use model::Limits;
use model::Owner;
use model::document::Document;
use model::document::read_text;
use probe::ProbePlan;
use probe::arrangement::{Arrangement, GpuWay};
use probe::expect::{Expectations, ExpectedRun};
use probe::isolation::{self, Share, Way};
use probe::plan::{SleepRank, WhatIf};
use probe::wire::StepBody as _;
use probe::wire::collectives::FORCED_NETWORK;
use probe::wire::what_if::WhatIfBody;

use super::super::CliError;
use super::super::args::probe::{ContainerArgs, InvestigationArgs, Isolation, Judging, LaunchArgs, Steps};
use super::super::file_kind::refuse_other_kind;
use super::listener::recorded;

/// Resolves the steps that the program runs.
pub(super) fn plan(steps: &Steps, more: &InvestigationArgs) -> Result<ProbePlan, CliError> {
    let mut plan = ProbePlan::new(&steps.only).map_err(|why| CliError::Usage(format!("--steps: {why}")))?;
    if more.forced_network {
        plan = plan.and(FORCED_NETWORK);
    }
    if !more.what_if.is_empty() {
        plan = plan.and(WhatIfBody::STEP);
        let variants = more.what_if.iter().map(|text| variables(text)).collect::<Result<_, _>>()?;
        plan.what_if = WhatIf { variants };
    }
    plan.collectives.quick = steps.quick;
    plan.collectives.sizes.clone_from(&more.sizes);
    plan.collectives.stall_seconds = more.stall;
    plan.collectives.sleep_rank = more.sleep_rank.as_deref().map(sleeper).transpose()?;
    Ok(plan)
}

/// Resolves `--isolate-gpus` to the arrangements of one container per GPU.
pub(super) fn ways(more: &InvestigationArgs, launch: &LaunchArgs) -> Result<Vec<Way>, CliError> {
    let Some(how) = more.isolate_gpus else { return Ok(Vec::new()) };
    if launch.network.as_deref().is_some_and(|network| network != "host") {
        let why = "the containers communicate over the host's network: --network must be host";
        return Err(CliError::Usage(format!("--isolate-gpus: {why}")));
    }
    if launch.gpu_mode == Some(GpuWay::Devices) {
        let why = "--gpu-mode devices gives every container the device nodes of all GPUs: use request or cdi";
        return Err(CliError::Usage(format!("--isolate-gpus: {why}")));
    }
    let ipc = launch.ipc.clone().unwrap_or_else(|| "private".to_owned());
    Ok(match how {
        Isolation::Own => vec![Way { share: Share::Own, ipc }],
        Isolation::All => vec![Way { share: Share::All, ipc }],
        Isolation::Matrix => isolation::matrix(),
    })
}

/// Parses `NAME=VALUE,NAME=VALUE`.
fn variables(text: &str) -> Result<BTreeMap<String, String>, CliError> {
    let pair = |part: &str| {
        part.split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let pairs: Option<BTreeMap<_, _>> = text.split(',').map(pair).collect();
    pairs.ok_or_else(|| CliError::Usage(format!("--what-if {text}: expected NAME=VALUE[,NAME=VALUE...]")))
}

fn sleeper(text: &str) -> Result<SleepRank, CliError> {
    let parsed = text
        .split_once(':')
        .and_then(|(rank, before)| Some(SleepRank { rank: rank.parse().ok()?, before: before.to_owned() }));
    parsed.ok_or_else(|| CliError::Usage(format!("--sleep-rank {text}: expected RANK:OPERATION")))
}

/// Resolves the owners whose findings set the exit status.
pub(super) fn owners(judging: &Judging) -> Result<Vec<Owner>, CliError> {
    let owner = |text: &String| text.parse().map_err(|why| CliError::Usage(format!("--fail-for: {why}")));
    judging.fail_for.iter().map(owner).collect()
}

/// Reads the expectations of the run, and the reference run.
pub(super) fn expected(judging: &Judging) -> Result<ExpectedRun, CliError> {
    let mut expected = ExpectedRun::default();
    if let Some(file) = &judging.expect {
        refuse_other_kind("--expect", file)?;
        let name = file.display().to_string();
        let text = read_text(file, &Limits::default()).map_err(|error| CliError::Usage(format!("--expect {error}")))?;
        expected.values = Some(Expectations::read(Document { name: &name, text: &text }).map_err(CliError::Usage)?);
    }
    expected.reference = judging.reference.as_deref().map(|file| recorded("--reference", file)).transpose()?;
    Ok(expected)
}

/// Returns the engine's name for the image of this reference.
pub(super) fn image_name(text: &str) -> Result<String, CliError> {
    if let Some((transport, name)) = transport_of(text) {
        if transport.kind.is_by_name() {
            return Ok(name.to_owned());
        }
        let why = "a probe runs images of a container engine: import this one with docker load, or skopeo copy \
                   IMAGE docker-daemon:NAME:TAG";
        return Err(CliError::Usage(format!("{text}: {why}")));
    }
    if Path::new(text).exists() {
        let why = "this is a local file or folder, and a probe runs images of a container engine: import it with docker load, \
                   or write docker-daemon:NAME";
        return Err(CliError::Usage(format!("{text}: {why}")));
    }
    Ok(text.to_owned())
}

/// Resolves the options of a container.
pub(super) fn container(image: &str, args: &ContainerArgs) -> Result<Arrangement, CliError> {
    let ContainerArgs { launch, rare, process, env } = args;
    let mut options = Arrangement::new(image_name(image)?);
    if let Some(python) = &process.python {
        options.python.clone_from(python);
    }
    // A preflight decides once the image has been read.
    options.entrypoint = launch.entrypoint.unwrap_or_default();
    options.gpu_way = launch.gpu_mode;
    if let Some(request) = &launch.gpus {
        options.gpus = request.gpus.clone();
        options.gpu_capabilities.clone_from(&request.capabilities);
        if !request.capabilities.is_empty() && launch.gpu_mode.is_some_and(|way| way != GpuWay::Request) {
            let why = "capabilities of the driver need --gpu-mode request: leave them out, or that mode";
            return Err(CliError::Usage(format!("--gpus {request}: {why}")));
        }
    }
    if let Some(network) = &launch.network {
        options.network.clone_from(network);
    }
    options.ipc.clone_from(&launch.ipc);
    options.pid.clone_from(&rare.pid);
    options.hostname.clone_from(&rare.hostname);
    options.shm_size = launch.shm_size;
    options.ulimits.clone_from(&launch.ulimit);
    options.rdma = launch.rdma;
    options.devices.clone_from(&rare.device);
    options.volumes.clone_from(&launch.volume);
    options.tmpfs.clone_from(&rare.tmpfs);
    options.env = env.iter().map(|text| variable(text)).collect::<Result<_, _>>()?;
    options.user.clone_from(&process.user);
    options.capabilities.clone_from(&rare.cap_add);
    options.privileged = rare.privileged;
    options.security.clone_from(&rare.security_opt);
    options.runtime.clone_from(&rare.runtime);
    options.cpus = rare.cpus;
    options.cpuset_cpus.clone_from(&rare.cpuset_cpus);
    options.cpuset_mems.clone_from(&rare.cpuset_mems);
    options.memory = launch.memory;
    options.pids = launch.pids_limit.unwrap_or(options.pids);
    options.pull = launch.pull.unwrap_or(options.pull);
    Ok(options)
}

/// Parses `NAME=VALUE`.
fn variable(text: &str) -> Result<(String, String), CliError> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
        .ok_or_else(|| CliError::Usage(format!("--env {text}: expected NAME=VALUE")))
}
