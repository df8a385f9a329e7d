//! Location of the cache of layer scans, and `ncclcheck cache`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use image::{Image, Request};
use layer::cache::{
    CacheTrust, DEFAULT_BOUND, Exported, LocalCache, ScanCache, ScanKey, Scanner, StoredScans, export, export_all,
};
use layer::store::ObjectFolder;
use model::{BlobRef, Environment, Limits, size};
use probe::arrangement::bytes;

use super::args::ListFormat;
use super::args::cache::{CacheArg, CacheCommand, CacheExportArgs};
use super::images::load;
use super::plan::requests;
use super::sandbox::CommandNeeds;
use super::verbosity::Verbosity;
use super::{CliError, ExitStatus, output, say};

/// Environment variable with `off` or the URL of the shared cache.
const PLACE: &str = "NCCLCHECK_CACHE";

/// Environment variable with the size limit of the local cache in bytes.
const SIZE: &str = "NCCLCHECK_CACHE_SIZE";

/// Environment variable with the writers whose scans are believed: `own` or `shared`.
const TRUST: &str = "NCCLCHECK_CACHE_TRUST";

impl CacheArg {
    /// Opens the caches of a run: the user's, and the shared one if configured.
    pub(super) fn open(&self, environment: &Environment) -> Result<ScanCache, CliError> {
        let place = self.cache.as_deref().or_else(|| environment.get(PLACE));
        if place == Some("off") {
            return Ok(ScanCache::default());
        }
        let shared = place.map(|place| ObjectFolder::new(place, environment)).transpose().map_err(CliError::Usage)?;
        Ok(ScanCache::new(local(environment)?, shared).trusting(trust(environment)?))
    }
}

/// Returns the writers whose scans are believed.
fn trust(environment: &Environment) -> Result<CacheTrust, CliError> {
    match environment.get(TRUST) {
        Some("own") => Ok(CacheTrust::Own),
        Some("shared") | None => Ok(CacheTrust::Shared),
        Some(text) => Err(CliError::Usage(format!("{TRUST}={text}: expected own or shared"))),
    }
}

/// Returns the folder of the user's cache; `None` if the environment names none.
pub(super) fn folder(environment: &Environment) -> Result<Option<PathBuf>, CliError> {
    Ok(local(environment)?.map(|local| local.folder().to_owned()))
}

/// Returns the user's cache; `None` if the environment names no folder for it.
fn local(environment: &Environment) -> Result<Option<LocalCache>, CliError> {
    let bound = match environment.get(SIZE) {
        Some(text) => bytes(text).map_err(|why| CliError::Usage(format!("{SIZE}={text}: {why}")))?,
        None => DEFAULT_BOUND,
    };
    // The XDG Base Directory Specification requires relative paths to be ignored.
    let absolute = |name: &str| environment.get(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let caches = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    Ok(caches.map(|caches| LocalCache::new(caches.join("ncclcheck/layers"), bound)))
}

/// `ncclcheck cache`.
pub(super) fn run(command: CacheCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    let why = "no cache folder: set XDG_CACHE_HOME or HOME to an absolute path";
    let local = local(environment)?.ok_or_else(|| CliError::Usage(why.to_owned()))?;
    match command {
        CacheCommand::Info { format } => info(format, &local, environment),
        CacheCommand::Clear { other_versions, older_than } => clear(other_versions, older_than, &local),
        CacheCommand::Export(asked) => exported(*asked, &local, environment),
    }
}

fn failed(local: &LocalCache) -> impl Fn(std::io::Error) -> CliError {
    let what = local.to_string();
    move |error| CliError::Output { what: what.clone(), error }
}

fn info(format: ListFormat, local: &LocalCache, environment: &Environment) -> Result<ExitStatus, CliError> {
    let current = Scanner::of(&Limits::default());
    let mut scanners: BTreeMap<Scanner, Exported> = BTreeMap::from([(current.clone(), Exported::default())]);
    for StoredScans { scanner, size, .. } in local.stored().map_err(failed(local))? {
        let sum = scanners.entry(scanner).or_default();
        *sum = sum.and(Exported { scans: 1, bytes: size });
    }
    let all = scanners.values().copied().fold(Exported::default(), Exported::and);
    let place = environment.get(PLACE);
    let text = match format {
        ListFormat::Human => {
            let mut text = format!("folder   {local}\nlimit    {}\n", size(local.bound()));
            let _ = writeln!(text, "holds    {}", counted(all));
            for (scanner, sum) in &scanners {
                let whose = if *scanner == current { "this version" } else { "another version or other limits" };
                let _ = writeln!(text, "         {scanner}: {}, {whose}", counted(*sum));
            }
            if let Some(place) = place {
                let what = if place == "off" { "the cache is disabled" } else { "the shared cache" };
                let _ = writeln!(text, "{PLACE}={place}: {what}");
            }
            text
        }
        ListFormat::Json => {
            let scanners: Vec<_> = scanners
                .iter()
                .map(|(scanner, sum)| {
                    serde_json::json!({
                        "scanner": scanner.to_string(), "scans": sum.scans, "bytes": sum.bytes, "current": *scanner == current,
                    })
                })
                .collect();
            let answer = serde_json::json!({
                "folder": local.folder(), "bound": local.bound(), "scans": all.scans, "bytes": all.bytes,
                "scanners": scanners, "off": place == Some("off"), "shared": place.filter(|place| *place != "off"),
            });
            format!("{answer}\n")
        }
    };
    print(&text)
}

fn clear(other_versions: bool, older_than: Option<u32>, local: &LocalCache) -> Result<ExitStatus, CliError> {
    let current = Scanner::of(&Limits::default());
    let age = older_than.map(|days| Duration::from_secs(u64::from(days) * 24 * 60 * 60));
    let before = age.map(|age| SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH));
    let unwanted = |stored: &StoredScans| {
        (!other_versions || stored.scanner != current) && before.is_none_or(|before| stored.used < before)
    };
    let removed = local.remove(unwanted).map_err(failed(local))?;
    let bytes = removed.iter().map(|stored| stored.size).sum();
    print(&format!("removed {}\n", counted(Exported { scans: removed.len(), bytes })))
}

