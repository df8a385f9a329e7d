//! `ncclcheck host`.

use std::io;
use std::path::Path;

use facts::machine::{HostTree, Record};
use model::Environment;
use report::Style;

use super::args::OutputArgs;
use super::output::OutputTarget;
use super::plan::{outputs, style};
use super::{CliError, ExitStatus, output, output_file};

/// Renders a record.
type RecordForm = fn(&Record, &Style) -> io::Result<String>;

/// Forms of a record, the default first.
const FORMS: [(&str, RecordForm); 3] = [("human", report::machine), ("json", json), ("yaml", yaml)];

/// Shows or writes the record of a machine.
pub(super) fn host(output: &OutputArgs, root: &Path, environment: &Environment) -> Result<ExitStatus, CliError> {
    if !root.is_dir() {
        return Err(CliError::Usage(format!("--root {} is not a folder", root.display())));
    }
    let outputs = outputs(&output.format, &FORMS)?;
    let record = if root == Path::new("/") { Record::here() } else { Record::collect(&HostTree::new(root)) };
    let style = style(&output.look, environment);
    let failure = |error| CliError::Output { what: "the record".to_owned(), error };
    for (form, target) in outputs {
        match target {
            OutputTarget::Stdout => {
                let text = form(&record, &style).map_err(failure)?;
                output::stdout(|out| out.write_all(text.as_bytes()))?;
            }
            OutputTarget::File(path) => {
                let style = Style { color: false, ..style.clone() };
                output_file::file(&path, &form(&record, &style).map_err(failure)?)?;
            }
        }
    }
    Ok(ExitStatus::Pass)
}

fn json(record: &Record, _: &Style) -> io::Result<String> {
    Ok(serde_json::to_string(record)? + "\n")
}

fn yaml(record: &Record, _: &Style) -> io::Result<String> {
    record.to_yaml().map_err(io::Error::other)
}
