//! `ncclcheck audit status`, `merge` and `trend`.

use std::io::Write;

use crate::audit::listed;
use crate::audit::merge::{merge as merged, summarize};
use crate::audit::owners::TeamMap;
use crate::audit::trend::AuditTrend;
use crate::audit::{AuditCounts, AuditError, AuditRun, AuditStatus};
use crate::cli::args::ListFormat;
use crate::cli::args::audit::{AuditViewArgs, StoreArgs};
use crate::cli::output::OutputTarget;
use crate::cli::plan::outputs;
use crate::cli::{CliError, ExitStatus, output, output_file, say};
use crate::shipped::shipped;
use judge::rules::RuleSet;
use model::document::{Document, read_text};
use model::{Environment, Limits};

/// Form of results.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AuditForm {
    Human,
    Json,
    Markdown,
    Html,
    Csv,
    Prometheus,
}

/// Names of the forms, the default first.
const FORMS: [(&str, AuditForm); 6] = [
    ("human", AuditForm::Human),
    ("json", AuditForm::Json),
    ("markdown", AuditForm::Markdown),
    ("html", AuditForm::Html),
    ("csv", AuditForm::Csv),
    ("prometheus", AuditForm::Prometheus),
];

/// Shows how far a run is.
pub(super) fn status(asked: &StoreArgs, format: ListFormat, environment: &Environment) -> Result<ExitStatus, CliError> {
    let store = super::store(asked, environment)?;
    let run = super::open(&store, asked)?;
    let status = AuditStatus::of(&run)?;
    output::stdout(|out| match format {
        ListFormat::Human => status.write(out),
        ListFormat::Json => {
            serde_json::to_writer(&mut *out, &status)?;
            writeln!(out)
        }
    })?;
    Ok(if status.is_complete() { ExitStatus::Pass } else { ExitStatus::Retry })
}

/// Merges the results of a run.
pub(super) fn merge(
    asked: &StoreArgs,
    view: &AuditViewArgs,
    environment: &Environment,
) -> Result<ExitStatus, CliError> {
    let store = super::store(asked, environment)?;
    let run = super::open(&store, asked)?;
    let teams = teams(view)?;
    let rules = RuleSet::builtin(shipped())?;
    let mut counts = AuditCounts::default();
    write(view, |form, out| {
        counts = match form {
            AuditForm::Json => merged(&run, &teams, out)?,
            AuditForm::Html => listed::page(&run, &teams, |id| rules.get(id), out)?,
            AuditForm::Csv => listed::csv(&run, &teams, out)?,
            AuditForm::Prometheus => listed::metrics(&run, &teams, |id| rules.get(id), out)?,
            form => summarize(&run, &teams, form == AuditForm::Markdown, out)?,
        };
        Ok(())
    })?;
    Ok(view.status(exit(counts)))
}

/// Compares two runs.
pub(super) fn trend(
    asked: &StoreArgs,
    since: Option<&str>,
    view: &AuditViewArgs,
    environment: &Environment,
) -> Result<ExitStatus, CliError> {
    let store = super::store(asked, environment)?;
    let after = super::open(&store, asked)?;
    let earlier = match since {
        Some(name) => Some(AuditRun::open(&store, Some(name))?),
        None => after.before()?,
    };
    let Some(before) = earlier else {
        say(&format!("nothing is compared: {store} has no finished run before {}", after.plan.run));
        return Ok(view.status(ExitStatus::Incomplete));
    };
    let since = &before.plan.run;
    if *since == after.plan.run {
        let why = format!("--since {since} is the run itself: it has nothing to compare");
        return Err(CliError::Usage(why));
    }
    let teams = teams(view)?;
    let trend = AuditTrend::of(&before, &after, &teams)?;
    write(view, |form, out| {
        match form {
            AuditForm::Json => {
                serde_json::to_writer(&mut *out, &trend).map_err(std::io::Error::from)?;
                writeln!(out)?;
            }
            AuditForm::Html => trend.write_page(out)?,
            AuditForm::Csv => trend.write_csv(out)?,
            AuditForm::Prometheus => trend.write_metrics(out)?,
            form => trend.write(form == AuditForm::Markdown, out)?,
        }
        Ok(())
    })?;
    Ok(view.status(if trend.is_worse() { ExitStatus::Fail } else { ExitStatus::Pass }))
}

impl AuditViewArgs {
    /// The exit status of results that this one describes.
    fn status(&self, of_results: ExitStatus) -> ExitStatus {
        if self.report_only { ExitStatus::Pass } else { of_results }
    }
}

/// The exit status of `check` for many images. An image without a verdict is not an error of this command.
fn exit(counts: AuditCounts) -> ExitStatus {
    if counts.fail > 0 {
        ExitStatus::Fail
    } else if counts.pass < counts.images {
        ExitStatus::Incomplete
    } else {
        ExitStatus::Pass
    }
}

/// The map of teams, or an empty one.
fn teams(view: &AuditViewArgs) -> Result<TeamMap, CliError> {
    let Some(path) = &view.owners else { return Ok(TeamMap::default()) };
    let name = path.display().to_string();
    let text = read_text(path, &Limits::default())?;
    Ok(TeamMap::parse(Document { name: &name, text: &text })?)
}

/// Writes to each output that is asked for.
fn write(
    view: &AuditViewArgs,
    mut work: impl FnMut(AuditForm, &mut dyn Write) -> Result<(), AuditError>,
) -> Result<(), CliError> {
    for (form, target) in outputs(&view.format, &FORMS)? {
        let mut failed = None;
        let all = |out: &mut dyn Write| match work(form, out) {
            Ok(()) => Ok(()),
            Err(AuditError::Output(error)) => Err(error),
            Err(error) => {
                failed = Some(error);
                Err(std::io::Error::other("stopped"))
            }
        };
        let written = match target {
            OutputTarget::Stdout => output::stdout(all),
            OutputTarget::File(path) => output_file::written(&path, all),
        };
        failed.map_or(written, |error| Err(error.into()))?;
    }
    Ok(())
}
