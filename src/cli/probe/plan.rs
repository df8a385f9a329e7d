//! What was typed behind `probe`, resolved: what is asked of the engine and of the program.

use std::collections::BTreeMap;
use std::path::Path;

use crate::facts::is_shown;
use crate::model::Owner;
use crate::probe::arrangement::{Arrangement, GpuWay, Ulimit};
use crate::probe::engine::{self, Launcher};
use crate::probe::isolation::{self, Share, Way};
use crate::probe::plan::{Plan, SleepRank, WhatIf};
use crate::probe::wire::StepBody as _;
use crate::probe::wire::collectives::FORCED_NETWORK;
use crate::probe::wire::what_if::WhatIfBody;

use super::super::Failure;
use super::super::args::probe::{GpuMode, Isolation, Judging, Launch, Pull, Rdma, Steps};

const RDMA_DEVICES: &str = "/dev/infiniband";

/// What the program is asked to do.
pub(super) fn plan(steps: &Steps) -> Result<Plan, Failure> {
    let mut plan = Plan::new(&steps.only).map_err(|why| Failure::Usage(format!("--steps: {why}")))?;
    if steps.forced_network {
        plan = plan.and(FORCED_NETWORK);
    }
    if !steps.what_if.is_empty() {
        plan = plan.and(WhatIfBody::STEP);
        let variants = steps.what_if.iter().map(|text| variables(text)).collect::<Result<_, _>>()?;
        plan.what_if = WhatIf { variants };
    }
    plan.collectives.quick = steps.quick;
    plan.collectives.sizes.clone_from(&steps.sizes);
    plan.collectives.stall_seconds = steps.stall;
    plan.collectives.sleep_rank = steps.sleep_rank.as_deref().map(sleeper).transpose()?;
    Ok(plan)
}

/// The arrangements of one container for each GPU that are to be run.
pub(super) fn ways(steps: &Steps, launch: &Launch) -> Result<Vec<Way>, Failure> {
    let Some(how) = steps.isolate_gpus else { return Ok(Vec::new()) };
    if launch.network != "host" {
        let why = "the containers meet over the host's network, so --network must be host";
        return Err(Failure::Usage(format!("--isolate-gpus: {why}")));
    }
    if launch.gpu_mode == GpuMode::Devices {
        let why = "with --gpu-mode devices every container would have every node; ask the engine for GPUs";
        return Err(Failure::Usage(format!("--isolate-gpus: {why}")));
    }
    let ipc = launch.ipc.clone().unwrap_or_else(|| "private".to_owned());
    Ok(match how {
        Isolation::Own => vec![Way { share: Share::Own, ipc }],
        Isolation::All => vec![Way { share: Share::All, ipc }],
        Isolation::Matrix => isolation::matrix(),
    })
}

/// `NAME=VALUE,NAME=VALUE`.
fn variables(text: &str) -> Result<BTreeMap<String, String>, Failure> {
    let pair = |part: &str| {
        part.split_once('=')
            .filter(|(name, _)| !name.is_empty())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
    };
    let pairs: Option<BTreeMap<_, _>> = text.split(',').map(pair).collect();
    pairs.ok_or_else(|| Failure::Usage(format!("--what-if {text}: write NAME=VALUE[,NAME=VALUE...]")))
}

fn sleeper(text: &str) -> Result<SleepRank, Failure> {
    let parsed = text
        .split_once(':')
        .and_then(|(rank, before)| Some(SleepRank { rank: rank.parse().ok()?, before: before.to_owned() }));
    parsed.ok_or_else(|| Failure::Usage(format!("--sleep-rank {text}: write RANK:OPERATION")))
}

/// Whose findings set the exit status.
pub(super) fn owners(judging: &Judging) -> Result<Vec<Owner>, Failure> {
    let owner = |text: &String| text.parse().map_err(|why| Failure::Usage(format!("--fail-for: {why}")));
    judging.fail_for.iter().map(owner).collect()
}

