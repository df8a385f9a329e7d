//! `ncclcheck host`.

use std::path::Path;

use crate::host::{HostTree, Record};
use crate::model::Environment;
use crate::report;

use super::args::{HostArgs, RecordForm};
use super::plan::style;
use super::{CliError, ExitStatus, output};

/// Shows or writes the record of a machine.
pub(super) fn host(asked: &HostArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    if !asked.root.is_dir() {
        return Err(CliError::Usage(format!("--root {} is not a folder", asked.root.display())));
    }
    let record =
        if asked.root == Path::new("/") { Record::here() } else { Record::collect(&HostTree::new(&asked.root)) };
    let mut style = style(&asked.look, environment);
    style.color &= asked.file.is_none();
    let failure = |error| CliError::Output { what: "the record".to_owned(), error };
    let text = match asked.format {
        RecordForm::Human => report::machine(&record, &style).map_err(failure)?,
        RecordForm::Json => serde_json::to_string(&record).map_err(|error| failure(error.into()))? + "\n",
        RecordForm::Yaml => record.to_yaml().map_err(|why| failure(std::io::Error::other(why)))?,
    };
    match &asked.file {
        Some(path) => output::file(path, &text)?,
        None => output::stdout(|out| out.write_all(text.as_bytes()))?,
    }
    Ok(ExitStatus::Pass)
}
