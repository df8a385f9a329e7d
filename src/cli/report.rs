//! `ncclcheck report`: presents stored reports in another form.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek as _};
use std::path::{Path, PathBuf};

use ::report::{Format, Report, Stored, StoredReport, StoredRules, Style};
use judge::Verdict;
use judge::policy::Baseline;
use model::{Environment, Limits, cause, line_within, open_named, open_regular, size};

use super::args::OutputArgs;
use super::file_kind::refuse_other_kind;
use super::output::Outputs;
use super::plan::{named, outputs, style};
use super::sandbox::CommandNeeds;
use super::{CliError, ExitStatus};

/// Most bytes of a report. One with a probe of two GPUs has 0.2 MB.
const LARGEST: u64 = 64 << 20;

/// Prints the reports of files. The exit status is that of their worst verdict.
pub(super) fn report(
    files: &[PathBuf],
    output: &OutputArgs,
    environment: &Environment,
) -> Result<ExitStatus, CliError> {
    let targets = outputs(&output.format, &named(&Format::of_verdicts()))?;
    let mut needs = CommandNeeds::new(environment)?;
    needs.files(files).temporary(&Limits::default()).outputs(targets.iter().map(|(_, target)| target));
    needs.enter(environment);
    files.iter().try_for_each(|file| refuse_other_kind("report", file))?;
    let inputs = files.iter().map(|file| ReportInput::open(file)).collect::<Result<Vec<_>, _>>()?;
    let mut outputs = Outputs::open(&targets)?;
    let rules = rules(&inputs)?;
    let style = style(&output.look, environment);
    let style = Style { brief: rules.are_of_several_images() && !style.verbose, ..style };
    let mut presented = Presented { outputs: &mut outputs, style: &style, waiting: Vec::new(), exit: ExitStatus::Pass };
    for input in &inputs {
        let mut failed = None;
        input.lines(|line| match Stored::read(line, &rules) {
            Ok(stored) => {
                // A failure to write is not the line's.
                if failed.is_none() {
                    failed = presented.take(stored).err();
                }
                Ok(())
            }
            Err(error) => Err(error.to_string()),
        })?;
        failed.map_or(Ok(()), Err)?;
    }
    presented.flush()?;
    let exit = presented.exit;
    outputs.finish(&style)?;
    Ok(exit)
}

/// The problems that the reports of a file have.
pub(super) fn baseline(file: &Path) -> Result<Baseline, CliError> {
    let input = ReportInput::open(file)?;
    let rules = rules(std::slice::from_ref(&input))?;
    let mut known = Baseline::of_reports(&input.name);
    input.lines(|line| match Stored::read(line, &rules).map_err(|error| error.to_string())? {
        Stored::Report(report) => {
            known.add(&report.judgements);
            Ok(())
        }
        Stored::Unopened(image) => Err(format!("{} could not be read, so its findings are not known", image.reference)),
    })?;
    Ok(known)
}

/// The rules of reports, which come first: reports borrow them, and are not kept.
fn rules(inputs: &[ReportInput]) -> Result<StoredRules, CliError> {
    let mut rules = StoredRules::default();
    for input in inputs {
        let mut is_empty = true;
        input.lines(|line| {
            is_empty = false;
            rules.add(line).map_err(|error| error.to_string())
        })?;
        if is_empty {
            let help = "write one with --format json=FILE";
            return Err(CliError::Usage(format!("{}: it contains no report\n  help: {help}", input.name)));
        }
    }
    Ok(rules)
}

/// A file with one report on each line, which is read twice.
struct ReportInput {
    name: String,
    source: ReportSource,
}

enum ReportSource {
    Path(PathBuf),
    /// What can be read only once, in a file without a name.
    Spooled(File),
}

impl ReportInput {
    fn open(file: &Path) -> Result<Self, CliError> {
        if file.as_os_str() == "-" {
            let name = "standard input".to_owned();
            let source = spooled(io::stdin().lock()).map_err(|error| unread(&name, &error))?;
            return Ok(Self { name, source });
        }
        let name = file.display().to_string();
        let source = || {
            let opened = open_named(file)?;
            if opened.metadata()?.is_file() { Ok(ReportSource::Path(file.to_owned())) } else { spooled(opened) }
        };
        let source = source().map_err(|error| unread(&name, &error))?;
        Ok(Self { name, source })
    }

    /// Calls `see` with each line that is not empty. An error of it names the file and the line.
    fn lines(&self, mut see: impl FnMut(&[u8]) -> Result<(), String>) -> Result<(), CliError> {
        let file = match &self.source {
            ReportSource::Path(path) => open_regular(path),
            ReportSource::Spooled(file) => file.try_clone().and_then(|mut file| file.rewind().map(|()| file)),
        };
        let mut reader = BufReader::new(file.map_err(|error| unread(&self.name, &error))?);
        let wrong = |number, why| CliError::Usage(format!("{}, line {number}: {why}", self.name));
        let mut number = 0;
        while let Some(line) = line_within(&mut reader, LARGEST + 1).map_err(|error| unread(&self.name, &error))? {
            number += 1;
            if line.len() as u64 > LARGEST {
                return Err(wrong(number, format!("more than {}, which no report has", size(LARGEST))));
            }
            if line.iter().any(|byte| !byte.is_ascii_whitespace()) {
                see(&line).map_err(|why| wrong(number, why))?;
            }
        }
        Ok(())
    }
}

/// Keeps what can be read only once, such as `<(command)`.
fn spooled(reader: impl Read) -> io::Result<ReportSource> {
    let most = Limits::default().spool;
    let mut file = tempfile::tempfile()?;
    if io::copy(&mut reader.take(most + 1), &mut file)? > most {
        return Err(io::Error::other(format!("it has more than {}", size(most))));
    }
    Ok(ReportSource::Spooled(file))
}

fn unread(name: &str, error: &io::Error) -> CliError {
    CliError::Usage(format!("reading {name}: {}", cause(error)))
}

/// Presents reports, those on one image together.
struct Presented<'a> {
    outputs: &'a mut Outputs,
    style: &'a Style,
    /// The reports on one image for different hosts.
    waiting: Vec<StoredReport<'a>>,
    exit: ExitStatus,
}

impl<'a> Presented<'a> {
    fn take(&mut self, stored: Stored<'a>) -> Result<(), CliError> {
        match stored {
            Stored::Report(report) => {
                match self.waiting.first_mut() {
                    Some(first) if first.is_same_image(&report) => first.add_steps(&report),
                    _ => self.flush()?,
                }
                self.waiting.push(*report);
                Ok(())
            }
            Stored::Unopened(image) => {
                self.flush()?;
                self.exit = ExitStatus::Error;
                self.outputs.unopened(&image)
            }
        }
    }

    fn flush(&mut self) -> Result<(), CliError> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.is_empty() {
            return Ok(());
        }
        let reports: Vec<_> = waiting.iter().map(StoredReport::report).collect();
        self.outputs.report(&reports, self.style)?;
        let verdict = Verdict::worst(reports.iter().filter_map(Report::verdict)).unwrap_or(Verdict::Pass);
        self.exit = self.exit.max(verdict.into());
        Ok(())
    }
}
