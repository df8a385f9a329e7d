//! Runs a probe, from the first request to the engine to the recording. This module neither writes to a terminal nor
//! reads command-line options: the caller passes options and follows the run as an [`Observer`].
//!
//! ```no_run
//! use ncclcheck::image::source::AccessOptions;
//! use ncclcheck::probe::{ContainerOptions, Interrupt, ProbeError, ProbePlan, Session};
//!
//! fn probe(engine: &AccessOptions) -> Result<(), ProbeError> {
//!     let session = Session::open(engine, ContainerOptions::new("pytorch/pytorch:latest"))?;
//!     let recording = session.prepare()?.run(ProbePlan::default_steps(), &[], &Interrupt::default(), &mut ())?;
//!     println!("{} steps", recording.steps.len());
//!     Ok(())
//! }
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use crate::image::source::AccessOptions;

use super::arrangement::{Arrangement, GpuWay};
use super::container::{ContainerOptions, shown};
use super::engine::{self, Finished, Held, Launcher, Offers, PullPolicy};
use super::isolation::{self, Way};
use super::observer::{Follower, Interrupt, Observer};
use super::plan::ProbePlan;
use super::recording::Recording;
use super::wire::events::{self, Event, LaunchEvent};
use super::wire::gpus::GpusBody;
use super::wire::isolated::IsolatedBody;
use super::wire::{self, StepBody as _};
use super::{ProbeError, command, devices, local, payload};

/// Name of the program's file in a command line.
const PAYLOAD: &str = "payload.py";

/// A connection to an engine, and the container to run on it.
#[derive(Debug)]
pub struct Session {
    launcher: Launcher,
    options: ContainerOptions,
    arrangement: Arrangement,
}

/// A session whose engine has the image.
#[derive(Debug)]
pub struct PreparedSession {
    session: Session,
    image_id: String,
}

impl Session {
    /// Connects to the first engine that answers. Does not fetch or run anything.
    pub fn open(engine: &AccessOptions, options: ContainerOptions) -> Result<Self, ProbeError> {
        let launcher = Launcher::connect(engine)?;
        let arrangement = options.arrangement(launcher.offers());
        Ok(Self { launcher, options, arrangement })
    }

    /// Makes the engine fetch the image, and removes containers that an earlier probe left behind.
    pub fn prepare(mut self) -> Result<PreparedSession, ProbeError> {
        let held = self.launcher.image(&self.options.image, self.options.pull)?;
        add_device_nodes(&mut self.arrangement, &held)?;
        self.launcher.clean()?;
        self.arrangement.labels = super::labels();
        Ok(PreparedSession { session: self, image_id: held.id })
    }
}

impl PreparedSession {
    /// Runs the container, and then one container for each GPU in each of the `ways`. All containers are gone when this
    /// returns; until then `interrupt` removes them.
    pub fn run(
        self,
        plan: ProbePlan,
        ways: &[Way],
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Result<Recording, ProbeError> {
        let Self { session: Session { launcher, options, mut arrangement }, image_id } = self;
        let (program, plan) = (payload::program(), ProbePlan { lifeline: true, ..plan });
        arrangement.arguments = payload::start(&program, &plan.json());
        let isolated = (!ways.is_empty()).then(|| IsolatedBody::STEP.to_owned());
        let steps: Vec<_> = plan.steps.iter().cloned().chain(isolated).collect();
        let offers = launcher.offers();
        let launch = LaunchEvent {
            engine: offers.engine.clone(),
            image: options.image,
            image_id,
            command: command::docker_run(&shown(&arrangement), PAYLOAD),
            gpus: arrangement.way != GpuWay::None,
            steps: steps.clone(),
            requested: engine::requested(&arrangement),
            given: None,
            namespaces: if offers.is_local { super::namespaces() } else { BTreeMap::new() },
        };
        let mut follower = Follower::new(steps, observer);
        let once = |arrangement: &Arrangement, follower: &mut Follower<'_>| {
            let started = |container| interrupt.remember(container);
            let mut line = |line: &[u8]| follower.line(line);
            launcher.run(&super::name(), arrangement, &program, plan.limit(), &started, &mut line)
        };
        let finished = match once(&arrangement, &mut follower) {
            // Unlimited locked memory is only a default of the probe. An engine that may not raise the limit keeps its
            // own.
            Err(error) if error.concerns_limits() && options.ulimits.is_empty() => {
                arrangement.ulimits.clear();
                follower.observer.note("the engine may not raise limits; continuing without --ulimit memlock=-1");
                once(&arrangement, &mut follower)?
            }
            finished => finished?,
        };
        if !ways.is_empty() {
            isolate(&launcher, &arrangement, ways, interrupt, &mut follower)?;
        }
        finish(follower, Some(launch), finished)
    }
}

