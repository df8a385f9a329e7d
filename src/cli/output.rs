//! Outputs of reports: standard output, and files that are written atomically.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::image::dockerfile::Dockerfile;
use crate::judge::Difference;
use crate::judge::rules::RuleSet;
use crate::report::{self, Collection, Explanation, Format, Report, Style, Unopened};

use super::CliError;
use super::args::ListFormat;
use super::interrupt::PendingFile;
use super::progress::Terminal;

/// Target of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OutputTarget {
    Stdout,
    File(PathBuf),
}

/// The open outputs of a run.
pub(super) struct Outputs {
    open: Vec<OpenOutput>,
    /// All reports, for formats that are a single document.
    collection: Collection,
    /// The terminal with the progress of other images, if any.
    terminal: Option<Terminal>,
}

struct OpenOutput {
    format: Format,
    sink: Sink,
    /// True after the first write: a blank line separates human-readable reports.
    used: bool,
}

enum Sink {
    Stdout,
    /// A temporary file next to the final one, and the path to rename it to.
    Temporary(PendingFile, PathBuf),
    /// The final file, which has the reports so far, and its path.
    Final(File, PathBuf),
}

impl Outputs {
    /// Opens all outputs before the work begins, so that a missing folder is reported at once.
    pub(super) fn open(targets: &[(Format, OutputTarget)], dockerfile: Option<&Dockerfile>) -> Result<Self, CliError> {
        let open = |(format, target): &(Format, OutputTarget)| {
            let sink = match target {
                OutputTarget::Stdout => Sink::Stdout,
                OutputTarget::File(path) => Sink::Temporary(beside(path)?, path.clone()),
            };
            Ok(OpenOutput { format: *format, sink, used: false })
        };
        let outputs = targets.iter().map(open).collect::<Result<_, CliError>>()?;
        let formats: Vec<_> = targets.iter().map(|(format, _)| *format).collect();
        Ok(Self { open: outputs, collection: Collection::new(&formats, dockerfile.cloned()), terminal: None })
    }

    /// Keeps progress on this terminal away while reports are written.
    pub(super) fn beside(self, terminal: &Terminal) -> Self {
        Self { terminal: Some(terminal.clone()), ..self }
    }

