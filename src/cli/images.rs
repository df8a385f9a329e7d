//! `check`, `inspect` and `baseline`: process images in their order, several at once.

use std::thread;

use crate::Cancel;

use crate::check::{self, Assessment, Check};
use crate::document::{Document, read_text};
use crate::facts::FactInputs;
use crate::facts::explain::explain;
use crate::image::{self, Image, Request};
use crate::judge::policy::Baseline;
use crate::judge::rules::Judgement;
use crate::judge::{Rulebook, Verdict};
use crate::model::{Environment, Limits, conceal};
use crate::report::{Explanation, Report, ReportRun, Style, Unopened};
use crate::rootfs::listing;

use super::args::{self, InspectArgs};
use super::interrupt::on_interrupt;
use super::loading::{Loaded, Loading};
use super::output::Outputs;
use super::output_file;
use super::plan::{Action, ImagesPlan};
use super::progress::Terminal;
use super::verbosity::Verbosity;
use super::{CliError, ExitStatus, complain, notice, say};

/// `ncclcheck check`, also compared with another image.
pub(super) fn check(
    mut check: args::CheckArgs,
    base: Option<String>,
    environment: &Environment,
) -> Result<ExitStatus, CliError> {
    let known = if base.is_some() { KnownProblems::FirstImage } else { KnownProblems::None };
    check.common.images.splice(..0, base);
    let mut plan = ImagesPlan::check(check, environment)?;
    plan.confine(None, environment)?;
    judge(&plan, known, |_| {})
}

/// `ncclcheck inspect`.
pub(super) fn inspect(inspect: InspectArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let mut plan = ImagesPlan::inspect(inspect, environment)?;
    plan.confine(None, environment)?;
    let outputs = Outputs::open(&plan.outputs, None)?;
    let loading = loading(&plan);
    let mut outputs = outputs.beside(loading.terminal());
    let exit = thread::scope(|scope| {
        worst(loading.begin(scope), &plan.run, &mut outputs, |image, outputs| show(image, &plan, outputs))
    })?;
    outputs.finish(&plan.style)?;
    Ok(exit)
}

/// `ncclcheck baseline`.
pub(super) fn baseline(command: args::BaselineCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    match command {
        args::BaselineCommand::Write(write) => {
            let mut plan = ImagesPlan::check(write.check, environment)?;
            plan.confine(Some(&write.baseline), environment)?;
            let mut known = Baseline::default();
            let exit = judge(&plan, KnownProblems::None, |judgements| known.add(judgements))?;
            output_file::file(&write.baseline, &known.text().map_err(|error| CliError::Usage(error.to_string()))?)?;
            if plan.verbosity != Verbosity::Quiet {
                let count = if known.len() == 1 { "1 finding".to_owned() } else { format!("{} findings", known.len()) };
                say(&format!("wrote {} ({count})", write.baseline.display()));
            }
            // Recorded findings do not fail the run; an image that could not be read does.
            Ok(if exit == ExitStatus::Error { exit } else { ExitStatus::Pass })
        }
        args::BaselineCommand::Check(check) => {
            let (name, text) = (check.baseline.display().to_string(), read_text(&check.baseline, &Limits::default())?);
            let known = Baseline::read(Document { name: &name, text: &text })?;
            let mut plan = ImagesPlan::check(check.check, environment)?;
            plan.confine(None, environment)?;
            judge(&plan, KnownProblems::File(&known), |_| {})
        }
    }
}

/// Problems that do not fail an image.
#[derive(Clone, Copy)]
enum KnownProblems<'a> {
    None,
    /// Those of a baseline file.
    File(&'a Baseline),
    /// Those of the first image, which itself is not reported.
    FirstImage,
}

/// Judges each image and reports on it. Passes the judgements of each image for each host to `see`.
fn judge(
    plan: &ImagesPlan,
    known: KnownProblems<'_>,
    mut see: impl FnMut(&[Judgement<'_>]),
) -> Result<ExitStatus, CliError> {
    let outputs = Outputs::open(&plan.outputs, plan.dockerfile.as_ref())?;
    // The base of a comparison has no report.
    let reported = plan.requests.len() - usize::from(matches!(known, KnownProblems::FirstImage));
    let style = Style { brief: reported > 1 && !plan.style.verbose, ..plan.style.clone() };
    let loading = loading(plan);
    let mut outputs = outputs.beside(loading.terminal());
    let exit = thread::scope(|scope| {
        // Parsing the rules takes nearly as long as reading an image with cached layers, so both run in parallel. An
        // invalid policy cancels the images.
        let reading = scope.spawn(|| rulebook(plan).inspect_err(|_| loading.stop()));
        let mut images = loading.begin(scope);
        let first = images.next();
        let rulebook = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let check = Check::new(&rulebook).hosts(&plan.hosts).launch(&plan.launch).fail_on(plan.fail_on);
        let (of_first, rest) = match (known, first) {
            (KnownProblems::FirstImage, Some((request, loaded))) => (Some(problems(request, &loaded?, &check)), None),
            (_, first) => (None, first),
        };
        let check = check.baseline(match known {
            KnownProblems::File(baseline) => Some(baseline),
            KnownProblems::FirstImage | KnownProblems::None => of_first.as_ref(),
        });
        worst(rest.into_iter().chain(images), &plan.run, &mut outputs, |image, outputs| {
            let assessments = check.run(image);
            assessments.iter().filter_map(|assessment| assessment.judgements.as_deref()).for_each(&mut see);
            let reports: Vec<_> = assessments
                .iter()
                .map(|assessment| Report { run: Some(&plan.run), ..assessment.report(&image.summary, None) })
                .collect();
            outputs.report(&reports, &style)?;
            let verdict = Verdict::worst(assessments.iter().filter_map(Assessment::verdict));
            Ok(plan.exit.status(verdict.unwrap_or(Verdict::Pass)))
        })
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

/// Loads the rules of a check, without those about a run, which the bytes of an image cannot answer.
pub(super) fn rulebook(plan: &ImagesPlan) -> Result<Rulebook, CliError> {
    Ok(plan.rulebook.open()?.only(|rule| !rule.is_of_run()))
}

/// Shows an image as the plan requires.
fn show(image: &Image, plan: &ImagesPlan, outputs: &mut Outputs) -> Result<ExitStatus, CliError> {
    match &plan.action {
        Action::Files => outputs.text(&listing(&image.rootfs))?,
        Action::Explain(question) => {
            let world = FactInputs {
                rootfs: &image.rootfs,
                layers: &image.summary.layers,
                config: image.config.as_ref(),
                launch: &plan.launch,
            };
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
                    reference: &request.text,
                    why: &conceal(&error.to_string()),
                    run: Some(run),
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
