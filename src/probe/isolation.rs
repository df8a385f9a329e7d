//! One container for each GPU, joined over the host's network, as schedulers do it. Two settings decide between full speed, a
//! seventieth of it and failure, and NCCL reports success in the slow case: so each arrangement is run, and measured against
//! the same GPUs in one container.

use std::fmt;
use std::net::TcpListener;
use std::thread;

use serde_json::json;

use super::ProbeError;
use super::arrangement::{Arrangement, Gpus};
use super::engine::{Killer, Launcher};
use super::events::Body;
use super::facts::{bandwidth, log};
use super::payload;
use super::plan::{Plan, World};
use super::recording::{Outcome, Recording};

/// Bytes of the all_reduce that is measured: from here on bandwidth is what counts.
const SIZE: u64 = 256 << 20;
/// Seconds without progress after which ranks that do not find each other are given up.
const STALL: u32 = 40;

/// Which GPUs a container of one rank has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// Its own alone.
    Own,
    /// All, of which `CUDA_VISIBLE_DEVICES` chooses its own.
    All,
}

/// An arrangement of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// The GPUs of each.
    pub share: Share,
    /// IPC mode of each: `host` shares /dev/shm, `private` does not.
    pub ipc: String,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gpus = match self.share {
            Share::Own => "its own GPU",
            Share::All => "all GPUs, CUDA_VISIBLE_DEVICES",
        };
        write!(f, "{gpus}, --ipc {}", self.ipc)
    }
}

/// All four arrangements.
pub fn matrix() -> Vec<Way> {
    let ways = [Share::Own, Share::All].into_iter();
    ways.flat_map(|share| ["private", "host"].map(|ipc| Way { share, ipc: ipc.to_owned() })).collect()
}

/// Runs each arrangement with so many GPUs, and all of them in one container. What came of it is the body of a step.
pub fn run(
    launcher: &Launcher,
    arrangement: &Arrangement,
    count: u32,
    ways: &[Way],
    started: &(dyn Fn(Killer) + Sync),
    say: &dyn Fn(&str),
) -> Result<Body, ProbeError> {
    let mut rows = Vec::new();
    say("one container with all GPUs");
    let together = recordings(launcher, vec![(arrangement.clone(), plan(None))], started)?;
    rows.push(row("one container", &together));
    for way in ways {
        say(&format!("one container for each GPU: {way}"));
        let port = free_port().map_err(|error| ProbeError::Engine {
            what: format!("there is no free port for the ranks to meet at: {error}"),
            help: None,
        })?;
        let containers = (0..count).map(|rank| {
            let world = World { gpus: 1, offset: rank, size: count, master_port: port };
            (alone(arrangement, way, rank), plan(Some(world)))
        });
        let told = recordings(launcher, containers.collect(), started)?;
        rows.push(row(&way.to_string(), &told));
    }
    let mut body = Body::new();
    body.insert("gpus".to_owned(), count.into());
    body.insert("bytes".to_owned(), SIZE.into());
    body.insert("rows".to_owned(), rows.into());
    Ok(body)
}

/// The container of one rank.
fn alone(arrangement: &Arrangement, way: &Way, rank: u32) -> Arrangement {
    let mut alone = Arrangement { ipc: Some(way.ipc.clone()), ..arrangement.clone() };
    match way.share {
        Share::Own => {
            let id = match &arrangement.gpus {
                Gpus::These(ids) => ids.get(rank as usize).cloned(),
                Gpus::All | Gpus::Count(_) => None,
            };
            alone.gpus = Gpus::These(vec![id.unwrap_or_else(|| rank.to_string())]);
        }
        Share::All => alone.env.push(("CUDA_VISIBLE_DEVICES".to_owned(), rank.to_string())),
    }
    alone
}