/// A `docker run` command line that is equivalent to a launch.
#[derive(Debug)]
#[non_exhaustive]
pub struct EquivalentCommand {
    /// The command line, which reads the program from `payload.py`.
    pub text: String,
    /// Reason why no engine was asked what it supports. The command line then requests GPUs by `--gpus`.
    pub unasked: Option<ProbeError>,
}

/// Returns the command line for these options. Does not fetch or run anything.
pub fn command_line(
    engine: &AccessOptions,
    options: &ContainerOptions,
    plan: &ProbePlan,
) -> Result<EquivalentCommand, ProbeError> {
    let (offers, held, unasked) = match Launcher::connect(engine) {
        Ok(launcher) => {
            let held = launcher.image(&options.image, PullPolicy::Never).unwrap_or_default();
            (launcher.offers().clone(), held, None)
        }
        Err(error) => (Offers { is_local: true, ..Offers::default() }, Held::default(), Some(error)),
    };
    let mut arrangement = options.arrangement(&offers);
    add_device_nodes(&mut arrangement, &held)?;
    arrangement.arguments = payload::start(&payload::program(), &plan.json());
    Ok(EquivalentCommand { text: command::docker_run(&arrangement, PAYLOAD), unasked })
}

/// Adds this host's GPUs as device nodes, if the arrangement does not request them from the engine.
fn add_device_nodes(arrangement: &mut Arrangement, held: &Held) -> Result<(), ProbeError> {
    if arrangement.way != GpuWay::Devices {
        return Ok(());
    }
    devices::add(arrangement, held.library_path.as_deref()).map_err(ProbeError::DeviceNodes)
}

/// Runs the program without an engine: on this host, or in the container of this process.
pub fn in_place(python: &str, plan: ProbePlan, observer: &mut dyn Observer) -> Result<Recording, ProbeError> {
    let plan = ProbePlan { lifeline: true, ..plan };
    let mut follower = Follower::new(plan.steps.clone(), observer);
    let finished = local::run(python, &payload::program(), &plan.json(), &mut |line| follower.line(line))?;
    finish(follower, None, finished)
}

/// Runs one container for each GPU, as a step after the others.
fn isolate(
    launcher: &Launcher,
    arrangement: &Arrangement,
    ways: &[Way],
    interrupt: &Interrupt,
    follower: &mut Follower<'_>,
) -> Result<(), ProbeError> {
    let step = IsolatedBody::STEP.to_owned();
    let Some(count) = gpu_count(&follower.recording).filter(|count| *count > 1) else {
        let why = "it needs at least two GPUs, as counted by the step gpus".to_owned();
        follower.event(Event::Skipped { step, why });
        return Ok(());
    };
    follower.event(Event::Start { step: step.clone(), deadline: 0.0 });
    let (started, began) = (|container| interrupt.remember(container), Instant::now());
    let note = &mut |text: &str| follower.observer.note(text);
    let body = isolation::run(launcher, arrangement, count, ways, &started, note)?;
    let seconds = began.elapsed().as_secs_f64();
    follower.event(Event::Result { step, seconds, body: wire::body(&body), unclean_exit: None });
    Ok(())
}

/// Number of GPUs in the container.
fn gpu_count(recording: &Recording) -> Option<u32> {
    let (_, body) = recording.result::<GpusBody>()?;
    u32::try_from(body.gpus.value()?.len()).ok()
}

