//! `ncclcheck host`.

use std::path::Path;

use facts::machine::{HostTree, Record};
use model::Environment;
use report::Style;

use super::args::HostArgs;
use super::output::OutputTarget;
use super::plan::{OutputForm, outputs, style};
use super::{CliError, ExitStatus, output, output_file};

/// Forms of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordForm {
    Human,
    Json,
    Yaml,
}

impl OutputForm for RecordForm {
    const HUMAN: Self = Self::Human;

    fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Json => "json",
            Self::Yaml => "yaml",
        }
    }
}

/// Shows or writes the record of a machine.
pub(super) fn host(asked: &HostArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    if !asked.root.is_dir() {
        return Err(CliError::Usage(format!("--root {} is not a folder", asked.root.display())));
    }
    let outputs = outputs(&asked.output, &[RecordForm::Human, RecordForm::Json, RecordForm::Yaml])?;
    let record =
        if asked.root == Path::new("/") { Record::here() } else { Record::collect(&HostTree::new(&asked.root)) };
    let style = style(&asked.output.look, environment);
    for (form, target) in outputs {
        match target {
            OutputTarget::Stdout => {
                let text = text(&record, form, &style)?;
                output::stdout(|out| out.write_all(text.as_bytes()))?;
            }
            OutputTarget::File(path) => {
                output_file::file(&path, &text(&record, form, &Style { color: false, ..style.clone() })?)?;
            }
        }
    }
    Ok(ExitStatus::Pass)
}

/// Renders a record.
fn text(record: &Record, form: RecordForm, style: &Style) -> Result<String, CliError> {
    let failure = |error| CliError::Output { what: "the record".to_owned(), error };
    match form {
        RecordForm::Human => report::machine(record, style).map_err(failure),
        RecordForm::Json => Ok(serde_json::to_string(record).map_err(|error| failure(error.into()))? + "\n"),
        RecordForm::Yaml => record.to_yaml().map_err(|why| failure(std::io::Error::other(why))),
    }
}
