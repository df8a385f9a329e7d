//! Progress of a running probe, and recordings in files.

use std::io;
use std::path::Path;

use crate::cli::interrupt::on_interrupt;
use image::source::read_bounded;
use model::printable;
use model::{cause, open_named};
use probe::recording::{Recording, StepOutcome, StepRecord};
use probe::{Interrupt, Observer};

use super::super::CliError;
use super::super::file_kind::refuse_other_kind;
use super::super::output_file::OutputFile;
use super::super::progress::Terminal;
use super::super::verbosity::Verbosity;
use super::table::StepTable;

/// Writes each event to the recording, and shows the steps on standard error: in a table on a terminal, otherwise in
/// lines.
pub(super) struct Listener<'t> {
    verbosity: Verbosity,
    terminal: &'t Terminal,
    table: Option<StepTable>,
    file: Option<OutputFile>,
    /// First failure to write to the file, reported at the end.
    kept: Result<(), CliError>,
}

impl<'t> Listener<'t> {
    pub(super) fn new(terminal: &'t Terminal, record: Option<&Path>) -> Result<Self, CliError> {
        // A run that hangs and is stopped leaves what happened so far.
        let file = record.map(OutputFile::in_place).transpose()?;
        let verbosity = terminal.verbosity();
        Ok(Self { verbosity, terminal, table: None, file, kept: Ok(()) })
    }

    /// Fails if the recording is incomplete.
    pub(super) fn finish(self) -> Result<(), CliError> {
        self.kept?;
        self.file.map_or(Ok(()), |file| file.keep().map(drop))
    }
}

impl Observer for Listener<'_> {
    fn line(&mut self, line: &[u8]) {
        if let (Some(file), Ok(())) = (&mut self.file, &self.kept) {
            self.kept = file.write(|out| out.write_all(&[line, b"\n"].concat()));
        }
    }

    fn planned(&mut self, steps: &[String]) {
        self.table = (self.verbosity == Verbosity::Bars).then(|| StepTable::new(self.terminal, steps));
    }

    fn step_started(&mut self, name: &str) {
        if let Some(table) = &self.table {
            table.start(name);
        }
    }

    fn step_over(&mut self, step: &StepRecord) {
        if let Some(table) = &self.table {
            return table.end(step);
        }
        let seconds = step.seconds.map(|seconds| format!(" ({seconds:.1} s)")).unwrap_or_default();
        let text = match &step.outcome {
            StepOutcome::Done { .. } | StepOutcome::Open => format!("{}: done{seconds}", step.name),
            StepOutcome::Failed(failed) => format!("{}: failed{seconds}: {}", step.name, failed.message),
            StepOutcome::Skipped(why) => format!("{}: skipped: {why}", step.name),
        };
        self.note(&text);
    }

    fn note(&mut self, text: &str) {
        if self.verbosity != Verbosity::Quiet {
            self.terminal.say(&printable(text));
        }
    }
}

/// Makes Ctrl-C end the containers before this process.
pub(super) fn handle_interrupt(interrupt: &Interrupt) {
    let interrupt = interrupt.clone();
    on_interrupt(move || interrupt.end().iter().for_each(|error| super::super::complain(error)));
}

/// Maximum size of a recording in bytes. A recording of eight GPUs with all steps has about 2 MB.
const LARGEST: u64 = 256 << 20;

/// Reads a recording from a file or standard input.
pub(super) fn recorded(option: &str, file: &Path) -> Result<Recording, CliError> {
    refuse_other_kind(option, file)?;
    let name = file.display().to_string();
    let read = if name == "-" {
        read_bounded(io::stdin().lock(), LARGEST, &name)
    } else {
        let opened =
            open_named(file).map_err(|error| CliError::Usage(format!("{option} {name}: {}", cause(&error))))?;
        read_bounded(opened, LARGEST, &name)
    };
    let text = read.map_err(|error| CliError::Usage(format!("{option} {error}")))?;
    Recording::replay(&text).map_err(|why| CliError::Usage(format!("{option} {name}: {why}")))
}
