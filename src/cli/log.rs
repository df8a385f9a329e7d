//! `ncclcheck log`: judges jobs by their logs.

use image::source::AccessOptions;
use judge::Rulebook;
use judge::rules::Rule;
use model::{Environment, FailOn};
use nccllog::Job;
use report::{Format, ReportRun, Style};

use super::args::LogArgs;
use super::args::verdict::IncompleteArg;
use super::output::{OutputTarget, Outputs};
use super::plan::{hosts, launch, named, now, outputs, style};
use super::sandbox::CommandNeeds;
use super::{CliError, ExitStatus};
use crate::check::Check;
use crate::job::{self, Given};
use crate::shipped;

/// Reads the logs, and reports on each job in them.
pub(super) fn log(asked: &LogArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let options = AccessOptions { environment: environment.clone(), ..AccessOptions::default() };
    let source = asked.rulebook.read(&options)?;
    let targets = outputs(&asked.output.format, &named(&Format::of_verdicts()))?;
    let hosts = hosts(&asked.host)?;
    if let Some(described) = hosts.iter().find(|host| host.record().is_none()) {
        let why = "is a description; a job is compared with the record that `ncclcheck host --format json` writes on its host";
        return Err(CliError::Usage(format!("--host {}: {why}", described.host)));
    }
    let settings = launch(&asked.launch, &[], &options.limits)?.all_settings();
    let mut needs = CommandNeeds::new(environment)?;
    needs.files(&asked.logs).files(source.folders()).outputs(targets.iter().map(|(_, target)| target));
    let sandbox = needs.enter(environment);
    let rulebook = source.open(shipped())?.only(Rule::is_of_job);
    let outputs = Outputs::open(&targets)?;
    let jobs = job::read(&asked.logs)?;
    let run = ReportRun { command: "log".to_owned(), time: now(), sandbox: Some(sandbox), ..ReportRun::default() };
    let given = Given { hosts: &hosts, launch: &settings };
    let judged =
        JudgedLogs { rulebook: &rulebook, given, fail_on: asked.fail_on.fail_on, incomplete: asked.incomplete };
    judged.report(&jobs, &run, outputs, &style(&asked.output.look, environment))
}

/// Prints the reports on jobs.
pub(super) fn print(jobs: &[Job], rulebook: Rulebook, style: &Style) -> Result<ExitStatus, CliError> {
    let rulebook = rulebook.only(Rule::is_of_job);
    let given = Given::default();
    let judged = JudgedLogs { rulebook: &rulebook, given, fail_on: None, incomplete: IncompleteArg::default() };
    let run = ReportRun { command: "explain".to_owned(), time: now(), ..ReportRun::default() };
    judged.report(jobs, &run, Outputs::open(&[(Format::Human, OutputTarget::Stdout)])?, style)
}

/// How jobs are judged.
struct JudgedLogs<'r> {
    rulebook: &'r Rulebook,
    given: Given<'r>,
    fail_on: Option<FailOn>,
    incomplete: IncompleteArg,
}

impl JudgedLogs<'_> {
    fn report(
        &self,
        jobs: &[Job],
        run: &ReportRun,
        mut outputs: Outputs,
        style: &Style,
    ) -> Result<ExitStatus, CliError> {
        let check = Check::new(self.rulebook).fail_on(self.fail_on);
        let mut exit = ExitStatus::Pass;
        for (index, job) in jobs.iter().enumerate() {
            let summary = job::summary(job, (jobs.len() > 1).then_some(index + 1));
            let assessment = check.assess(job::facts(job, &self.given), None, &summary);
            let mut report = assessment.report(&summary, None);
            report.run = Some(run);
            outputs.report(&[report], style)?;
            exit = exit.max(assessment.verdict().map_or(ExitStatus::Pass, |verdict| self.incomplete.status(verdict)));
        }
        outputs.finish(style)?;
        Ok(exit)
    }
}
