//! Runs one container for each GPU, joined over the host's network, as schedulers do. Two settings decide between full
//! speed, a seventieth of it and failure, and NCCL reports success in the slow case. So this module runs each
//! arrangement and compares it with the same GPUs in one container.

use std::fmt;
use std::net::TcpListener;
use std::thread;

use model::cause;

use super::ProbeError;
use super::arrangement::{Arrangement, GpuSelection};
use super::engine::{Finished, Killer, Launcher};
use super::facts::{bandwidth, log};
use super::payload;
use super::plan::{ProbePlan, World};
use super::recording::{Recording, StepOutcome};
use super::wire::StepBody as _;
use super::wire::collectives::CollectivesBody;
use super::wire::isolated::{IsolatedBody, IsolatedRow};

/// Size of the measured all_reduce in bytes, large enough for bandwidth to dominate.
const SIZE: u64 = 256 << 20;
/// Seconds without progress after which the probe gives up on ranks that do not find each other.
const STALL: u32 = 40;

/// GPUs of a container with one rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Share {
    /// The rank's own GPU only.
    Own,
    /// All GPUs; `CUDA_VISIBLE_DEVICES` selects the rank's own.
    All,
}

/// An arrangement of containers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Way {
    /// GPUs of each container.
    pub share: Share,
    /// IPC mode of each container: `host` shares /dev/shm, `private` does not.
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

/// Runs all `count` GPUs in one container, and then in each arrangement. Returns the body of the step.
pub fn run(
    launcher: &Launcher,
    arrangement: &Arrangement,
    count: u32,
    ways: &[Way],
    started: &(dyn Fn(Killer) + Sync),
    note: &mut dyn FnMut(&str),
) -> Result<IsolatedBody, ProbeError> {
    let program = payload::program();
    let launch = |mut arrangement: Arrangement, plan: &ProbePlan, take: &mut dyn FnMut(&[u8])| {
        arrangement.arguments = payload::start(&program, &plan.json());
        launcher.run(&super::name(), &arrangement, &program, plan.limit(), started, take)
    };
    compare(&launch, arrangement, count, ways, note)
}

/// Runs one container to its end and passes on each line that the program in it writes.
type ContainerRun<'l> =
    dyn Fn(Arrangement, &ProbePlan, &mut dyn FnMut(&[u8])) -> Result<Finished, ProbeError> + Sync + 'l;

fn compare(
    launch: &ContainerRun<'_>,
    arrangement: &Arrangement,
    count: u32,
    ways: &[Way],
    note: &mut dyn FnMut(&str),
) -> Result<IsolatedBody, ProbeError> {
    let mut rows = Vec::new();
    note("one container with all GPUs");
    let together = recordings(launch, vec![(arrangement.clone(), plan(None))])?;
    rows.push(row("one container", &together));
    for way in ways {
        note(&format!("one container for each GPU: {way}"));
        let port = free_port().map_err(|error| ProbeError::Engine {
            what: format!("no free port for the rendezvous of the ranks: {}", cause(&error)),
            help: None,
        })?;
        let containers = (0..count).map(|rank| {
            let world = World { gpus: 1, offset: rank, size: count, master_port: port };
            (alone(arrangement, way, rank), plan(Some(world)))
        });
        let told = recordings(launch, containers.collect())?;
        rows.push(row(&way.to_string(), &told));
    }
    Ok(IsolatedBody { gpus: count.into(), bytes: SIZE.into(), rows: rows.into() })
}

/// The arrangement of one rank's container.
fn alone(arrangement: &Arrangement, way: &Way, rank: u32) -> Arrangement {
    let mut alone = Arrangement { ipc: Some(way.ipc.clone()), ..arrangement.clone() };
    match way.share {
        Share::Own => {
            let id = match &arrangement.gpus {
                GpuSelection::These(ids) => ids.get(rank as usize).cloned(),
                GpuSelection::All | GpuSelection::Count(_) => None,
            };
            alone.gpus = GpuSelection::These(vec![id.unwrap_or_else(|| rank.to_string())]);
        }
        Share::All => alone.env.push(("CUDA_VISIBLE_DEVICES".to_owned(), rank.to_string())),
    }
    alone
}