/// The name by which an engine knows the image of this reference.
pub(super) fn image(text: &str) -> Result<String, Failure> {
    for medium in ["docker-daemon:", "docker://"] {
        if let Some(name) = text.strip_prefix(medium) {
            return Ok(name.to_owned());
        }
    }
    for medium in ["docker-archive:", "oci-archive:", "oci:", "root:"] {
        if text.starts_with(medium) {
            let why = "a probe runs an image, which an engine must have: bring it there with docker load, or skopeo copy \
                       IMAGE docker-daemon:NAME:TAG";
            return Err(Failure::Usage(format!("{text}: {why}")));
        }
    }
    if Path::new(text).exists() {
        let why = "that is a file or folder here; a probe runs an image of an engine: bring it there with docker load, or \
                   write docker-daemon:NAME";
        return Err(Failure::Usage(format!("{text}: {why}")));
    }
    Ok(text.to_owned())
}

/// The same without the values of variables that are nobody's business.
pub(super) fn shown(arrangement: &Arrangement) -> Arrangement {
    let mut shown = arrangement.clone();
    for (name, value) in &mut shown.env {
        if !is_shown(name) {
            "...".clone_into(value);
        }
    }
    shown.labels.clear();
    shown
}

pub(super) const fn pull(pull: Pull) -> engine::Pull {
    match pull {
        Pull::Missing => engine::Pull::Missing,
        Pull::Never => engine::Pull::Never,
        Pull::Always => engine::Pull::Always,
    }
}

/// Whether a folder of device nodes has one that verbs are called through; without hardware it may be there and empty.
fn has_verbs(folder: &Path) -> bool {
    let mut nodes = folder.read_dir().into_iter().flatten().flatten();
    nodes.any(|node| node.file_name().to_string_lossy().starts_with("uverbs"))
}

/// How the container is run.
pub(super) fn arrangement(
    image: &str,
    launch: &Launch,
    env: &[String],
    launcher: &Launcher,
) -> Result<Arrangement, Failure> {
    let offers = launcher.offers();
    let way = match launch.gpu_mode {
        GpuMode::Auto => launcher.gpu_way(),
        GpuMode::Request => GpuWay::Request,
        GpuMode::Cdi => GpuWay::Cdi,
        GpuMode::Devices => GpuWay::Devices,
        GpuMode::None => GpuWay::None,
    };
    let mut devices = launch.device.clone();
    let has_rdma = offers.is_local && has_verbs(Path::new(RDMA_DEVICES));
    if launch.rdma == Rdma::Yes || (launch.rdma == Rdma::Auto && has_rdma) {
        devices.push(RDMA_DEVICES.to_owned());
    }
    let pair = |text: &String| {
        let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
        pair.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .ok_or_else(|| Failure::Usage(format!("--env {text}: write NAME=VALUE")))
    };
    let unlimited = Ulimit { name: "memlock".to_owned(), soft: -1, hard: -1 };
    // Registered memory is locked memory, and what trains is pinned.
    let default = offers.memory.map(|bytes| bytes / 4 * 3);
    Ok(Arrangement {
        image: image.to_owned(),
        python: launch.python.clone().unwrap_or_else(|| "python3".to_owned()),
        arguments: Vec::new(),
        gpus: launch.gpus.clone(),
        way,
        network: launch.network.clone(),
        ipc: launch.ipc.clone(),
        pid: launch.pid.clone(),
        hostname: launch.hostname.clone(),
        shm_size: launch.shm_size,
        ulimits: if launch.ulimit.is_empty() { vec![unlimited] } else { launch.ulimit.clone() },
        devices,
        env: env.iter().map(pair).collect::<Result<_, _>>()?,
        volumes: launch.volume.clone(),
        user: launch.user.clone(),
        capabilities: launch.cap_add.clone(),
        memory: launch.memory.or(default).filter(|bytes| *bytes > 0),
        pids: launch.pids_limit,
        labels: Vec::new(),
    })
}