/// Completes the recording of a program that has ended.
fn finish(follower: Follower<'_>, launch: Option<LaunchEvent>, finished: Finished) -> Result<Recording, ProbeError> {
    let Follower { mut recording, observer } = follower;
    let Finished { stderr, given, broken } = finished;
    if let Some(launch) = launch.map(|launch| LaunchEvent { given, ..launch }) {
        // The engine's account is known only now; the position of this line in a recording does not matter.
        if let Ok(line) = events::write(&Event::Launch(launch.clone())) {
            observer.line(line.as_bytes());
        }
        recording.launch = Some(launch);
    }
    if !recording.ended {
        let why = broken.unwrap_or_else(|| "the program ended early".to_owned());
        recording.broken = Some(why + &last_words(&stderr));
    }
    if recording.hello.is_none() {
        let why = recording.broken.unwrap_or_else(|| "it wrote no line of a probe".to_owned());
        return Err(ProbeError::Engine {
            what: format!("the probe's program did not start: {why}"),
            help: Some("it needs Python 3.8 or later; select the image's Python with --python".to_owned()),
        });
    }
    if recording.ended && recording.steps.is_empty() {
        return Err(ProbeError::Engine {
            what: "the probe's program ended without running a step".to_owned(),
            help: Some("another program may answer in its place: check the image's Python with --python".to_owned()),
        });
    }
    Ok(recording)
}

/// The end of a program's standard error, for a message.
fn last_words(stderr: &str) -> String {
    let mut last: Vec<_> = stderr.trim().lines().rev().take(5).collect();
    last.reverse();
    if last.is_empty() { String::new() } else { format!("; end of its standard error:\n    {}", last.join("\n    ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Result of a program that wrote these lines.
    fn finished(lines: &[&str], stderr: &str) -> Result<Recording, ProbeError> {
        let mut observer = ();
        let mut follower = Follower::new(vec!["limits".to_owned()], &mut observer);
        for line in lines {
            follower.line(line.as_bytes());
        }
        finish(follower, Some(LaunchEvent::default()), Finished { stderr: stderr.to_owned(), ..Finished::default() })
    }

    const HELLO: &str = r#"{"ncclcheck": 1, "event": "hello"}"#;
    const START: &str = r#"{"ncclcheck": 1, "event": "start", "step": "limits", "deadline": 1.0}"#;
    const SKIPPED: &str = r#"{"ncclcheck": 1, "event": "skipped", "step": "limits", "why": "none"}"#;
    const END: &str = r#"{"ncclcheck": 1, "event": "end", "skipped": 1}"#;

    #[test]
    fn a_program_that_ends_early_leaves_the_end_of_its_standard_error() {
        let whole = finished(&[HELLO, START, SKIPPED, END], "a warning").unwrap();
        assert_eq!((whole.broken, whole.launch), (None, Some(LaunchEvent::default())));
        let early = finished(&[HELLO], "1\n2\n3\n4\n5\n6\n").unwrap();
        let why = "the program ended early; end of its standard error:\n    2\n    3\n    4\n    5\n    6";
        assert_eq!(early.broken.as_deref(), Some(why));
    }

    #[test]
    fn a_program_that_does_not_start_is_an_error() {
        let error = finished(&[], "No module named json").unwrap_err().to_string();
        assert!(error.contains("the probe's program did not start: the program ended early"), "{error}");
        assert!(error.contains("No module named json") && error.contains("--python"), "{error}");
    }

    #[test]
    fn a_program_that_runs_no_step_is_an_error() {
        let error = finished(&[HELLO, r#"{"ncclcheck": 1, "event": "end"}"#], "").unwrap_err().to_string();
        assert!(error.starts_with("the probe's program ended without running a step"), "{error}");
    }

    #[test]
    fn gpus_are_counted_from_the_step_gpus() {
        let line = r#"{"ncclcheck": 1, "event": "result", "step": "gpus", "seconds": 1.0, "body": {"gpus": [{}, {}]}}"#;
        assert_eq!(gpu_count(&Recording::read(line.as_bytes())), Some(2));
        assert_eq!(gpu_count(&Recording::default()), None);
    }
}
