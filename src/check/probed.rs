//! Images that were run: the facts of a recording, alone or together with those of the image's bytes.

mod reading;

use std::thread;

use facts::Facts;
use facts::launch::Setting;
use facts::machine::Record;
use image::{Image, Request};
use model::{Fact, ImageSummary, Progress};
use probe::expect::ExpectedRun;
use probe::facts::JobGpus;
use probe::recording::Recording;
use probe::wire::StepBody as _;
use probe::wire::collectives::CollectivesBody;
use unpack::pipe::Cancel;

use crate::job::{self, Given};

pub use reading::ImageReading;

/// An image that was run, with its facts and the recording.
#[derive(Debug)]
#[non_exhaustive]
pub struct Probed {
    /// The image that was run.
    pub image: ImageSummary,
    /// Facts of the run, and of the image's bytes if they were read.
    pub facts: Facts,
    /// The same without the variables that the job sets, if it sets any and the image's bytes were read.
    pub without_launch: Option<Facts>,
    /// The recording of the run.
    pub recording: Recording,
}

/// Reason why an image could not be read and run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PreflightError<E> {
    /// The image could not be run.
    #[error(transparent)]
    Run(E),
    /// The image could not be read.
    #[error(transparent)]
    Image(#[from] image::ImageError),
    /// The request selects the images of several platforms, but an engine runs one.
    #[error("a probe runs the image of one platform")]
    Platforms,
}

impl Probed {
    /// Collects the facts of runs alone: of one, or of the tasks of a job, which may each have other GPUs.
    pub fn of_job(tasks: Vec<Recording>, expected: &ExpectedRun) -> Vec<Self> {
        let job = JobGpus::of(&tasks);
        let logged = logged(&tasks);
        let probed = |recording: Recording| {
            let mut facts = Facts::default().with_job(&logged);
            probe::facts::add(&recording, &job, &mut facts);
            expected.compare(&recording, &mut facts);
            Self { image: summary(&recording), facts, without_launch: None, recording }
        };
        tasks.into_iter().map(probed).collect()
    }

    /// Collects the facts of a run and of the image's bytes, on the host where it ran. `launch` holds the variables
    /// that the job sets.
    pub fn of_image(image: Image, launch: &[Setting], recording: Recording, expected: &ExpectedRun) -> Self {
        let logged = logged(std::slice::from_ref(&recording));
        let with_run = |facts: &Facts| {
            let mut facts = on_its_host(facts, &recording).with_job(&logged);
            probe::facts::add(&recording, &JobGpus::default(), &mut facts);
            probe::facts::compare(&recording, &reading::predicted(&image, &recording), &mut facts);
            expected.compare(&recording, &mut facts);
            facts
        };
        let facts = with_run(&super::facts(&image, launch));
        let without_launch = super::facts_without_launch(&image, launch).as_ref().map(with_run);
        Self { image: image.summary, facts, without_launch, recording }
    }
}

