//! Outputs of reports: standard output, and files.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use judge::Difference;
use judge::rules::RuleSet;
use model::WriteTarget;
use report::{ClusterReport, Collection, Explanation, Format, Report, Style, Unopened};

use super::CliError;
use super::args::ListFormat;
use super::output_file::{self, OutputFile};
use super::progress::Terminal;

/// Target of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum OutputTarget {
    Stdout,
    File(PathBuf),
}

impl OutputTarget {
    /// The path of a file.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdout => None,
            Self::File(path) => Some(path),
        }
    }

    /// Returns true if there can be no numbered files next to it.
    pub(super) fn is_single(&self) -> bool {
        self.path().is_none_or(|path| matches!(WriteTarget::of(path), Ok(target) if !target.is_replaced()))
    }

    /// Returns true if one would overwrite what is written to the other.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let replaced = |target: &Self| WriteTarget::of(target.path()?).ok().filter(WriteTarget::is_replaced);
        self == other || replaced(self).is_some_and(|target| replaced(other) == Some(target))
    }
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
    /// The file, or none for standard output.
    file: Option<OutputFile>,
    /// True after the first text: a blank line separates human-readable reports.
    is_used: bool,
    /// Why the format cannot have the reports on an image of the run; the first such reason.
    refused: Option<String>,
}

/// The formats of a report on the nodes of a job.
pub(super) const CLUSTER_FORMATS: &[Format] = &[Format::Human, Format::Json, Format::Html, Format::Prometheus];

impl Outputs {
    /// Opens all outputs before the work begins, so that a missing folder is reported at once.
    pub(super) fn open(targets: &[(Format, OutputTarget)]) -> Result<Self, CliError> {
        let open = |(format, target): &(Format, OutputTarget)| {
            let file = target.path().map(OutputFile::create).transpose()?;
            Ok(OpenOutput { format: *format, file, is_used: false, refused: None })
        };
        let outputs = targets.iter().map(open).collect::<Result<_, CliError>>()?;
        let formats: Vec<_> = targets.iter().map(|(format, _)| *format).collect();
        Ok(Self { open: outputs, collection: Collection::new(&formats), terminal: None })
    }

    /// Keeps progress on this terminal away while reports are written.
    pub(super) fn beside(self, terminal: &Terminal) -> Self {
        Self { terminal: Some(terminal.clone()), ..self }
    }

    /// Writes the reports on one image to each output in its format: a single report, or one per host.
    pub(super) fn report(&mut self, reports: &[Report<'_>], style: &Style) -> Result<(), CliError> {
        self.collection.add(reports);
        for output in &mut self.open {
            let refusal = reports.iter().find_map(|report| output.format.refusal(report.image));
            output.refused = output.refused.take().or(refusal);
        }
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
    pub(super) fn unopened(&mut self, image: &Unopened) -> Result<(), CliError> {
        self.collection.miss(&image.reference, &image.why);
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

    /// Writes the report on the nodes of a job to each output, which are of the formats of [`CLUSTER_FORMATS`]. No image follows.
    pub(super) fn cluster(mut self, report: &ClusterReport, style: &Style) -> Result<(), CliError> {
        self.each(style, |format, style, out| match format {
            Format::Json => report.write_json(out),
            Format::Html => report.write_html(out),
            Format::Prometheus => report.write_metrics(out),
            _ => report.write_human(style, out),
        })?;
        self.open.iter_mut().try_for_each(OpenOutput::keep)
    }

    fn each(
        &mut self,
        style: &Style,
        write: impl Fn(Format, &Style, &mut dyn Write) -> io::Result<()>,
    ) -> Result<(), CliError> {
        for output in &mut self.open {
            let style = &output.style(style);
            let format = output.format;
            if !matches!(format, Format::Human | Format::InToto) {
                output.write(|out| write(format, style, out))?;
                continue;
            }
            // Of several images only the last part may have a text, and not each image has a statement.
            let mut text = Vec::new();
            write(format, style, &mut text).map_err(|error| failure("the report", error))?;
            if text.is_empty() {
                continue;
            }
            let is_parted = std::mem::replace(&mut output.is_used, true);
            output.write(|out| {
                if is_parted && format == Format::Human {
                    writeln!(out)?;
                }
                out.write_all(&text)
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
        Style { color: style.color && self.file.is_none(), ..style.clone() }
    }

    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
        match &mut self.file {
            None => stdout(write),
            Some(file) => file.write(write),
        }
    }

    /// Gives a file its final name, unless it has no report and its format is not left empty. Later writes append to it.
    fn keep(&mut self) -> Result<(), CliError> {
        if self.format.is_left_out_if_empty() && !self.is_used {
            return Ok(());
        }
        self.file = self.file.take().map(OutputFile::keep).transpose()?;
        Ok(())
    }

    /// Writes the document of the format, if it is one document. If it holds fewer images, the rest goes to numbered
    /// files.
    fn finish(mut self, collection: &Collection, style: &Style) -> Result<(), CliError> {
        let format = self.format;
        let style = &self.style(style);
        let parts = match (&self.file, format.most_images()) {
            (Some(file), Some(most)) => {
                let parts = collection.parts(most);
                file.replaced().filter(|_| parts.len() > 1).map(|path| (path.to_owned(), parts))
            }
            _ => None,
        };
        let Some((path, parts)) = parts else {
            self.write(|out| format.finish(collection, style, out))?;
            self.keep()?;
            return self
                .refused
                .map_or(Ok(()), |why| Err(CliError::Usage(format!("--format {}: {why}", format.name()))));
        };
        for (index, part) in parts.iter().enumerate() {
            let path = numbered(&path, index + 1);
            output_file::written(&path, |out| format.finish(part, style, out))?;
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
