//! A probe from the first request to the engine to the recording. Nothing here writes to a terminal or reads an option of the
//! command line: a caller gives options, and follows the run as an [`Observer`].
//!
//! ```no_run
//! use ncclcheck::image::source::AccessOptions;
//! use ncclcheck::probe::{ContainerOptions, Interrupt, Plan, ProbeError, Session};
//!
//! fn probe(engine: &AccessOptions) -> Result<(), ProbeError> {
//!     let session = Session::open(engine, ContainerOptions::new("pytorch/pytorch:latest"))?;
//!     let recording = session.prepare()?.run(Plan::default_steps(), &[], &Interrupt::default(), &mut ())?;
//!     println!("{} steps", recording.steps.len());
//!     Ok(())
//! }
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use crate::image::source::AccessOptions;

use super::arrangement::{Arrangement, GpuWay};
use super::container::{ContainerOptions, shown};
use super::engine::{Finished, Held, Launcher, PullPolicy};
use super::isolation::{self, Way};
use super::observer::{Follower, Interrupt, Observer};
use super::plan::ProbePlan;
use super::recording::Recording;
use super::wire::events::{self, Event, LaunchEvent};
use super::wire::gpus::GpusBody;
use super::wire::isolated::IsolatedBody;
use super::wire::{self, StepBody as _};
use super::{ProbeError, command, devices, local, payload};

/// What a command line calls the file of the program.
const PAYLOAD: &str = "payload.py";

/// A connection to an engine, and the container that is to run there.
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
    /// Connects to the first engine that answers. Nothing is fetched or run.
    pub fn open(engine: &AccessOptions, options: ContainerOptions) -> Result<Self, ProbeError> {
        let launcher = Launcher::connect(engine)?;
        let arrangement = options.arrangement(&launcher);
        Ok(Self { launcher, options, arrangement })
    }

    /// The `docker run` line that equals the launch. Nothing is fetched or run for it.
    pub fn command_line(mut self, plan: &ProbePlan) -> Result<String, ProbeError> {
        let held = self.launcher.image(&self.options.image, PullPolicy::Never).unwrap_or_default();
        self.add_device_nodes(&held)?;
        self.arrangement.arguments = payload::start(&payload::program(), &plan.json());
        Ok(command::docker_run(&self.arrangement, PAYLOAD))
    }

    /// Has the engine fetch the image, and removes containers that an earlier probe left.
    pub fn prepare(mut self) -> Result<PreparedSession, ProbeError> {
        let held = self.launcher.image(&self.options.image, self.options.pull)?;
        self.add_device_nodes(&held)?;
        self.launcher.clean()?;
        self.arrangement.labels = super::labels();
        Ok(PreparedSession { session: self, image_id: held.id })
    }

    /// Adds this host's GPUs, where the engine is not asked for them.
    fn add_device_nodes(&mut self, held: &Held) -> Result<(), ProbeError> {
        if self.arrangement.way != GpuWay::Devices {
            return Ok(());
        }
        devices::add(&mut self.arrangement, held.library_path.as_deref()).map_err(ProbeError::DeviceNodes)
    }
}

