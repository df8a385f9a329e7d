//! Runs the image in a container, or in one for each GPU.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::image::source::AccessOptions;
use crate::probe::arrangement::{Arrangement, GpuWay};
use crate::probe::engine::{Finished, Killer, Launcher, Pull};
use crate::probe::isolation::{self, Way};
use crate::probe::plan::Plan;
use crate::probe::recording::Recording;
use crate::probe::wire::events::{self, Event};
use crate::probe::wire::gpus::GpusBody;
use crate::probe::wire::isolated::IsolatedBody;
use crate::probe::wire::{self, StepBody as _};
use crate::probe::{self, command, devices, payload};

use super::super::Failure;
use super::super::args::probe::{Launch, Steps};
use super::super::verbosity::Verbosity;
use super::listener::{Listener, say};
use super::{plan, print};

/// Runs the image in a container; `None` where only the command line was asked for.
pub(super) fn container(
    image: &str,
    launch: &Launch,
    env: &[String],
    verbosity: Verbosity,
    steps: &Steps,
    options: &AccessOptions,
) -> Result<Option<Recording>, Failure> {
    let plan = plan::plan(steps)?;
    let program = payload::program();
    let ways = &plan::ways(steps, launch)?;
    let image = plan::image(image)?;
    let launcher = Launcher::connect(options)?;
    let mut arrangement = plan::arrangement(&image, launch, env, &launcher)?;
    let held = if launch.dry_run {
        // Nothing is fetched to print a line.
        launcher.image(&image, Pull::Never).unwrap_or_default()
    } else {
        launcher.image(&image, plan::pull(launch.pull))?
    };
    if arrangement.way == GpuWay::Devices {
        let added = devices::add(&mut arrangement, held.library_path.as_deref());
        added.map_err(|why| Failure::Usage(format!("--gpu-mode devices: {why}")))?;
    }
    if launch.dry_run {
        arrangement.arguments = payload::start(&program, &plan.json());
        let line = command::docker_run(&arrangement, "payload.py");
        print(&format!("ncclcheck probe --print-payload > payload.py\n{line}\n"))?;
        return Ok(None);
    }
    launcher.clean()?;
    arrangement.labels = probe::labels();
    let plan = Plan { lifeline: true, ..plan };
    arrangement.arguments = payload::start(&program, &plan.json());
    let mut listener = Listener::new(verbosity, steps.record.as_deref())?;
    listener.launch = Some(events::Launch {
        engine: launcher.offers().engine.clone(),
        image_id: held.id,
        gpus: arrangement.way != GpuWay::None,
        command: command::docker_run(&plan::shown(&arrangement), "payload.py"),
        image,
        given: None,
        namespaces: if launcher.offers().is_local { probe::namespaces() } else { BTreeMap::new() },
    });
    let killers: Killers = Arc::default();
    handle_interrupt(&killers);
    let finished = match run(&launcher, &arrangement, &program, &plan, &killers, &mut listener) {
        // Of our own accord we ask for no limit on locked memory; an engine that may not give that gives its own.
        Err(Failure::Probe(error)) if error.concerns_limits() && launch.ulimit.is_empty() => {
            arrangement.ulimits.clear();
            say(verbosity, "the engine may not raise limits: without --ulimit memlock=-1");
            run(&launcher, &arrangement, &program, &plan, &killers, &mut listener)?
        }
        finished => finished?,
    };
    if !ways.is_empty() {
        isolate(ways, &launcher, &arrangement, &killers, &mut listener)?;
    }
    listener.finish(finished).map(Some)
}

/// What ends the containers that run.
type Killers = Arc<Mutex<Vec<Killer>>>;

/// Ctrl-C ends the containers before it ends us.
fn handle_interrupt(killers: &Killers) {
    let killers = Arc::clone(killers);
    // A handler that is there already does the same.
    let _ = ctrlc::set_handler(move || {
        for killer in &*killers.lock().unwrap_or_else(PoisonError::into_inner) {
            if let Err(error) = killer.end() {
                super::super::complain(&error);
            }
        }
        #[expect(clippy::exit, reason = "the only way to stop at once, whatever every thread is doing")]
        std::process::exit(130);
    });
}

/// Runs the container, and removes it if we are interrupted.
fn run(
    launcher: &Launcher,
    arrangement: &Arrangement,
    program: &str,
    plan: &Plan,
    killers: &Killers,
    listener: &mut Listener,
) -> Result<Finished, Failure> {
    let started = |killer| remember(killers, killer);
    let finished =
        launcher.run(&probe::name(), arrangement, program, plan.limit(), &started, &mut |line| listener.line(line))?;
    Ok(finished)
}

fn remember(killers: &Killers, killer: Killer) {
    killers.lock().unwrap_or_else(PoisonError::into_inner).push(killer);
}

/// Runs one container for each GPU, as a step that follows the others.
fn isolate(
    ways: &[Way],
    launcher: &Launcher,
    arrangement: &Arrangement,
    killers: &Killers,
    listener: &mut Listener,
) -> Result<(), Failure> {
    let count = gpu_count(&listener.recording);
    let step = IsolatedBody::STEP.to_owned();
    let Some(count) = count.filter(|count| *count > 1) else {
        let why = "it needs several GPUs, as the step gpus sees them".to_owned();
        listener.event(&Event::Skipped { step, why });
        return Ok(());
    };
    listener.event(&Event::Start { step: step.clone(), deadline: 0.0 });
    let (started, began) = (|killer| remember(killers, killer), Instant::now());
    let verbosity = listener.verbosity;
    let body = isolation::run(launcher, arrangement, count, ways, &started, &|text| say(verbosity, text))?;
    let seconds = began.elapsed().as_secs_f64();
    listener.event(&Event::Result { step, seconds, body: wire::body(&body), unclean_exit: None });
    Ok(())
}

fn gpu_count(recording: &Recording) -> Option<u32> {
    let (_, body) = recording.result::<GpusBody>()?;
    u32::try_from(body.gpus.value()?.len()).ok()
}
