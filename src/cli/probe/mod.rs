//! `probe` and `preflight`.

pub(super) mod args;
mod plan;

use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::facts::{Facts, World, key};
use crate::model::{Fact, Limits, printable};
use crate::probe::arrangement::{Arrangement, GpuWay};
use crate::probe::engine::{Finished, Killer, Launcher};
use crate::probe::events::{self, Event};
use crate::probe::expect::{self, Expectations};
use crate::probe::isolation::{self, Way};
use crate::probe::plan::Plan;
use crate::probe::recording::{Outcome, Recording};
use crate::probe::{self, ProbeError, command, devices, local, payload};
use crate::report::{ImageSummary, Report};
use crate::rules::{self, Rule, RuleSet};
use crate::scan::Cancel;
use crate::source::{Environment, Options, read_bounded};

use super::output::Outputs;
use super::plan::Talk;
use super::progress::Terminal;
use super::{Exit, Failure};
use args::{Judging, Launch, Preflight, Probe, Steps};

/// `ncclcheck probe`.
pub(super) fn probe(asked: &Probe, environment: &Environment) -> Result<Exit, Failure> {
    let talk = Talk::of(&asked.output, environment);
    if asked.print_payload {
        return print(&payload::program());
    }
    let options = options(environment);
    let expectations = Expected::read(&asked.judging)?;
    if asked.clean {
        let removed = Launcher::connect(&options)?.clean()?;
        return print(&removed.iter().fold(String::new(), |text, name| text + "removed " + name + "\n"));
    }
    let recording = if let Some(file) = &asked.from {
        recorded("--from", file)?
    } else if asked.in_place {
        let python = asked.launch.python.as_deref().unwrap_or("python3");
        let plan = Plan { lifeline: true, ..plan::plan(&asked.steps)? };
        let mut listener = Listener::new(talk, asked.steps.record.as_deref())?;
        let finished = local::run(python, &payload::program(), &plan.json(), &mut |line| listener.line(line))?;
        listener.finish(finished)?
    } else {
        let image = asked.image.as_deref().unwrap_or_default();
        match container(image, &asked.launch, &asked.env, talk, &asked.steps, &options)? {
            Some(recording) => recording,
            None => return Ok(Exit::Pass),
        }
    };
    let mut facts = Facts::default();
    probe::facts::add(&recording, &mut facts);
    expectations.compare(&recording, &mut facts);
    let rules = RuleSet::builtin()?.only(Rule::is_of_run);
    let judgements = rules::judge(&rules, &facts);
    let image = summary(&recording);
    let report = Report {
        image: &image,
        host: None,
        facts: &facts,
        judgements: Some(&judgements),
        fail_on: asked.fail_on.into(),
        fail_for: &plan::owners(&asked.judging)?,
        probe: Some(&recording),
    };
    let mut outputs = Outputs::open(&super::plan::outputs(&asked.output)?)?;
    outputs.report(std::slice::from_ref(&report), &super::plan::style(&asked.output.look, environment))?;
    outputs.finish()?;
    Ok(report.verdict().map_or(Exit::Pass, Exit::from))
}

/// What the user expects to be told.
struct Expected {
    values: Option<Expectations>,
    baseline: Option<Recording>,
}

impl Expected {
    fn read(judging: &Judging) -> Result<Self, Failure> {
        let values = judging.expect.as_ref().map(|file| {
            let failed = |why: String| Failure::Usage(format!("--expect {}: {why}", file.display()));
            let text = std::fs::read_to_string(file).map_err(|error| failed(error.to_string()))?;
            Expectations::read(&text).map_err(failed)
        });
        let baseline = judging.baseline.as_deref().map(|file| recorded("--baseline", file));
        Ok(Self { values: values.transpose()?, baseline: baseline.transpose()? })
    }

    fn compare(&self, recording: &Recording, facts: &mut Facts) {
        if let Some(good) = &self.baseline {
            facts.insert(key::RUN_BASELINE, Fact::seen(true, []));
            expect::compare(good, recording, facts);
        }
        if let Some(values) = &self.values {
            facts.insert(key::RUN_EXPECTED, Fact::seen(true, []));
            values.compare(facts);
        }
    }
}

/// What changes nothing and is worth a word.
fn notes(recording: &Recording) -> Vec<String> {
    let odd = recording.odd.first().map(|first| {
        format!("{} lines of the program were not understood, the first of them: {first}", recording.odd.len())
    });
    let noise = recording.noise.first().map(|first| format!("the image writes to standard output: {first}"));
    odd.into_iter().chain(noise).collect()
}

/// What was run, as a report names it.
fn summary(recording: &Recording) -> ImageSummary {
    let launch = recording.launch.as_ref();
    let place = || recording.hello.as_ref().and_then(|hello| hello.get("hostname")?.as_str()).unwrap_or("here");
    ImageSummary {
        reference: launch.map_or_else(|| format!("in place on {}", place()), |launch| launch.image.clone()),
        source: launch.map_or_else(String::new, |launch| launch.engine.clone()),
        manifest: None,
        config: launch.and_then(|launch| launch.image_id.parse().ok()),
        platform: None,
        layers: Vec::new(),
        empty_steps: Vec::new(),
        notes: notes(recording),
    }
}

