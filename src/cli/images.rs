//! `check` and `inspect`: process images in their order, several at once.

use std::io::{self, Read as _};
use std::path::Path;
use std::thread;

use unpack::pipe::Cancel;

use crate::check::{self, Assessment, Check};
use crate::job::{self, Given};
use crate::shipped;
use ::report::{Explanation, Report, ReportRun, Style, Unopened};
use facts::explain::explain;
use facts::{FactInputs, Facts};
use image::{Image, Request};
use judge::policy::Baseline;
use judge::rules::Rule;
use judge::{Rulebook, Verdict};
use model::{Environment, ImageSummary, cause, conceal, open_named};
use rootfs::listing;

use super::args::{self, InspectArgs};
use super::file_kind::refuse_other_kind;
use super::interrupt::on_interrupt;
use super::loading::{Loaded, Loading};
use super::output::Outputs;
use super::plan::{Action, ImagesPlan};
use super::progress::Terminal;
use super::report;
use super::verbosity::Verbosity;
use super::{CliError, ExitStatus, complain, notice};

/// `ncclcheck check`.
pub(super) fn check(mut command: args::CheckCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    let named = command.baseline.take();
    let stored = named.as_deref().map(stored_report).transpose()?.flatten().map(report::baseline).transpose()?;
    let known = match &stored {
        Some(stored) => KnownProblems::Stored(stored),
        None if named.is_some() => KnownProblems::FirstImage,
        None => KnownProblems::None,
    };
    if stored.is_none() {
        command.check.common.images.splice(..0, named);
    }
    let mut plan = ImagesPlan::check(command, environment)?;
    plan.confine(None, environment)?;
    let jobs = if plan.logs.is_empty() { Vec::new() } else { job::read(&plan.logs)? };
    let settings = plan.launch.all_settings();
    let given = Given { hosts: &plan.hosts, launch: &settings };
    let job = jobs.last().map(|job| job::facts(job, &given));
    judge(&plan, known, job.as_ref())
}

/// The path of a file with JSON, which `--baseline` takes for reports and not for an image.
fn stored_report(text: &str) -> Result<Option<&Path>, CliError> {
    let path = Path::new(text);
    refuse_other_kind("--baseline", path)?;
    if !path.is_file() {
        return Ok(None);
    }
    let mut first = Vec::new();
    let read = open_named(path).and_then(|file| io::copy(&mut file.take(1), &mut first));
    read.map_err(|error| CliError::Usage(format!("--baseline {text}: {}", cause(&error))))?;
    Ok((first == b"{").then_some(path))
}

/// `ncclcheck inspect`.
pub(super) fn inspect(inspect: InspectArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let mut plan = ImagesPlan::inspect(inspect, environment)?;
    plan.confine(None, environment)?;
    let outputs = Outputs::open(&plan.outputs)?;
    let loading = loading(&plan);
    let mut outputs = outputs.beside(loading.terminal());
    let exit = thread::scope(|scope| {
        worst(loading.begin(scope), &plan.run, &mut outputs, |image, outputs| show(image, &plan, outputs))
    })?;
    outputs.finish(&plan.style)?;
    Ok(exit)
}

/// Problems that do not fail an image.
#[derive(Clone, Copy)]
enum KnownProblems<'a> {
    None,
    /// Those of stored reports.
    Stored(&'a Baseline),
    /// Those of the first image, which itself is not reported.
    FirstImage,
}

/// Judges each image and reports on it.
fn judge(plan: &ImagesPlan, known: KnownProblems<'_>, job: Option<&Facts>) -> Result<ExitStatus, CliError> {
    let outputs = Outputs::open(&plan.outputs)?;
    // The base of a comparison has no report.
    let reported = plan.requests.len() - usize::from(matches!(known, KnownProblems::FirstImage));
    let style = Style { brief: reported > 1 && !plan.style.verbose, ..plan.style.clone() };
    let loading = loading(plan);
    let mut outputs = outputs.beside(loading.terminal());
    let exit = thread::scope(|scope| {
        // Rules are read while images are loaded. An invalid policy cancels the images.
        let reading = scope.spawn(|| rulebook(plan).inspect_err(|_| loading.stop()));
        let mut images = loading.begin(scope);
        let first = images.next();
        let rulebook = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let check = Check::new(&rulebook).hosts(&plan.hosts).launch(&plan.launch).job(job).fail_on(plan.fail_on);
        let (of_first, rest) = match (known, first) {
            (KnownProblems::FirstImage, Some((request, loaded))) => (Some(problems(request, &loaded?, &check)), None),
            (_, first) => (None, first),
        };
        let check = check.baseline(match known {
            KnownProblems::Stored(baseline) => Some(baseline),
            KnownProblems::FirstImage | KnownProblems::None => of_first.as_ref(),
        });
        let report = |summary: &ImageSummary, assessments: &[Assessment<'_>], outputs: &mut Outputs| {
            let report = |assessment| Report {
                run: Some(&plan.run),
                dockerfile: plan.dockerfile.as_ref(),
                ..Assessment::report(assessment, summary, None)
            };
            outputs.report(&assessments.iter().map(report).collect::<Vec<_>>(), &style)?;
            let verdict = Verdict::worst(assessments.iter().filter_map(Assessment::verdict));
            Ok::<_, CliError>(plan.exit.status(verdict.unwrap_or(Verdict::Pass)))
        };
        // Of an image that only the launch names, the launch can be judged without it.
        let mut unread = None;
        let images = rest.into_iter().chain(images).filter(|(_, loaded)| match loaded {
            Err(error) if plan.takes_images => {
                complain(error);
                unread = Some(ExitStatus::Incomplete);
                false
            }
            _ => true,
        });
        let read = worst(images, &plan.run, &mut outputs, |image, outputs| {
            report(&image.summary, &check.run(image), outputs)
        })?;
        if plan.requests.is_empty() && plan.takes_images {
            unread = Some(ExitStatus::Pass);
        }
        let Some(unread) = unread else { return Ok::<_, CliError>(read) };
        let rulebook = plan.rulebook.open(shipped())?.only(Rule::is_of_launch);
        let check = Check::new(&rulebook).hosts(&plan.hosts).launch(&plan.launch).fail_on(plan.fail_on);
        let mut exit = read.max(unread);
        for (summary, assessments) in check.run_launch() {
            exit = exit.max(report(&summary, &assessments, &mut outputs)?);
        }
        Ok(exit)
    })?;
    outputs.finish(&style)?;
    Ok(exit)
}