fn plan(world: Option<World>) -> Plan {
    let mut plan = Plan::default().and("collectives");
    plan.lifeline = true;
    plan.collectives.quick = true;
    plan.collectives.sizes = vec![SIZE];
    plan.collectives.operations = vec!["all_reduce".to_owned()];
    plan.collectives.point_to_point = Some(false);
    plan.collectives.stall_seconds = Some(STALL);
    plan.collectives.world = world;
    plan
}

/// A port that nobody listens at now. Another process may take it before rank 0 does; the run then fails and says so.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Runs all containers at once.
fn recordings(
    launcher: &Launcher,
    containers: Vec<(Arrangement, Plan)>,
    started: &(dyn Fn(Killer) + Sync),
) -> Result<Vec<Recording>, ProbeError> {
    let program = payload::program();
    let one = |(mut arrangement, plan): (Arrangement, Plan)| -> Result<Recording, ProbeError> {
        arrangement.arguments = payload::start(&program, &plan.json());
        let mut recording = Recording::default();
        let limit = plan.limit();
        let finished =
            launcher.run(&super::name(), &arrangement, &program, limit, started, &mut |line| recording.push(line))?;
        if !recording.ended {
            let last = finished.stderr.lines().last().unwrap_or_default();
            recording.broken = Some(finished.broken.unwrap_or_else(|| format!("the program ended early: {last}")));
        }
        Ok(recording)
    };
    thread::scope(|scope| {
        let threads: Vec<_> = containers.into_iter().map(|container| scope.spawn(|| one(container))).collect();
        let defect = || {
            Err(ProbeError::Engine {
                what: "a container's thread ended in a defect of ncclcheck".to_owned(),
                help: None,
            })
        };
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| defect())).collect()
    })
}

/// What one arrangement came to.
fn row(name: &str, told: &[Recording]) -> serde_json::Value {
    let steps: Vec<_> = told.iter().filter_map(|recording| recording.find("collectives")).collect();
    let mut transports: Vec<String> = steps
        .iter()
        .flat_map(|step| log(step).transports().into_iter().map(ToOwned::to_owned).collect::<Vec<_>>())
        .collect();
    transports.sort();
    transports.dedup();
    let nodes = steps.iter().filter_map(|step| log(step).nodes).max();
    let warning = steps.iter().find_map(|step| log(step).warnings.into_keys().next());
    let failure = steps.iter().find_map(|step| match &step.outcome {
        Outcome::Failed(failed) => Some(failed.message.clone()),
        Outcome::Skipped(why) => Some(why.clone()),
        Outcome::Open => Some("it did not end".to_owned()),
        Outcome::Done { .. } => None,
    });
    let broken = told.iter().find_map(|recording| recording.broken.clone());
    let speed = steps.iter().find_map(|step| bandwidth(step, "all_reduce"));
    json!({
        "arrangement": name,
        "nodes": nodes,
        "transports": transports,
        "all_reduce_bytes_per_second": speed,
        "error": failure.or(broken),
        "warning": warning,
    })
}

#[cfg(test)]
mod tests {
    use super::super::arrangement::tests::plain;
    use super::*;

    #[test]
    fn each_container_has_a_gpu_of_those_that_were_asked_for() {
        let own = Way { share: Share::Own, ipc: "host".to_owned() };
        let asked = Arrangement { gpus: Gpus::These(vec!["2".to_owned(), "5".to_owned()]), ..plain() };
        assert_eq!(alone(&asked, &own, 1).gpus, Gpus::These(vec!["5".to_owned()]));
        let all = Arrangement { gpus: Gpus::All, ..plain() };
        assert_eq!(alone(&all, &own, 1).gpus, Gpus::These(vec!["1".to_owned()]));
        let shared = alone(&asked, &Way { share: Share::All, ..own }, 1);
        assert_eq!(shared.gpus, asked.gpus);
        assert_eq!(shared.env.last().unwrap(), &("CUDA_VISIBLE_DEVICES".to_owned(), "1".to_owned()));
    }
}