fn exported(asked: CacheExportArgs, local: &LocalCache, environment: &Environment) -> Result<ExitStatus, CliError> {
    let to = ObjectFolder::new(&asked.place, environment).map_err(CliError::Usage)?;
    if asked.images.is_empty() {
        let limits = asked.reading.access.limits()?;
        let sum = export_all(local, &limits, &to).map_err(CliError::Usage)?;
        return print(&format!("{to}: {}\n", counted(sum)));
    }
    let cache = Arc::new(ScanCache::new(Some(LocalCache::new(local.folder(), local.bound())), None));
    let mut needs = CommandNeeds::new(environment)?;
    let requests = requests(&asked.images, asked.reading, asked.jobs, &cache, environment)?;
    needs.images(&requests).cache(&cache, environment).store(&to, environment);
    if let Some(request) = requests.first() {
        needs.temporary(&request.limits);
    }
    needs.enter(environment);
    let mut exit = ExitStatus::Pass;
    for (request, loaded) in load(&requests, Verbosity::Lines) {
        for image in loaded? {
            exit = exit.max(layers(request, &image, local, &to)?);
        }
    }
    Ok(exit)
}

/// Copies the scans of one image's layers.
fn layers(request: &Request, image: &Image, from: &LocalCache, to: &ObjectFolder) -> Result<ExitStatus, CliError> {
    let mut sum = Exported::default();
    let mut missing = 0;
    for layer in &image.summary.layers {
        let Some(digest) = layer.digest.clone() else {
            missing += 1;
            continue;
        };
        let blob = BlobRef { digest, size: layer.size };
        match export(from, &ScanKey { blob: &blob, limits: &request.limits }, to).map_err(CliError::Usage)? {
            Some(one) => sum = sum.and(one),
            None => missing += 1,
        }
    }
    print(&format!("{}: {} to {to}\n", request.text, counted(sum)))?;
    if missing > 0 {
        say(&format!("{}: {missing} of the layers have no scan that can be cached", request.text));
        return Ok(ExitStatus::Incomplete);
    }
    Ok(ExitStatus::Pass)
}

fn counted(sum: Exported) -> String {
    format!("{} {}, {}", sum.scans, if sum.scans == 1 { "scan" } else { "scans" }, size(sum.bytes))
}

fn print(text: &str) -> Result<ExitStatus, CliError> {
    let text = model::printable_lines(text);
    output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(ExitStatus::Pass)
}