impl PreparedSession {
    /// Runs the container, and after it one for each GPU in each of the `ways`. All are gone when this returns; until then
    /// `interrupt` ends them.
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
        let offers = launcher.offers();
        let launch = LaunchEvent {
            engine: offers.engine.clone(),
            image: options.image,
            image_id,
            command: command::docker_run(&shown(&arrangement), PAYLOAD),
            gpus: arrangement.way != GpuWay::None,
            given: None,
            namespaces: if offers.is_local { super::namespaces() } else { BTreeMap::new() },
        };
        let mut follower = Follower::new(observer);
        let once = |arrangement: &Arrangement, follower: &mut Follower<'_>| {
            let started = |container| interrupt.remember(container);
            launcher.run(&super::name(), arrangement, &program, plan.limit(), &started, &mut |line| follower.line(line))
        };
        let finished = match once(&arrangement, &mut follower) {
            // Of our own accord we ask for no limit on locked memory; an engine that may not give that gives its own.
            Err(error) if error.concerns_limits() && options.ulimits.is_empty() => {
                arrangement.ulimits.clear();
                follower.observer.note("the engine may not raise limits: without --ulimit memlock=-1");
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

/// Runs the program without an engine: on this host, or in the container in which this process is.
pub fn in_place(python: &str, plan: ProbePlan, observer: &mut dyn Observer) -> Result<Recording, ProbeError> {
    let plan = ProbePlan { lifeline: true, ..plan };
    let mut follower = Follower::new(observer);
    let finished = local::run(python, &payload::program(), &plan.json(), &mut |line| follower.line(line))?;
    finish(follower, None, finished)
}

/// Runs one container for each GPU, as a step that follows the others.
fn isolate(
    launcher: &Launcher,
    arrangement: &Arrangement,
    ways: &[Way],
    interrupt: &Interrupt,
    follower: &mut Follower<'_>,
) -> Result<(), ProbeError> {
    let step = IsolatedBody::STEP.to_owned();
    let Some(count) = gpu_count(&follower.recording).filter(|count| *count > 1) else {
        let why = "it needs several GPUs, as the step gpus sees them".to_owned();
        follower.event(&Event::Skipped { step, why });
        return Ok(());
    };
    follower.event(&Event::Start { step: step.clone(), deadline: 0.0 });
    let (started, began) = (|container| interrupt.remember(container), Instant::now());
    let note = &mut |text: &str| follower.observer.note(text);
    let body = isolation::run(launcher, arrangement, count, ways, &started, note)?;
    let seconds = began.elapsed().as_secs_f64();
    follower.event(&Event::Result { step, seconds, body: wire::body(&body), unclean_exit: None });
    Ok(())
}

/// How many GPUs the container has.
fn gpu_count(recording: &Recording) -> Option<u32> {
    let (_, body) = recording.result::<GpusBody>()?;
    u32::try_from(body.gpus.value()?.len()).ok()
}

/// The recording of a program that has ended.
fn finish(follower: Follower<'_>, launch: Option<LaunchEvent>, finished: Finished) -> Result<Recording, ProbeError> {
    let Follower { mut recording, observer } = follower;
    let Finished { stderr, given, broken } = finished;
    if let Some(launch) = launch.map(|launch| LaunchEvent { given, ..launch }) {
        // What the engine gave is known only now; where in a recording this line stands makes no difference.
        if let Ok(line) = events::write(&Event::Launch(launch.clone())) {
            observer.line(line.as_bytes());
        }
        recording.launch = Some(launch);
    }
    if !recording.ended {
        let why = broken.unwrap_or_else(|| "it ended before its end".to_owned());
        recording.broken = Some(why + &last_words(&stderr));
    }
    if recording.hello.is_none() {
        let why = recording.broken.unwrap_or_else(|| "it said nothing".to_owned());
        return Err(ProbeError::Engine {
            what: format!("the program did not begin in the container: {why}"),
            help: Some("it needs a Python from 3.8 on: name the image's with --python".to_owned()),
        });
    }
    Ok(recording)
}

/// The end of a program's standard error, for a message.
fn last_words(stderr: &str) -> String {
    let mut last: Vec<_> = stderr.trim().lines().rev().take(5).collect();
    last.reverse();
    if last.is_empty() { String::new() } else { format!("; its last words:\n    {}", last.join("\n    ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What became of a program that wrote these lines.
    fn finished(lines: &[&str], stderr: &str) -> Result<Recording, ProbeError> {
        let mut observer = ();
        let mut follower = Follower::new(&mut observer);
        for line in lines {
            follower.line(line.as_bytes());
        }
        finish(follower, Some(LaunchEvent::default()), Finished { stderr: stderr.to_owned(), ..Finished::default() })
    }

    const HELLO: &str = r#"{"ncclcheck": 1, "event": "hello"}"#;
    const END: &str = r#"{"ncclcheck": 1, "event": "end"}"#;

    #[test]
    fn a_program_that_ends_early_leaves_its_last_words() {
        let whole = finished(&[HELLO, END], "a warning").unwrap();
        assert_eq!((whole.broken, whole.launch), (None, Some(LaunchEvent::default())));
        let early = finished(&[HELLO], "1\n2\n3\n4\n5\n6\n").unwrap();
        let why = "it ended before its end; its last words:\n    2\n    3\n    4\n    5\n    6";
        assert_eq!(early.broken.as_deref(), Some(why));
    }

    #[test]
    fn a_program_that_does_not_begin_is_an_error() {
        let error = finished(&[], "No module named json").unwrap_err().to_string();
        assert!(error.contains("did not begin in the container: it ended before its end"), "{error}");
        assert!(error.contains("No module named json") && error.contains("--python"), "{error}");
    }

    #[test]
    fn gpus_are_counted_by_the_step_that_sees_them() {
        let line = r#"{"ncclcheck": 1, "event": "result", "step": "gpus", "seconds": 1.0, "body": {"gpus": [{}, {}]}}"#;
        assert_eq!(gpu_count(&Recording::read(line.as_bytes())), Some(2));
        assert_eq!(gpu_count(&Recording::default()), None);
    }
}
