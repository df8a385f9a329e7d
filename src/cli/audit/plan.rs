//! `ncclcheck audit plan`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use super::sources::Sources;
use crate::audit::{AuditItem, AuditRules, AuditRun, collect, write_plan};
use crate::cli::args::audit::AuditPlanArgs;
use crate::cli::args::{JobsArg, ReadingArgs};
use crate::cli::plan::{hosts, read_lists, requests};
use crate::cli::sandbox::CommandNeeds;
use crate::cli::{CliError, ExitStatus, output, say};
use crate::shipped;
use image::survey::survey;
use image::{FailureClass, PlatformChoice, Request};
use judge::rules::Rule;
use layer::cache::ScanCache;
use model::{Environment, counted};
use unpack::pipe::Cancel;

/// Images whose documents are read at once. Registries answer most of them within milliseconds, and limit more.
const AT_ONCE: usize = 8;

/// Resolves the images and writes the plan.
pub(super) fn plan(asked: AuditPlanArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let store = super::store(&asked.store, environment)?;
    let options = asked.reading.access.options(environment)?;
    let source = asked.rulebook.read(&options)?;
    // A mistake in the hosts is an error now, and not in every worker.
    hosts(&asked.host)?;
    let rulebook = source.open(shipped())?.only(Rule::is_of_image);
    let rules =
        AuditRules::of(&rulebook, &source.identity(), asked.host.clone(), asked.fail_on.fail_on, &options.limits);
    let again = asked.again.as_deref().map(|run| AuditRun::open(&store, Some(run))).transpose()?;
    let mut items = again.as_ref().map(AuditRun::all_items).transpose()?.unwrap_or_default();
    let found = Sources::read(&asked, &options)?;
    let mut images = asked.images;
    images.extend(read_lists(&asked.list, &options.limits)?);
    images.extend(found.images.iter().cloned());
    if images.is_empty() && again.is_none() {
        let why = "nothing to audit\n  help: name images, or give --list, --repository, --registry, --pods or --engine";
        return Err(CliError::Usage(why.to_owned()));
    }
    let mut needs = CommandNeeds::new(environment)?;
    let platform = asked.reading.platform.or(Some(PlatformChoice::All));
    let reading = ReadingArgs { platform, ..asked.reading };
    let requests = requests(&images, reading, JobsArg::default(), &Arc::new(ScanCache::default()), environment)?;
    // The store starts threads, which the sandbox would not reach.
    needs.images(&requests).store(&store, environment).temporary(&options.limits);
    drop(again);
    drop(store);
    needs.enter(environment);
    let store = super::store(&asked.store, environment)?;
    let Resolved { outlines, mut unresolved, artifacts } = resolve(&requests);
    items.extend(found.items(outlines));
    found.leave_out(artifacts, &mut unresolved);
    let items = collect(items);
    for (name, why) in &unresolved {
        say(&format!("not resolved: {name}: {why}"));
    }
    if items.is_empty() {
        return Err(CliError::Usage("none of the images could be resolved".to_owned()));
    }
    let now = jiff::Timestamp::now();
    let created = now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let run = asked.store.run.unwrap_or_else(|| now.strftime("%Y%m%dT%H%M%SZ").to_string());
    let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if run.is_empty() || !run.chars().all(is_name) || run.starts_with('.') || run == "scans" {
        return Err(CliError::Usage(format!("--run {run}: expected letters, digits, '-', '_' and '.'")));
    }
    let is_whole = unresolved.is_empty();
    let plan = write_plan(&store, &run, created, (rules, source), &items, unresolved)?;
    let images = counted(plan.items, "image", "images");
    let chunks = counted(plan.chunks.len(), "chunk", "chunks");
    output::stdout(|out| writeln!(out, "run {run}: {images} in {chunks}"))?;
    Ok(if is_whole || asked.report_only { ExitStatus::Pass } else { ExitStatus::Incomplete })
}

/// What references mean.
#[derive(Default)]
struct Resolved {
    /// The images that were found, each with the time when it was made.
    outlines: Vec<(AuditItem, Option<String>)>,
    /// The references for which there is no image, with the reason.
    unresolved: BTreeMap<String, String>,
    /// Those that name something else.
    artifacts: BTreeMap<String, String>,
}

/// Reads the documents of images, several at once. An image that cannot be found does not stop the others.
fn resolve(requests: &[Request]) -> Resolved {
    let waiting = Mutex::new(requests.iter());
    let found = Mutex::new(Resolved::default());
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..AT_ONCE.min(requests.len()) {
            scope.spawn(|| {
                while let Some(request) = next() {
                    let outlines = survey(request, &Cancel::default());
                    let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
                    match outlines {
                        Ok(outlines) => {
                            found.outlines.extend(outlines.into_iter().map(|outline| {
                                let created = outline.created.clone();
                                (AuditItem::new(request, outline), created)
                            }));
                        }
                        Err(error) => {
                            let is_artifact = error.class() == FailureClass::NotAnImage;
                            let kept = if is_artifact { &mut found.artifacts } else { &mut found.unresolved };
                            kept.insert(request.text.clone(), error.to_string());
                        }
                    }
                }
            });
        }
    });
    found.into_inner().unwrap_or_else(PoisonError::into_inner)
}