/// The problems of an image that others are compared with.
fn problems(request: &Request, images: &[Image], check: &Check<'_>) -> Baseline {
    let mut known = Baseline::of_image(&request.text);
    for assessment in images.iter().flat_map(|image| check.run(image)) {
        known.add(assessment.judgements.as_deref().unwrap_or_default());
    }
    known
}

/// Loads the rules of a check, without those about a run or a job that has no log, which the bytes of an image cannot answer.
pub(super) fn rulebook(plan: &ImagesPlan) -> Result<Rulebook, CliError> {
    let has_log = !plan.logs.is_empty();
    Ok(plan.rulebook.open(shipped())?.only(|rule| rule.is_of_image() || has_log && rule.is_of_job()))
}

/// Shows an image as the plan requires.
fn show(image: &Image, plan: &ImagesPlan, outputs: &mut Outputs) -> Result<ExitStatus, CliError> {
    match &plan.action {
        Action::Files => outputs.text(&listing(&image.rootfs))?,
        Action::Explain(question) => {
            let settings = plan.launch.settings(&image.summary.reference);
            let world = FactInputs { rootfs: &image.rootfs, config: image.config.as_ref(), launch: &settings };
            let accounts = explain(&world, question);
            outputs.explanation(&Explanation { image: &image.summary, accounts: &accounts }, &plan.style)?;
            return Ok(if accounts.is_ok() { ExitStatus::Pass } else { ExitStatus::Incomplete });
        }
        Action::Check | Action::Inspect => {
            let inspected = check::inspect(image, &plan.launch);
            let report = Report { run: Some(&plan.run), ..inspected.report(&image.summary, None) };
            outputs.report(&[report], &plan.style)?;
        }
    }
    Ok(ExitStatus::Pass)
}

/// Processes every image and returns the worst exit status. An image that cannot be opened does not stop the others.
fn worst<'a>(
    images: impl Iterator<Item = (&'a Request, Loaded)>,
    run: &ReportRun,
    outputs: &mut Outputs,
    mut with: impl FnMut(&Image, &mut Outputs) -> Result<ExitStatus, CliError>,
) -> Result<ExitStatus, CliError> {
    let mut exit = ExitStatus::Pass;
    for (request, loaded) in images {
        match loaded {
            Ok(images) => {
                for image in &images {
                    exit = exit.max(with(image, outputs)?);
                }
            }
            Err(error) => {
                complain(&error);
                outputs.unopened(&Unopened {
                    reference: request.text.clone(),
                    why: conceal(&error.to_string()).into_owned(),
                    run: Some(run.clone()),
                })?;
                exit = ExitStatus::Error;
            }
        }
    }
    Ok(exit)
}

/// Prepares to load the images of a plan, several at once.
fn loading(plan: &ImagesPlan) -> Loading<'_> {
    Loading::new(&plan.requests, plan.at_once, terminal(plan.verbosity))
}

/// Loads images one after another.
pub(super) fn load(requests: &[Request], verbosity: Verbosity) -> impl Iterator<Item = (&Request, Loaded)> {
    let terminal = terminal(verbosity);
    requests.iter().enumerate().map(move |(index, request)| {
        let progress = terminal.image(&request.text, (index + 1, requests.len()));
        let loaded = image::load(request, &progress, &Cancel::default());
        drop(progress);
        terminal.clear();
        notice(&request.cache);
        (request, loaded)
    })
}

/// A terminal whose progress is cleared when the run is interrupted.
fn terminal(verbosity: Verbosity) -> Terminal {
    let terminal = Terminal::new(verbosity);
    let bars = terminal.clone();
    // No other thread draws until the process ends.
    on_interrupt(move || std::mem::forget(bars.close()));
    terminal
}
