//! `probe` and `preflight`.

mod container;
mod expected;
mod listener;
mod plan;

use std::thread;

use crate::Cancel;
use crate::check::{self, Check};
use crate::facts::Facts;
use crate::host::{Item, Record};
use crate::image::source::AccessOptions;
use crate::judge::rules::Rule;
use crate::model::Environment;
use crate::model::ImageSummary;
use crate::probe::engine::Launcher;
use crate::probe::plan::Plan;
use crate::probe::recording::Recording;
use crate::probe::{self, local, payload};
use crate::report::Format;

use super::args::probe::{Preflight, Probe};
use super::output::Outputs;
use super::progress::Terminal;
use super::verbosity::Verbosity;
use super::{Exit, Failure};
use container::container;
use expected::Expected;
use listener::{Listener, recorded};

/// `ncclcheck probe`.
pub(super) fn probe(asked: &Probe, environment: &Environment) -> Result<Exit, Failure> {
    let verbosity = Verbosity::of(&asked.output, environment);
    if asked.print_payload {
        return print(&payload::program());
    }
    let options = options(environment);
    if asked.clean {
        let removed = Launcher::connect(&options)?.clean()?;
        return print(&removed.iter().fold(String::new(), |text, name| text + "removed " + name + "\n"));
    }
    // All that can be wrong in what was typed is told before anything runs.
    let (owners, expectations) = (plan::owners(&asked.judging)?, Expected::read(&asked.judging)?);
    let rulebook = asked.rulebook.open()?.only(Rule::is_of_run);
    let mut outputs = Outputs::open(&super::plan::outputs(&asked.output, Format::ALL)?, None)?;
    let recording = if let Some(file) = &asked.from {
        recorded("--from", file)?
    } else if asked.in_place {
        let python = asked.launch.python.as_deref().unwrap_or("python3");
        let plan = Plan { lifeline: true, ..plan::plan(&asked.steps)? };
        let mut listener = Listener::new(verbosity, asked.steps.record.as_deref())?;
        let finished = local::run(python, &payload::program(), &plan.json(), &mut |line| listener.line(line))?;
        listener.finish(finished)?
    } else {
        let image = asked.image.as_deref().unwrap_or_default();
        match container(image, &asked.launch, &asked.env, verbosity, &asked.steps, &options)? {
            Some(recording) => recording,
            None => return Ok(Exit::Pass),
        }
    };
    let mut facts = Facts::default();
    probe::facts::add(&recording, &mut facts);
    expectations.compare(&recording, &mut facts);
    let image = summary(&recording);
    let check = Check::new(&rulebook).fail_on(asked.fail_on.map(Into::into)).fail_for(owners);
    let assessment = check.assess(facts, &image);
    outputs
        .report(&[assessment.report(&image, Some(&recording))], &super::plan::style(&asked.output.look, environment))?;
    outputs.finish()?;
    Ok(assessment.verdict().map_or(Exit::Pass, Exit::from))
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
    let place = || recording.hello.as_ref().and_then(|hello| hello.hostname.text()).unwrap_or("here");
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
    let Preflight { check: judged, launch, steps, judging } = asked;
    if !judged.host.is_empty() || !judged.host_facts.is_empty() {
        let why = "a preflight judges for the host that it runs on; ncclcheck check judges for others";
        return Err(Failure::Usage(format!("--host, --host-facts: {why}")));
    }
    let env = judged.common.env.clone();
    let plan = super::plan::Plan::check(judged, environment)?;
    let (owners, expectations) = (plan::owners(&judging)?, Expected::read(&judging)?);
    let options = options(environment);
    let rulebook = plan.rulebook.open()?;
    let check = Check::new(&rulebook).fail_on(plan.fail_on).fail_for(owners);
    let mut outputs = Outputs::open(&plan.outputs, plan.dockerfile.as_ref())?;
    // Bars and the words of steps would write over each other.
    let verbosity = if plan.verbosity == Verbosity::Bars { Verbosity::Lines } else { plan.verbosity };
    let terminal = Terminal::new(verbosity);
    let mut exit = Exit::Pass;
    for request in &plan.requests {
        let run = || container(&request.text, &launch, &env, verbosity, &steps, &options);
        if launch.dry_run {
            run()?;
            continue;
        }
        // The bytes are read while the image runs: neither waits for the other.
        let cancel = Cancel::default();
        let (images, told) = thread::scope(|scope| {
            let reading = scope.spawn(|| crate::image::load(request, &terminal, &cancel));
            let told = run();
            if told.is_err() {
                cancel.cancel();
            }
            (reading.join(), told)
        });
        let Some(recording) = told? else { continue };
        super::notice(&request.cache);
        let images = images.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let [image] = &*images else {
            let why = "a probe runs one platform's image: leave out --all-platforms";
            return Err(Failure::Usage(format!("{}: {why}", request.text)));
        };
        let mut facts = on_its_host(&check::facts(image, &plan.launch), &recording);
        probe::facts::add(&recording, &mut facts);
        probe::facts::compare(&mut facts);
        expectations.compare(&recording, &mut facts);
        let assessment = check.assess(facts, &image.summary);
        outputs.report(&[assessment.report(&image.summary, Some(&recording))], &plan.style)?;
        exit = exit.max(assessment.verdict().map_or(Exit::Pass, Exit::from));
    }
    outputs.finish()?;
    Ok(exit)
}

/// The facts, with those about the host that the image ran on: what the probe saw of it, and what it says of itself where the
/// engine runs here and this program sees all of it.
fn on_its_host(facts: &Facts, recording: &Recording) -> Facts {
    let probed = probe::facts::host(recording);
    // Where the engine runs elsewhere, there are none to compare.
    let is_here = recording.launch.as_ref().is_some_and(|launch| !launch.namespaces.is_empty());
    let record = is_here.then(Record::here).filter(|record| record.system.container == Item::Absent);
    match (probed, record) {
        (Some(host), Some(record)) => facts.on_recorded(&host.or(record.host()), &record),
        (None, Some(record)) => facts.on_recorded(&record.host(), &record),
        (Some(host), None) => facts.on(&host),
        (None, None) => facts.clone(),
    }
}

fn options(environment: &Environment) -> AccessOptions {
    AccessOptions { environment: environment.clone(), ..AccessOptions::default() }
}

fn print(text: &str) -> Result<Exit, Failure> {
    super::output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Pass)
}