/// `ncclcheck preflight`: what the image's bytes say, what it does when it runs, and whether the one told the other.
pub(super) fn preflight(asked: Preflight, environment: &Environment) -> Result<Exit, Failure> {
    let Preflight { check, launch, steps, judging } = asked;
    let env = check.common.env.clone();
    let plan = super::plan::Plan::check(check, environment.clone())?;
    let (owners, expectations) = (plan::owners(&judging)?, Expected::read(&judging)?);
    let options = options(environment);
    let rules = RuleSet::builtin()?;
    let mut outputs = Outputs::open(&plan.outputs)?;
    let terminal = Terminal::new(plan.talk);
    let mut exit = Exit::Pass;
    for request in &plan.requests {
        let images = crate::pipeline::load(request, &terminal, &Cancel::default());
        terminal.clear();
        let [image] = &*images? else {
            let why = "a probe runs one platform's image: leave out --all-platforms";
            return Err(Failure::Usage(format!("{}: {why}", request.text)));
        };
        let world = World { rootfs: &image.rootfs, config: image.config.as_ref(), launch: &plan.launch };
        let facts = Facts::collect(&world);
        // The Python whose torch was looked at is the one that runs.
        let python = facts.get(key::PYTHON_PATH.name).value().map(ToString::to_string);
        let launch = Launch { python: launch.python.clone().or(python), ..launch.clone() };
        let told = container(&request.text, &launch, &env, plan.talk, &steps, &options)?;
        let Some(recording) = told else { continue };
        let mut facts = probe::facts::host(&recording).map_or_else(|| facts.clone(), |host| facts.on(&host));
        probe::facts::add(&recording, &mut facts);
        probe::facts::compare(&mut facts);
        expectations.compare(&recording, &mut facts);
        let judgements = rules::judge(&rules, &facts);
        let report = Report {
            image: &image.summary,
            host: None,
            facts: &facts,
            judgements: Some(&judgements),
            fail_on: plan.fail_on,
            fail_for: &owners,
            probe: Some(&recording),
        };
        outputs.report(std::slice::from_ref(&report), &plan.style)?;
        exit = exit.max(report.verdict().map_or(Exit::Pass, Exit::from));
    }
    outputs.finish()?;
    Ok(exit)
}