fn plan(world: Option<World>) -> ProbePlan {
    let mut plan = ProbePlan::default().and(CollectivesBody::STEP);
    plan.lifeline = true;
    plan.collectives.quick = true;
    plan.collectives.sizes = vec![SIZE];
    plan.collectives.operations = vec!["all_reduce".to_owned()];
    plan.collectives.point_to_point = Some(false);
    plan.collectives.stall_seconds = Some(STALL);
    plan.collectives.world = world;
    plan
}

/// Returns a free TCP port. Another process may take it before rank 0 does; the run then fails with that error.
fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// Runs all containers concurrently.
fn recordings(
    launch: &ContainerRun<'_>,
    containers: Vec<(Arrangement, ProbePlan)>,
) -> Result<Vec<Recording>, ProbeError> {
    let one = |(arrangement, plan): (Arrangement, ProbePlan)| -> Result<Recording, ProbeError> {
        let mut recording = Recording::of_steps(plan.steps.clone());
        let mut line = |line: &[u8]| {
            // A line that is not accepted is not a part of the result.
            let _ = recording.push(line);
        };
        let finished = launch(arrangement, &plan, &mut line)?;
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
                what: "internal error: the thread of a container panicked".to_owned(),
                help: None,
            })
        };
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| defect())).collect()
    })
}

