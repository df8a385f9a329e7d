//! `ncclcheck audit run`.

use std::sync::Arc;
use std::thread;
use std::time::Instant;

use crate::audit::worker::{WorkDone, Worker, WorkerStop};
use crate::audit::{AuditError, AuditItem, AuditRules, Shard};
use crate::check::{Check, read_hosts};
use crate::cli::args::audit::AuditRunArgs;
use crate::cli::args::rulebook::replace_rules;
use crate::cli::sandbox::CommandNeeds;
use crate::cli::{CliError, ExitStatus, notice, say};
use crate::shipped;
use image::{PlatformChoice, Request};
use judge::rules::Rule;
use model::{Environment, counted};

/// Environment variable with `off` or the URL of the shared cache.
const CACHE: &str = "NCCLCHECK_CACHE";

/// Works on a run.
pub(super) fn work(asked: AuditRunArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let options = asked.access.options(environment)?;
    let jobs = asked.jobs.count();
    // Workers share their scans in the store, unless they have another shared cache.
    let mut caching = asked.caching;
    if caching.cache.is_none() && environment.get(CACHE).is_none() {
        caching.cache = Some(format!("{}/scans", asked.store.store.trim_end_matches('/')));
    }
    let place = ["SLURMD_NODENAME", "HOSTNAME"].iter().find_map(|name| environment.get(name)).unwrap_or("worker");
    let name = format!("{place}-{}-{:08x}", std::process::id(), fastrand::u32(..));
    let cache = Arc::new(caching.open(environment)?.with_leases(name.clone()));
    let mut needs = CommandNeeds::new(environment)?;
    let request = |item: &AuditItem| -> Result<Request, String> {
        let parsed = Request::new(&item.reference).map_err(|error| error.to_string())?;
        let platform = item.platform.as_deref().and_then(|platform| platform.parse().ok());
        Ok(Request {
            text: item.names.first().unwrap_or(&item.reference).clone(),
            choice: platform.map_or(PlatformChoice::Host, PlatformChoice::One),
            jobs,
            limits: options.limits.clone(),
            options: options.clone(),
            cache: Arc::clone(&cache),
            ..parsed
        })
    };
    // The store says which images and policies there are. It is opened twice, because it starts threads, which a sandbox
    // would not reach.
    {
        let store = super::store(&asked.store, environment)?;
        let run = super::open(&store, &asked.store)?;
        let items = run.all_items()?;
        // A reference that is wrong is reported where it is read.
        needs.images(items.iter().filter_map(|item| request(item).ok()).collect::<Vec<_>>().iter());
        needs.files(run.plan.rulebook.folders());
    }
    let store = super::store(&asked.store, environment)?;
    needs.store(&store, environment).cache(&cache, environment).temporary(&options.limits);
    needs.enter(environment);
    let run = super::open(&store, &asked.store)?;
    let source = &run.plan.rulebook;
    source.archive.iter().try_for_each(|name| replace_rules(name, &options))?;
    let rulebook = source.open(shipped())?.only(Rule::is_of_image);
    let planned = &run.plan.rules;
    let own = AuditRules::of(&rulebook, &source.identity(), planned.hosts.clone(), planned.fail_on, &options.limits);
    planned.require(&own)?;
    let hosts = read_hosts(&planned.hosts)?;
    let check = Check::new(&rulebook).hosts(&hosts).fail_on(planned.fail_on);
    let shard = match asked.shard {
        Some(shard) => shard,
        None => Shard::of_environment(environment, asked.shards)
            .map_err(|error| CliError::Usage(format!("--shard auto: {error}")))?,
    };
    let stop = Arc::new(WorkerStop::default());
    let signalled = Arc::clone(&stop);
    // An error means that a handler is already set.
    let _ = ctrlc::set_handler(move || signalled.stop());
    let deadline = asked.deadline.map(|after| Instant::now() + after);
    let worker = |number: usize| Worker {
        run: &run,
        check: &check,
        request: &request,
        name: format!("{name}-{number}"),
        shard: Shard { index: shard.index * asked.workers.get() + number, count: shard.count * asked.workers.get() },
        lease: asked.lease,
        deadline,
        stop: &stop,
    };
    let workers: Vec<_> = (0..asked.workers.get()).map(worker).collect();
    let done = thread::scope(|scope| {
        let threads: Vec<_> = workers.iter().map(|worker| scope.spawn(|| worker.work())).collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.collect::<Result<Vec<WorkDone>, AuditError>>()
    })?;
    notice(&cache);
    Ok(report(&done))
}

/// Prints what was done, and returns the exit status.
fn report(done: &[WorkDone]) -> ExitStatus {
    let judged: usize = done.iter().map(|done| done.judged).sum();
    for (name, why) in done.iter().flat_map(|done| &done.failed) {
        say(&format!("failed, to be tried again: {name}: {why}"));
    }
    for name in done.iter().flat_map(|done| &done.differing) {
        say(&format!("{name}: another worker had a different result, which counts"));
    }
    let is_complete = done.iter().any(|done| done.is_complete);
    let rest = if is_complete { "every image of the run has a result" } else { "not finished: run it again" };
    say(&format!("judged {}; {rest}", counted(judged, "image", "images")));
    if is_complete { ExitStatus::Pass } else { ExitStatus::Retry }
}