/// Runs the image in a container; `None` where only the command line was asked for.
fn container(
    image: &str,
    launch: &Launch,
    env: &[String],
    talk: Talk,
    steps: &Steps,
    options: &Options,
) -> Result<Option<Recording>, Failure> {
    let plan = plan::plan(steps)?;
    let program = payload::program();
    let ways = &plan::ways(steps, launch)?;
    let image = plan::image(image)?;
    let launcher = Launcher::connect(options)?;
    let mut arrangement = plan::arrangement(&image, launch, env, &launcher)?;
    let held = launcher.image(&image, plan::pull(launch.pull))?;
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
    let mut listener = Listener::new(talk, steps.record.as_deref())?;
    listener.launch = Some(events::Launch {
        engine: launcher.offers().engine.clone(),
        image_id: held.id,
        gpus: arrangement.way != GpuWay::None,
        command: command::docker_run(&plan::shown(&arrangement), "payload.py"),
        image,
        given: None,
    });
    let killers: Killers = Arc::default();
    handle_interrupt(&killers);
    let finished = match run(&launcher, &arrangement, &program, &plan, &killers, &mut listener) {
        // Of our own accord we ask for no limit on locked memory; an engine that may not give that gives its own.
        Err(Failure::Probe(error)) if error.concerns_limits() && launch.ulimit.is_empty() => {
            arrangement.ulimits.clear();
            say(talk, "the engine may not raise limits: without --ulimit memlock=-1");
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
            if let Err(error) = killer.remove() {
                super::complain(&error);
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
    let step = "isolated".to_owned();
    let Some(count) = count.filter(|count| *count > 1) else {
        let why = "it needs several GPUs, as the step gpus sees them".to_owned();
        listener.event(&Event::Skipped { step, why });
        return Ok(());
    };
    listener.event(&Event::Start { step: step.clone(), deadline: 0.0 });
    let (started, began) = (|killer| remember(killers, killer), Instant::now());
    let talk = listener.talk;
    let body = isolation::run(launcher, arrangement, count, ways, &started, &|text| say(talk, text))?;
    let seconds = began.elapsed().as_secs_f64();
    listener.event(&Event::Result { step, seconds, body, unclean_exit: None });
    Ok(())
}

fn gpu_count(recording: &Recording) -> Option<u32> {
    let gpus = recording.find("gpus")?.body()?.get("gpus")?.as_array()?;
    u32::try_from(gpus.len()).ok()
}

fn say(talk: Talk, text: &str) {
    if talk != Talk::Nothing {
        // Progress that nobody can see is no reason to stop.
        let _ = writeln!(io::stderr(), "{}", printable(text));
    }
}

/// Takes the program's lines as they come: into the recording, to the file, and a word about each step to the user.
struct Listener {
    recording: Recording,
    launch: Option<events::Launch>,
    talk: Talk,
    file: Option<(File, PathBuf)>,
    lines: Vec<Vec<u8>>,
}

impl Listener {
    fn new(talk: Talk, record: Option<&Path>) -> Result<Self, Failure> {
        let file = record.map(|path| File::create(path).map(|file| (file, path.to_owned()))).transpose();
        let failed =
            |error| Failure::Output { what: record.map_or(String::new(), |path| path.display().to_string()), error };
        Ok(Self { recording: Recording::default(), launch: None, talk, file: file.map_err(failed)?, lines: Vec::new() })
    }

    fn line(&mut self, line: &[u8]) {
        let before = self.done();
        self.recording.push(line);
        if self.file.is_some() {
            self.lines.push(line.to_owned());
        }
        if self.done() > before {
            self.tell();
        }
    }

    fn done(&self) -> usize {
        self.recording.steps.iter().filter(|step| step.outcome != Outcome::Open).count()
    }

    /// One line for a step that is over.
    fn tell(&self) {
        let over = self.recording.steps.iter().rev().find(|step| step.outcome != Outcome::Open);
        let Some(step) = over else { return };
        let seconds = step.seconds.map(|seconds| format!(" ({seconds:.1} s)")).unwrap_or_default();
        let text = match &step.outcome {
            Outcome::Done { .. } | Outcome::Open => format!("{}: done{seconds}", step.name),
            Outcome::Failed(failed) => format!("{}: failed{seconds}: {}", step.name, failed.message),
            Outcome::Skipped(why) => format!("{}: skipped: {why}", step.name),
        };
        say(self.talk, &text);
    }

    /// An event of our own, as if the program had told it.
    fn event(&mut self, event: &Event) {
        if let Ok(line) = events::write(event) {
            self.line(line.as_bytes());
        }
    }

    fn finish(mut self, finished: Finished) -> Result<Recording, Failure> {
        if let Some(launch) = &mut self.launch {
            launch.given = finished.given;
        }
        if let Some((file, path)) = &mut self.file {
            let first = self.launch.clone().and_then(|launch| events::write(&Event::Launch(launch)).ok());
            let lines = first.into_iter().map(String::into_bytes).chain(self.lines.iter().cloned());
            let text = lines.fold(Vec::new(), |text, line| [text, line, b"\n".to_vec()].concat());
            file.write_all(&text).map_err(|error| Failure::Output { what: path.display().to_string(), error })?;
        }
        self.recording.launch = self.launch;
        if !self.recording.ended {
            let stderr = finished.stderr.trim();
            let last: Vec<_> = stderr.lines().rev().take(5).collect();
            let said = last.into_iter().rev().collect::<Vec<_>>().join("\n    ");
            let why = finished.broken.unwrap_or_else(|| "it ended before its end".to_owned());
            let said = if said.is_empty() { said } else { format!("; its last words:\n    {said}") };
            self.recording.broken = Some(format!("{why}{said}"));
        }
        if self.recording.hello.is_none() {
            let why = self.recording.broken.unwrap_or_else(|| "it said nothing".to_owned());
            return Err(Failure::Probe(ProbeError::Engine {
                what: format!("the program did not begin in the container: {why}"),
                help: Some("it needs a Python from 3.8 on: name the image's with --python".to_owned()),
            }));
        }
        Ok(self.recording)
    }
}

/// Bytes of a recording that is read. Those of eight GPUs with every step have some two million.
const LARGEST: u64 = 256 << 20;

/// What was recorded before.
fn recorded(option: &str, file: &Path) -> Result<Recording, Failure> {
    let name = file.display().to_string();
    let read = if name == "-" {
        read_bounded(io::stdin().lock(), LARGEST, &name)
    } else {
        let opened = File::open(file).map_err(|error| Failure::Usage(format!("{option} {name}: {error}")))?;
        read_bounded(opened, LARGEST, &name)
    };
    let text = read.map_err(|error| Failure::Usage(format!("{option} {error}")))?;
    let mut recording = Recording::read(&text);
    if recording.hello.is_none() {
        let why = "there is no line of a probe in it; write one with --record, or with ncclcheck probe --in-place";
        return Err(Failure::Usage(format!("{option} {name}: {why}")));
    }
    if !recording.ended {
        recording.broken = Some("the recording ends before the probe did".to_owned());
    }
    Ok(recording)
}

fn options(environment: &Environment) -> Options {
    Options {
        cert_dir: None,
        authfile: None,
        tls_verify: true,
        limits: Limits::default(),
        environment: environment.clone(),
    }
}

fn print(text: &str) -> Result<Exit, Failure> {
    super::output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Pass)
}
