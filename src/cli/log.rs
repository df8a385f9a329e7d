//! `ncclcheck log`: judges jobs by their logs.

use judge::rules::Rule;
use model::Environment;
use report::{Format, ReportRun};

use super::args::LogArgs;
use super::output::Outputs;
use super::plan::{named, now, outputs, style};
use super::sandbox::CommandNeeds;
use super::{CliError, ExitStatus};
use crate::check::Check;
use crate::job;

/// Reads the logs, and reports on each job in them.
pub(super) fn log(asked: &LogArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let rulebook = asked.rulebook.open(environment)?.only(Rule::is_of_job);
    let targets = outputs(&asked.output, &named(Format::ALL))?;
    let mut outputs = Outputs::open(&targets, None)?;
    let mut needs = CommandNeeds::new(false);
    let sandbox = needs.files(&asked.logs).outputs(targets.iter().map(|(_, target)| target)).enter(environment);
    let jobs = job::read(&asked.logs)?;
    let run = ReportRun { command: "log".to_owned(), time: now(), sandbox: Some(sandbox), ..ReportRun::default() };
    let check = Check::new(&rulebook).fail_on(asked.fail_on.fail_on);
    let style = style(&asked.output.look, environment);
    let mut exit = ExitStatus::Pass;
    for (index, job) in jobs.iter().enumerate() {
        let summary = job::summary(job, (jobs.len() > 1).then_some(index + 1));
        let assessment = check.assess(job::facts(job), None, &summary);
        let mut report = assessment.report(&summary, None);
        report.run = Some(&run);
        outputs.report(&[report], &style)?;
        exit = exit.max(assessment.verdict().map_or(ExitStatus::Pass, |verdict| asked.incomplete.status(verdict)));
    }
    outputs.finish(&style)?;
    Ok(exit)
}
