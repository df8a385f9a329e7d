//! Runs a probe, from the first request to the engine to the recording. This module neither writes to a terminal nor
//! reads command-line options: the caller passes options and follows the run as an [`Observer`].
//!
//! ```no_run
//! use image::source::AccessOptions;
//! use probe::arrangement::Arrangement;
//! use probe::{Interrupt, ProbeError, ProbePlan, Session};
//!
//! fn probe(engine: &AccessOptions) -> Result<(), ProbeError> {
//!     let session = Session::open(engine, Arrangement::new("pytorch/pytorch:latest"))?;
//!     let recording = session.prepare()?.run(ProbePlan::default_steps(), &[], &Interrupt::default(), &mut ())?;
//!     println!("{} steps", recording.steps.len());
//!     Ok(())
//! }
//! ```

use std::collections::BTreeMap;
use std::time::Instant;

use image::source::AccessOptions;
use model::conceal_words;

use super::arrangement::{Arrangement, EntrypointUse, GpuWay, PullPolicy};
use super::container::shown;
use super::engine::{self, Held, Launcher, Offers};
use super::finish::finish;
use super::isolation::{self, Way};
use super::observer::{Follower, Interrupt, Observer};
use super::plan::ProbePlan;
use super::recording::Recording;
use super::wire::entrypoint::EntrypointLaunch;
use super::wire::events::{Event, LaunchEvent};
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
    /// As it was asked for.
    options: Arrangement,
    /// On this engine.
    arrangement: Arrangement,
}

/// A session whose engine has the image.
#[derive(Debug)]
pub struct PreparedSession {
    session: Session,
    image_id: String,
    /// Why the program replaces the image's entrypoint, if it does.
    bypassed: String,
}

/// Why the program replaces an entrypoint if the caller gives no other reason.
const BYPASSED: &str = "the probe's program replaces it unless --entrypoint image is given";

impl Session {
    /// Connects to the first engine that answers. Does not fetch or run anything.
    pub fn open(engine: &AccessOptions, options: Arrangement) -> Result<Self, ProbeError> {
        let launcher = Launcher::connect(engine)?;
        let arrangement = options.on(launcher.offers());
        Ok(Self { launcher, options, arrangement })
    }

    /// Makes the engine fetch the image, and removes containers that an earlier probe left behind.
    pub fn prepare(mut self) -> Result<PreparedSession, ProbeError> {
        let held = self.launcher.image(&self.options.image, self.options.pull)?;
        add_device_nodes(&mut self.arrangement, &held)?;
        self.launcher.clean()?;
        self.arrangement.labels = super::labels();
        self.arrangement.image_entrypoint = held.entrypoint;
        Ok(PreparedSession { session: self, image_id: held.id, bypassed: BYPASSED.to_owned() })
    }
}

impl PreparedSession {
    /// Words of the image's entrypoint; empty if it has none.
    pub fn image_entrypoint(&self) -> &[String] {
        &self.session.arrangement.image_entrypoint
    }

    /// Runs the program behind the image's entrypoint.
    #[must_use]
    pub fn through_entrypoint(mut self) -> Self {
        self.session.arrangement.entrypoint = EntrypointUse::OfImage;
        self
    }

    /// Replaces the image's entrypoint by the program, for this reason.
    #[must_use]
    pub fn bypassing_entrypoint(mut self, why: String) -> Self {
        self.session.arrangement.entrypoint = EntrypointUse::Replaced;
        self.bypassed = why;
        self
    }

    /// Runs the container, and then one container for each GPU in each of the `ways`. All containers are gone when this
    /// returns; until then `interrupt` removes them.
    pub fn run(
        self,
        plan: ProbePlan,
        ways: &[Way],
        interrupt: &Interrupt,
        observer: &mut dyn Observer,
    ) -> Result<Recording, ProbeError> {
        let entrypoint = self.entrypoint();
        let Self { session: Session { launcher, options, mut arrangement }, image_id, .. } = self;
        let program = payload::program();
        let plan = ProbePlan { lifeline: true, ..plan };
        arrangement.arguments = payload::start(&program, &plan.json());
        let isolated = (!ways.is_empty()).then(|| IsolatedBody::STEP.to_owned());
        let steps: Vec<_> = plan.steps.iter().cloned().chain(isolated).collect();
        let offers = launcher.offers();
        let launch = LaunchEvent {
            engine: offers.engine.clone(),
            image: options.image,
            image_id,
            command: command::docker_run(&shown(&arrangement), PAYLOAD),
            gpus: arrangement.gives_gpus(),
            steps: steps.clone(),
            requested: engine::requested(&arrangement),
            given: None,
            namespaces: if offers.is_local { super::namespaces() } else { BTreeMap::new() },
            entrypoint,
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
            Err(error) if error.concerns_limits() && options.ulimits.is_none() => {
                arrangement.ulimits = Some(Vec::new());
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

    /// What the launch does with the image's entrypoint, if it has one.
    fn entrypoint(&self) -> Option<EntrypointLaunch> {
        let arrangement = &self.session.arrangement;
        let launch = EntrypointLaunch {
            words: conceal_words(&arrangement.image_entrypoint),
            bypassed: (arrangement.entrypoint == EntrypointUse::Replaced).then(|| self.bypassed.clone()),
            python: arrangement.python.clone(),
            ..EntrypointLaunch::default()
        };
        Some(launch).filter(|launch| !launch.words.is_empty())
    }
}

/// Returns the `docker run` command line for these options, which reads the program from `payload.py`, and the reason if no
/// engine was asked what it supports. The command line then requests GPUs by `--gpus`. Does not fetch or run anything.
pub fn command_line(
    engine: &AccessOptions,
    options: &Arrangement,
    plan: &ProbePlan,
) -> Result<(String, Option<ProbeError>), ProbeError> {
    let (offers, held, unasked) = match Launcher::connect(engine) {
        Ok(launcher) => {
            let held = launcher.image(&options.image, PullPolicy::Never).unwrap_or_default();
            (launcher.offers().clone(), held, None)
        }
        Err(error) => (Offers { is_local: true, ..Offers::default() }, Held::default(), Some(error)),
    };
    let mut arrangement = options.on(&offers);
    add_device_nodes(&mut arrangement, &held)?;
    arrangement.arguments = payload::start(&payload::program(), &plan.json());
    Ok((command::docker_run(&arrangement, PAYLOAD), unasked))
}

/// Adds this host's GPUs as device nodes, if the arrangement does not request them from the engine.
fn add_device_nodes(arrangement: &mut Arrangement, held: &Held) -> Result<(), ProbeError> {
    if arrangement.gpu_way != Some(GpuWay::Devices) {
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
    let started = |container| interrupt.remember(container);
    let began = Instant::now();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_counted_from_the_step_gpus() {
        let line = r#"{"ncclcheck": 1, "event": "result", "step": "gpus", "seconds": 1.0, "body": {"gpus": [{}, {}]}}"#;
        assert_eq!(gpu_count(&Recording::read(line.as_bytes())), Some(2));
        assert_eq!(gpu_count(&Recording::default()), None);
    }
}
