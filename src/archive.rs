//! Rules, profiles and tables in an archive, which replace those of the program.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;

use judge::{PolicyInForce, Shipped};
use model::document::{Document, FileError, read_text_from};
use model::{Limits, OverLimit, Version, bytes_within, cause};

/// Folder of the tables in an archive.
const TABLES: &str = "tables/";
/// The table about the other tables.
const NEEDS: &str = "needs";

static REPLACED: OnceLock<Shipped> = OnceLock::new();

/// The table `needs`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Needs {
    /// The oldest program that judges by these rules and tables as they are meant.
    program: String,
}

/// The rules and profiles of the archive that was read, if one was.
pub(crate) fn replaced() -> Option<&'static Shipped> {
    REPLACED.get()
}

/// Reads an archive, a gzipped tar of a folder `rules`, whose rules, profiles and tables count until the process ends. `name` is its path,
/// or its reference in a registry.
///
/// # Errors
/// The archive is damaged, or made for another version of the program. Some tables may be replaced then.
pub(crate) fn replace_rules(name: &str, archive: &[u8], limits: &Limits) -> Result<(), FileError> {
    let failed = |why: String| FileError { path: name.into(), why };
    let help = "help: take rules that were made for this version of ncclcheck, or judge by its own, without --rules";
    let refused = |why: String| failed(format!("{why}\n  {help}"));
    let files = read_files(archive, limits).map_err(refused)?;
    let (tables, rules): (BTreeMap<_, _>, BTreeMap<_, _>) =
        files.into_iter().partition(|(path, _)| path.starts_with(TABLES));
    replace_tables(&tables).map_err(refused)?;
    let texts = rules.into_iter().map(|(path, text)| (&*path.leak(), &*text.leak()));
    let shipped = Shipped::of_archive(PolicyInForce::of(name.to_owned(), archive), texts.collect());
    let shipped = shipped.map_err(|error| refused(error.to_string()))?;
    REPLACED.set(shipped).map_err(|_second| failed("other rules were already read".to_owned()))
}

/// The YAML files of an archive by their paths below `rules`.
fn read_files(archive: &[u8], limits: &Limits) -> Result<BTreeMap<String, String>, String> {
    // Of a header that is wrong, the message of the crate `tar` quotes what the file has in its place.
    let damaged = |error: std::io::Error| {
        let why = cause(&error);
        format!("not a gzipped tar of a folder 'rules': {}", why.split(':').next().unwrap_or_default())
    };
    let too_large =
        || OverLimit::new("the archive is too large when unpacked", "text_file", limits.text_file).to_string();
    let unpacked =
        bytes_within(MultiGzDecoder::new(archive), limits.text_file).map_err(damaged)?.ok_or_else(too_large)?;
    let mut tar = tar::Archive::new(&*unpacked);
    let mut files = BTreeMap::new();
    for entry in tar.entries().map_err(damaged)? {
        let entry = entry.map_err(damaged)?;
        let path = entry.path().map_err(damaged)?.into_owned();
        let path = path.strip_prefix(".").unwrap_or(&path);
        let path = path.strip_prefix("rules").unwrap_or(path);
        let kind = entry.header().entry_type();
        if kind.is_dir() || kind.is_pax_global_extensions() {
            continue;
        }
        if !kind.is_file() || path.extension().is_some_and(|extension| extension == "yml") {
            return Err(format!("{}: rules are files whose names end with .yaml, and not links", path.display()));
        }
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = read_text_from(entry, path, limits).map_err(|error| error.to_string())?;
            files.insert(path.display().to_string(), text);
        }
    }
    if files.is_empty() { Err("the archive has no rules".to_owned()) } else { Ok(files) }
}

/// Replaces all tables of the program.
fn replace_tables(tables: &BTreeMap<String, String>) -> Result<(), String> {
    let own = env!("CARGO_PKG_VERSION");
    let path_of = |table: &str| format!("{TABLES}{table}.yaml");
    let document = |table: &str| {
        let (name, text) = tables.get_key_value(&path_of(table)).ok_or_else(|| format!("no {}", path_of(table)))?;
        Ok::<_, String>(Document { name, text })
    };
    let needs: Needs = document(NEEDS)?.parse().map_err(|error| error.to_string())?;
    let needed = Version::parse(&needs.program);
    if needed.is_none() || needed > Version::parse(own) {
        return Err(format!("these rules need ncclcheck {}; this is {own}", needs.program));
    }
    let mut known = BTreeSet::from([path_of(NEEDS)]);
    for table in facts::tables().into_iter().chain([
        cluster::table(),
        probe::engine::table_of_messages(),
        probe::facts::table_of_speeds(),
    ]) {
        table.replace(document(table.name())?).map_err(|error| error.to_string())?;
        known.insert(path_of(table.name()));
    }
    for (table, replace) in nccllog::tables() {
        replace(document(table)?.text).map_err(|error| format!("{}: {error}", path_of(table)))?;
        known.insert(path_of(table));
    }
    match tables.keys().find(|path| !known.contains(*path)) {
        Some(path) => Err(format!("ncclcheck {own} does not read {path}")),
        None => Ok(()),
    }
}
