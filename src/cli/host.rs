//! `ncclcheck host`.

use std::path::Path;

use crate::host::{Record, Tree};
use crate::model::Environment;
use crate::report;

use super::args::{HostFacts, RecordForm};
use super::plan::style;
use super::{Exit, Failure, output};

/// Shows or writes what a machine says of itself.
pub(super) fn host(asked: &HostFacts, environment: &Environment) -> Result<Exit, Failure> {
    if !asked.root.is_dir() {
        return Err(Failure::Usage(format!("--root {} is no folder", asked.root.display())));
    }
    let record = if asked.root == Path::new("/") { Record::here() } else { Record::collect(&Tree::new(&asked.root)) };
    let mut style = style(&asked.look, environment);
    style.color &= asked.file.is_none();
    let failure = |error| Failure::Output { what: "the record".to_owned(), error };
    let text = match asked.format {
        RecordForm::Human => report::machine(&record, &style).map_err(failure)?,
        RecordForm::Json => serde_json::to_string(&record).map_err(|error| failure(error.into()))? + "\n",
        RecordForm::Yaml => record.to_yaml().map_err(|why| failure(std::io::Error::other(why)))?,
    };
    match &asked.file {
        Some(path) => output::file(path, &text)?,
        None => output::stdout(|out| out.write_all(text.as_bytes()))?,
    }
    Ok(Exit::Pass)
}