/// Reads an image while `run` runs it. Neither waits for the other, unless `run` asks the [`ImageReading`] what the image's
/// entrypoint does. An error of `run` cancels the reading and takes precedence over its error.
pub fn preflight<E>(
    request: &Request,
    launch: &[Setting],
    progress: &dyn Progress,
    expected: &ExpectedRun,
    run: impl FnOnce(&ImageReading<'_>) -> Result<Recording, E>,
) -> Result<Probed, PreflightError<E>> {
    let cancel = Cancel::default();
    let (images, recording) = thread::scope(|scope| {
        let reading = ImageReading::new(scope.spawn(|| image::load(request, progress, &cancel)));
        let recording = run(&reading).inspect_err(|_| cancel.cancel());
        (reading.finish(), recording)
    });
    let recording = recording.map_err(PreflightError::Run)?;
    let mut images = images?;
    match (images.pop(), images.is_empty()) {
        (Some(image), true) => Ok(Probed::of_image(image, launch, recording, expected)),
        _ => Err(PreflightError::Platforms),
    }
}

/// The facts of the job that tasks were, by what NCCL wrote in their collectives; none if it wrote nothing.
fn logged(tasks: &[Recording]) -> Facts {
    let steps = tasks.iter().filter_map(|task| task.find(CollectivesBody::STEP));
    let lines = steps.flat_map(|step| step.log.iter().filter(|line| line.run == 0));
    let text: String = lines.flat_map(|line| [&*line.line, "\n"]).collect();
    let jobs = job::read_text("the collectives", &text).unwrap_or_default();
    jobs.first().map(|job| job::facts(job, &Given::default())).unwrap_or_default()
}

/// Adds the facts about the host where the image ran: those of the probe, and those of this process if the engine runs
/// on this host and this process is in no container.
fn on_its_host(facts: &Facts, recording: &Recording) -> Facts {
    let probed = probe::facts::host(recording);
    // The launch record of an engine on another host has no namespaces.
    let is_here = recording.launch.as_ref().is_some_and(|launch| !launch.namespaces.is_empty());
    let record = is_here.then(Record::here).filter(|record| record.system.container == Fact::Absent);
    match (probed, record) {
        (Some(host), Some(record)) => facts.on_recorded(&host.or(record.host()), &record),
        (None, Some(record)) => facts.on_recorded(&record.host(), &record),
        (Some(host), None) => facts.on(&host),
        (None, None) => facts.clone(),
    }
}

/// The image that was run, as a report names it.
fn summary(recording: &Recording) -> ImageSummary {
    let launch = recording.launch.as_ref();
    let place = || recording.hello.as_ref().and_then(|hello| hello.hostname.text()).unwrap_or("here");
    ImageSummary {
        reference: launch.map_or_else(|| format!("in place on {}", place()), |launch| launch.image.clone()),
        source: launch.map_or_else(String::new, |launch| launch.engine.clone()),
        config: launch.and_then(|launch| launch.image_id.parse().ok()),
        notes: notes(recording),
        ..ImageSummary::default()
    }
}

/// Notes for the reader that do not affect the verdict.
fn notes(recording: &Recording) -> Vec<String> {
    let refused = recording.refused.first().map(|first| {
        format!("{} lines of the probe's program were not accepted, the first: {first}", recording.refused_count)
    });
    // Entrypoints greet their users there.
    let is_behind_entrypoint = recording.launch.as_ref().is_some_and(|launch| launch.entrypoint_in_use().is_some());
    let noise = recording.noise.first().filter(|_| !is_behind_entrypoint);
    let noise = noise.map(|first| format!("the image writes to standard output: {first}"));
    refused.into_iter().chain(noise).collect()
}

#[cfg(test)]
mod tests {
    use facts::key;
    use judge::Rulebook;
    use report::{Collection, Format, Report, Stored, StoredRules, Style};

    use super::*;
    use crate::check::Check;

    fn recorded(name: &str) -> Recording {
        let path = format!("{}/fixtures/probe/h100-x2/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
        Recording::replay(&std::fs::read(path).unwrap()).unwrap()
    }

    /// What each task hides from its job.
    fn hidden(names: &[&str]) -> Vec<Fact<String>> {
        let tasks = names.iter().map(|name| recorded(name)).collect();
        let probed = Probed::of_job(tasks, &ExpectedRun::default());
        let fact = |probed: &Probed| {
            let missed = probed.facts.get(key::RUN_GPU_CUDA_MISSES);
            let hidden = probed.facts.get(key::RUN_GPU_HIDDEN).clone();
            assert_eq!(missed.value().is_some(), hidden.value().is_some());
            hidden
        };
        probed.iter().map(fact).collect()
    }

    #[test]
    fn a_gpu_that_another_task_uses_is_not_hidden() {
        assert_eq!(hidden(&["task-0", "task-1"]), [Fact::Absent, Fact::Absent]);
        for alone in [&["task-0"][..], &["task-0", "task-0"]] {
            let hidden = hidden(alone);
            assert_eq!(hidden[0].value().unwrap(), "CUDA sees 1 with CUDA_VISIBLE_DEVICES=0");
            assert_eq!(hidden.first(), hidden.last());
        }
    }
    /// Renders a report, without the times of the run.
    fn shown(report: &Report<'_>, format: Format) -> String {
        let style = Style { color: false, width: 80, verbose: true, brief: false };
        let mut collection = Collection::new(&[format]);
        let mut out = Vec::new();
        collection.add(std::slice::from_ref(report));
        format.write(std::slice::from_ref(report), &style, &mut out).unwrap();
        collection.name();
        format.finish(&collection, &style, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.split_inclusive('\n').filter(|line| !line.contains("timestamp")).collect()
    }

    /// Renders JSON in another form.
    fn presented(json: &[u8], format: Format) -> String {
        let mut rules = StoredRules::default();
        rules.add(json).unwrap();
        let Stored::Report(stored) = Stored::read(json, &rules).unwrap() else { panic!("not a report") };
        shown(&stored.report(), format)
    }

    #[test]
    fn a_stored_probe_is_rendered_like_the_probe_itself() {
        let rulebook = Rulebook::builtin(crate::shipped()).unwrap();
        for name in ["quick", "full", "hang"] {
            let path = format!("{}/fixtures/probe/h200-x2/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
            let recording = Recording::replay(&std::fs::read(path).unwrap()).unwrap();
            let probed = Probed::of_job(vec![recording], &ExpectedRun::default()).remove(0);
            let assessment = Check::new(&rulebook).assess(probed.facts, None, &probed.image);
            let report = assessment.report(&probed.image, Some(&probed.recording));
            let json = shown(&report, Format::Json);
            for format in Format::ALL {
                assert_eq!(presented(json.as_bytes(), *format), shown(&report, *format), "{name} as {}", format.name());
            }
        }
    }
}