    /// Writes the reports on one image to each output in its format: a single report, or one per host.
    pub(super) fn report(&mut self, reports: &[Report<'_>], style: &Style) -> Result<(), CliError> {
        self.collection.add(reports);
        let terminal = self.terminal.clone();
        let _still = terminal.as_ref().map(Terminal::close);
        self.each(style, |format, style, out| format.write(reports, style, out))?;
        // The reports so far are kept if the run is stopped.
        self.open.iter_mut().filter(|output| output.format.is_by_image()).try_for_each(OpenOutput::keep)
    }

    /// Writes the difference between two images to each output in its format.
    pub(super) fn difference(&mut self, difference: &Difference<'_>, style: &Style) -> Result<(), CliError> {
        self.each(style, |format, style, out| report::write_difference(difference, format, style, out))
    }

    /// Writes or records that an image could not be opened.
    pub(super) fn unopened(&mut self, image: &Unopened<'_>) -> Result<(), CliError> {
        self.collection.miss(image.reference, image.why);
        for output in self.open.iter_mut().filter(|output| output.format.is_by_image()) {
            let format = output.format;
            output.write(|out| format.write_unopened(image, out))?;
            output.keep()?;
        }
        Ok(())
    }

    /// Writes an explanation to each output in its format.
    pub(super) fn explanation(&mut self, explanation: &Explanation<'_>, style: &Style) -> Result<(), CliError> {
        self.each(style, |format, style, out| explanation.write(format, style, out))
    }

    fn each(
        &mut self,
        style: &Style,
        write: impl Fn(Format, &Style, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        for output in &mut self.open {
            let style = &output.style(style);
            let parted = output.used && output.format == Format::Human;
            let format = output.format;
            output.write(|out| {
                if parted {
                    writeln!(out)?;
                }
                write(format, style, out)
            })?;
        }
        Ok(())
    }

    /// Writes a text to each output.
    pub(super) fn text(&mut self, text: &str) -> Result<(), CliError> {
        self.open.iter_mut().try_for_each(|output| output.write(|out| out.write_all(text.as_bytes())))
    }

    /// Writes the documents and renames the files to their final paths. Returns the first failure after all outputs.
    pub(super) fn finish(self, style: &Style) -> Result<(), CliError> {
        let Self { open, mut collection, .. } = self;
        collection.name();
        let finished: Vec<_> = open.into_iter().map(|output| output.finish(&collection, style)).collect();
        finished.into_iter().collect()
    }
}

impl OpenOutput {
    /// The style of this output: files have no colours.
    fn style(&self, style: &Style) -> Style {
        Style { color: style.color && matches!(self.sink, Sink::Stdout), ..style.clone() }
    }

    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
        self.used = true;
        let (file, path): (&mut dyn Write, _) = match &mut self.sink {
            Sink::Stdout => return stdout(write),
            Sink::Temporary(file, path) => (file.file(), path),
            Sink::Final(file, path) => (file, path),
        };
        let mut buffered = io::BufWriter::new(file);
        let written = write(&mut buffered).and_then(|()| buffered.flush());
        written.map_err(|error| failure(&path.display().to_string(), error))
    }

    /// Renames the file to its final path. Later writes append to it.
    fn keep(&mut self) -> Result<(), CliError> {
        self.sink = match std::mem::replace(&mut self.sink, Sink::Stdout) {
            Sink::Temporary(file, path) => {
                let file = file.persist(&path).map_err(|error| failure(&path.display().to_string(), error))?;
                Sink::Final(file, path)
            }
            sink => sink,
        };
        Ok(())
    }

    /// Writes the document of the format, if it is one document. If it holds fewer images, the rest goes to numbered
    /// files.
    fn finish(mut self, collection: &Collection, style: &Style) -> Result<(), CliError> {
        let (format, style) = (self.format, &self.style(style));
        let parts = match (&self.sink, format.most_images()) {
            (Sink::Temporary(_, path), Some(most)) => {
                let parts = collection.parts(most);
                (parts.len() > 1).then(|| (parts, path.clone()))
            }
            _ => None,
        };
        let Some((parts, path)) = parts else {
            self.write(|out| format.finish(collection, style, out))?;
            return self.keep();
        };
        for (index, part) in parts.iter().enumerate() {
            let path = numbered(&path, index + 1);
            let mut output = Self { format, sink: Sink::Temporary(beside(&path)?, path), used: false };
            output.write(|out| format.finish(part, style, out))?;
            output.keep()?;
        }
        Ok(())
    }
}

/// The path with a number before its extension: `a-1.sarif`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Creates a temporary file in the folder of the final one.
fn beside(path: &Path) -> Result<PendingFile, CliError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let file = PendingFile::create(tempfile::Builder::new().prefix(".ncclcheck-"), folder);
    file.map_err(|error| {
        // The message of the library names the temporary file.
        let error = match error.kind() {
            io::ErrorKind::NotFound => io::Error::new(error.kind(), format!("there is no folder {}", folder.display())),
            _ => error,
        };
        failure(&path.display().to_string(), error)
    })
}

/// Writes a file atomically.
pub(super) fn file(path: &Path, text: &str) -> Result<(), CliError> {
    written(path, |out| out.write_all(text.as_bytes()))
}

/// Writes a file atomically, piece by piece.
pub(super) fn written(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let failed = |error| failure(&path.display().to_string(), error);
    let mut file = beside(path)?;
    let mut buffered = io::BufWriter::new(file.file());
    write(&mut buffered).and_then(|()| buffered.flush()).map_err(failed)?;
    drop(buffered);
    file.persist(path).map(drop).map_err(failed)
}

/// Writes to standard output. A reader that closes the pipe early (EPIPE) is not an error.
pub(super) fn stdout(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|error| failure("standard output", error)),
    }
}

fn failure(what: &str, error: io::Error) -> CliError {
    CliError::Output { what: what.to_owned(), error }
}

/// Prints the list of rules.
pub(super) fn rules(rules: &RuleSet, form: ListFormat, style: &Style) -> Result<(), CliError> {
    stdout(|out| match form {
        ListFormat::Human => {
            let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
            let bold = if style.color { anstyle::Style::new().bold() } else { anstyle::Style::new() };
            for rule in rules.iter() {
                writeln!(out, "{bold}{:width$}{bold:#}  {:7}  {}", rule.id, rule.severity.name(), rule.title)?;
            }
            Ok(())
        }
        ListFormat::Json => {
            let list: Vec<_> = rules
                .iter()
                .map(|rule| {
                    serde_json::json!({
                        "rule": rule.id, "title": rule.title, "severity": rule.severity, "since": rule.since,
                        "why": rule.why, "fix": rule.fix, "references": rule.references,
                    })
                })
                .collect();
            serde_json::to_writer(&mut *out, &list)?;
            writeln!(out)
        }
    })
}