/// Summarizes the recordings of one arrangement.
fn row(name: &str, told: &[Recording]) -> IsolatedRow {
    let steps: Vec<_> = told.iter().filter_map(|recording| recording.find(CollectivesBody::STEP)).collect();
    let mut transports: Vec<String> = steps
        .iter()
        .flat_map(|step| log(step).transports().into_iter().map(ToOwned::to_owned).collect::<Vec<_>>())
        .collect();
    transports.sort();
    transports.dedup();
    let nodes = steps.iter().filter_map(|step| log(step).nodes).max();
    let warning = steps.iter().find_map(|step| log(step).warnings.into_keys().next());
    let failure = steps.iter().find_map(|step| match &step.outcome {
        StepOutcome::Failed(failed) => Some(failed.message.clone()),
        StepOutcome::Skipped(why) => Some(why.clone()),
        StepOutcome::Open => Some("it did not end".to_owned()),
        StepOutcome::Done { .. } => None,
    });
    let broken = told.iter().find_map(|recording| recording.broken.clone());
    let speed = steps.iter().find_map(|step| bandwidth(step, "all_reduce"));
    IsolatedRow {
        arrangement: name.to_owned().into(),
        nodes: nodes.into(),
        transports: transports.into(),
        all_reduce_bytes_per_second: speed.into(),
        error: failure.or(broken).into(),
        warning: warning.into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::arrangement::tests::plain;
    use super::*;

    #[test]
    fn each_container_has_one_of_the_requested_gpus() {
        let own = Way { share: Share::Own, ipc: "host".to_owned() };
        let asked = Arrangement { gpus: GpuSelection::These(vec!["2".to_owned(), "5".to_owned()]), ..plain() };
        assert_eq!(alone(&asked, &own, 1).gpus, GpuSelection::These(vec!["5".to_owned()]));
        let all = Arrangement { gpus: GpuSelection::All, ..plain() };
        assert_eq!(alone(&all, &own, 1).gpus, GpuSelection::These(vec!["1".to_owned()]));
        let shared = alone(&asked, &Way { share: Share::All, ..own }, 1);
        assert_eq!(shared.gpus, asked.gpus);
        assert_eq!(shared.env.last().unwrap(), &("CUDA_VISIBLE_DEVICES".to_owned(), "1".to_owned()));
    }

    #[test]
    fn the_matrix_is_every_share_with_every_ipc_mode() {
        let names: Vec<_> = matrix().iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "its own GPU, --ipc private",
                "its own GPU, --ipc host",
                "all GPUs, CUDA_VISIBLE_DEVICES, --ipc private",
                "all GPUs, CUDA_VISIBLE_DEVICES, --ipc host",
            ]
        );
    }

    /// Lines of a program: its greeting, the start of its step, a measured all_reduce, the result, and the end.
    const HELLO: &[u8] = br#"{"ncclcheck": 1, "event": "hello"}"#;
    const START: &[u8] = br#"{"ncclcheck": 1, "event": "start", "step": "collectives", "deadline": 1.0}"#;
    const MEASURED: &[u8] = br#"{"ncclcheck": 1, "event": "part", "step": "collectives", "body": {"kind": "measurement", "operation": "all_reduce", "bytes": 268435456, "busbw_bytes_per_second": 2e9}}"#;
    const DONE: &[u8] = br#"{"ncclcheck": 1, "event": "result", "step": "collectives", "seconds": 1.0, "body": {}}"#;
    const END: &[u8] = br#"{"ncclcheck": 1, "event": "end", "run": 1}"#;

    #[test]
    fn each_way_runs_a_container_for_each_rank_and_measures_one_size() {
        let seen = std::sync::Mutex::new(Vec::new());
        let launch = |arrangement: Arrangement, plan: &ProbePlan, take: &mut dyn FnMut(&[u8])| {
            seen.lock().unwrap().push((arrangement, plan.clone()));
            [HELLO, START, MEASURED, DONE, END].into_iter().for_each(&mut *take);
            Ok(Finished::default())
        };
        let mut said = Vec::new();
        let mut note = |text: &str| said.push(text.to_owned());
        let ways = [Way { share: Share::Own, ipc: "private".to_owned() }];
        let body = compare(&launch, &Arrangement { gpus: GpuSelection::All, ..plain() }, 2, &ways, &mut note).unwrap();
        let body = serde_json::to_value(body).unwrap();
        assert_eq!(said, ["one container with all GPUs", "one container for each GPU: its own GPU, --ipc private"]);
        assert_eq!((&body["gpus"], &body["bytes"]), (&json!(2), &json!(SIZE)));
        let rows = body["rows"].as_array().unwrap();
        assert_eq!(rows[0]["arrangement"], "one container");
        assert_eq!(rows[1]["arrangement"], "its own GPU, --ipc private");
        let mut seen = seen.into_inner().unwrap();
        seen.sort_by_key(|(_, plan)| plan.collectives.world.as_ref().map(|world| world.offset));
        let [together, first, second] = &*seen else { panic!("{seen:?}") };
        assert_eq!((&together.0.gpus, &together.1.collectives.world), (&GpuSelection::All, &None));
        for (rank, (arrangement, plan)) in (0..).zip([first, second]) {
            assert_eq!(arrangement.gpus, GpuSelection::These(vec![rank.to_string()]));
            assert_eq!(arrangement.ipc.as_deref(), Some("private"));
            let world = plan.collectives.world.as_ref().unwrap();
            assert_eq!((world.gpus, world.offset, world.size), (1, rank, 2));
            assert!(world.master_port > 0);
            assert_eq!(world.master_port, first.1.collectives.world.as_ref().unwrap().master_port);
        }
        for (_, plan) in &seen {
            assert_eq!((&*plan.steps, plan.lifeline), (&["collectives".to_owned()][..], true));
            let asked = &plan.collectives;
            assert!(asked.quick && asked.point_to_point == Some(false) && asked.stall_seconds == Some(40));
            assert_eq!((&*asked.sizes, &*asked.operations), (&[256 << 20][..], &["all_reduce".to_owned()][..]));
        }
    }

    #[test]
    fn a_program_that_ended_early_is_broken_with_the_engines_reason_or_its_last_line() {
        let one = |finished: Finished, lines: &[&[u8]]| {
            let launch = |_: Arrangement, _: &ProbePlan, take: &mut dyn FnMut(&[u8])| {
                for line in lines {
                    take(line);
                }
                Ok(finished.clone())
            };
            recordings(&launch, vec![(plain(), plan(None))]).unwrap().remove(0).broken
        };
        let stderr = Finished { stderr: "Traceback:\nMemoryError\n".to_owned(), ..Finished::default() };
        let lost = Finished { broken: Some("the engine went away".to_owned()), ..stderr.clone() };
        assert_eq!(one(stderr.clone(), &[]).as_deref(), Some("the program ended early: MemoryError"));
        assert_eq!(one(lost, &[]).as_deref(), Some("the engine went away"));
        assert_eq!(one(stderr, &[HELLO, START, DONE, END]), None);
    }

    #[test]
    fn an_error_of_the_engine_ends_the_comparison() {
        let launch = |_: Arrangement, _: &ProbePlan, _: &mut dyn FnMut(&[u8])| {
            Err(ProbeError::Engine { what: "no such image".to_owned(), help: None })
        };
        let error = compare(&launch, &plain(), 2, &matrix(), &mut |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "no such image");
    }

    /// A recording of these lines.
    fn recording(lines: &[&[u8]]) -> Recording {
        Recording::read(&lines.join(&b'\n'))
    }

    fn nccl(line: &str) -> Vec<u8> {
        let line = json!(line);
        format!(r#"{{"ncclcheck": 1, "event": "log", "step": "collectives", "rank": 0, "line": {line}}}"#).into_bytes()
    }

    #[test]
    fn a_row_combines_the_results_of_all_ranks() {
        let ranks = |count: u32| {
            nccl(&format!(
                "vm:1:1 [0] NCCL INFO comm 0x1 rank 0 nRanks 2 nNodes {count} localRanks 2 localRank 0 MNNVL 0"
            ))
        };
        let via = |way: &str| nccl(&format!("vm:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via {way}"));
        let [first, second] = [
            recording(&[&ranks(2), &via("SHM/direct/direct"), MEASURED, DONE]),
            recording(&[
                &ranks(1),
                &via("P2P/CUMEM"),
                &via("SHM/direct/direct"),
                &nccl("vm:1:1 [0] NCCL WARN odd"),
                &nccl("vm:1:1 [0] NCCL WARN other"),
                DONE,
            ]),
        ];
        let row = serde_json::to_value(row("together", &[first, second])).unwrap();
        assert_eq!(
            row,
            json!({
                "arrangement": "together", "nodes": 2, "transports": ["P2P/CUMEM", "SHM"],
                "all_reduce_bytes_per_second": 2e9, "error": null, "warning": "odd",
            })
        );
    }

    #[test]
    fn a_row_has_the_first_failure_of_a_step_or_of_the_program() {
        let failed = br#"{"ncclcheck": 1, "event": "failed", "step": "collectives", "seconds": 1.0, "how": "exit", "message": "status 1"}"#;
        let skipped = br#"{"ncclcheck": 1, "event": "skipped", "step": "collectives", "why": "no torch"}"#;
        let start = br#"{"ncclcheck": 1, "event": "start", "step": "collectives", "deadline": 1.0}"#;
        let error = |lines: &[&[u8]], broken: Option<&str>| {
            let mut lost = recording(lines);
            lost.broken = broken.map(ToOwned::to_owned);
            serde_json::to_value(row("x", &[recording(&[DONE]), lost])).unwrap()["error"].clone()
        };
        assert_eq!(error(&[DONE], None), json!(null));
        assert_eq!(error(&[failed], Some("lost")), "status 1");
        assert_eq!(error(&[skipped], None), "no torch");
        assert_eq!(error(&[start], None), "it did not end");
        assert_eq!(error(&[DONE], Some("lost")), "lost");
        assert_eq!(error(&[], Some("lost")), "lost");
    }
}
