//! `probe` and `preflight`.

mod like;
mod listener;
mod plan;
mod table;
#[cfg(test)]
mod tests;

use crate::check::Check;
use crate::check::probed::{ImageReading, PreflightError, Probed, preflight as read_and_run};
use crate::shipped;
use ::probe::{self, Interrupt, PreparedSession, ProbeError, Session, Watchdog, command_line, in_place, payload};
use image::source::AccessOptions;
use judge::Verdict;
use judge::rules::Rule;
use model::{Environment, SandboxState, cause};
use probe::arrangement::Arrangement;
use probe::engine::Launcher;
use probe::recording::Recording;
use report::{Format, Report, ReportRun, Style};

use super::args::probe::{
    ContainerArgs, InvestigationArgs, LikeArg, Preflight, ProbeArgs, ProcessArgs, RareLaunchArgs, Steps,
};
use super::output::Outputs;
use super::progress::Terminal;
use super::sandbox::STARTS_PROGRAMS;
use super::verbosity::Verbosity;
use super::{CliError, ExitStatus};
use like::RunLine;
use listener::{Listener, handle_interrupt, recorded};

/// `ncclcheck probe`.
pub(super) fn probe(asked: &ProbeArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let terminal = Terminal::new(Verbosity::of(&asked.output, environment));
    if asked.print_payload {
        return print(&payload::program());
    }
    let options = options(environment);
    if asked.clean {
        let removed = Launcher::connect(&options)?.clean()?;
        return print(&removed.iter().fold(String::new(), |text, name| text + "removed " + name + "\n"));
    }
    // Invalid arguments are reported before anything runs.
    let owners = plan::owners(&asked.judging)?;
    let expected = plan::expected(&asked.judging)?;
    let rulebook = asked.rulebook.open(environment)?.only(Rule::is_of_probe);
    let targets = super::plan::outputs(&asked.output.format, &super::plan::named(&Format::of_verdicts()))?;
    let mut outputs = Outputs::open(&targets)?;
    if asked.from.len() > 1 && terminal.verbosity() != Verbosity::Quiet {
        terminal.say("to compare the nodes of several recordings: ncclcheck cluster --from FILE...");
    }
    let recordings = if !asked.from.is_empty() {
        asked.from.iter().map(|file| recorded("--from", file)).collect::<Result<_, _>>()?
    } else if asked.in_place {
        vec![here(&asked.container.process, &asked.steps, &asked.more, &terminal)?]
    } else {
        let line = asked.like.read(environment)?;
        let named = || line.as_ref().map(RunLine::image).transpose();
        let image = asked.image.clone().map_or_else(named, |image| Ok(Some(image)))?.unwrap_or_default();
        let own = asked.container.clone();
        let container = match line {
            Some(line) => line.under(own),
            None => own,
        };
        let run = ImageRun {
            container: &container,
            steps: &asked.steps,
            more: &asked.more,
            terminal: &terminal,
            options: &options,
        };
        if container.launch.dry_run {
            return run.show(&image);
        }
        vec![run.record(&image, None)?]
    };
    let check = Check::new(&rulebook).fail_on(asked.fail_on.fail_on).fail_for(owners);
    let style = super::plan::style(&asked.output.look, environment);
    let described = ReportRun {
        command: "probe".to_owned(),
        time: super::plan::now(),
        platform: "host".to_owned(),
        sandbox: Some(SandboxState::off(STARTS_PROGRAMS)),
        ..ReportRun::default()
    };
    let mut exit = ExitStatus::Pass;
    for probed in Probed::of_job(recordings, &expected) {
        let verdict = report(&check, &probed, &described, &mut outputs, &style)?;
        exit = exit.max(asked.incomplete.status(verdict));
    }
    outputs.finish(&style)?;
    Ok(exit)
}

/// `ncclcheck preflight`: checks the image, probes it, and compares the prediction with the run.
pub(super) fn preflight(asked: Preflight, environment: &Environment) -> Result<ExitStatus, CliError> {
    let Preflight { check: mut judged, process: mut of_image, incomplete, in_place, like, launch, steps, judging } =
        asked;
    if !judged.host.is_empty() {
        let why = "preflight always judges for this host; use ncclcheck check for other hosts";
        return Err(CliError::Usage(format!("--host: {why}")));
    }
    let process = ProcessArgs { python: of_image.python.clone(), user: of_image.user.clone() };
    let own = ContainerArgs { launch, rare: RareLaunchArgs::default(), process, env: judged.common.env.clone() };
    let line = like.read(environment)?;
    let container = match line {
        Some(line) => {
            if judged.common.images.is_empty() {
                judged.common.images = vec![line.image()?];
            }
            judged.common.like = Some(line.file.clone());
            line.under(own)
        }
        None => own,
    };
    if in_place {
        judged.common.images = vec!["root:/".to_owned()];
        of_image.python.get_or_insert_with(|| PYTHON.to_owned());
    }
    let mut plan = super::plan::ImagesPlan::judge(judged, of_image, environment)?;
    let more = InvestigationArgs::default();
    if in_place {
        plan.add_variables(environment);
    }
    let owners = plan::owners(&judging)?;
    let expected = plan::expected(&judging)?;
    let options = options(environment);
    let rulebook = plan.rulebook.open(shipped())?.only(|rule| rule.is_of_image() || rule.is_of_probe());
    plan.spare_images(steps.record.as_deref())?;
    let mut outputs = Outputs::open(&plan.outputs)?;
    let terminal = Terminal::new(plan.verbosity);
    let run = ImageRun { container: &container, steps: &steps, more: &more, terminal: &terminal, options: &options };
    let check = Check::new(&rulebook).fail_on(plan.fail_on).fail_for(owners);
    let described = ReportRun {
        command: "preflight".to_owned(),
        sandbox: Some(SandboxState::off(STARTS_PROGRAMS)),
        ..plan.run.clone()
    };
    let mut exit = ExitStatus::Pass;
    for (index, request) in plan.requests.iter().enumerate() {
        if container.launch.dry_run {
            if container.launch.entrypoint.is_none() {
                super::say(UNDECIDED);
            }
            run.show(&request.text)?;
            continue;
        }
        let run = |reading: &ImageReading<'_>| {
            if in_place {
                here(&container.process, &steps, &more, &terminal)
            } else {
                run.record(&request.text, Some(reading))
            }
        };
        let progress = terminal.image(&request.text, (index + 1, plan.requests.len()));
        let settings = plan.launch.settings(&request.text);
        let probed = read_and_run(request, &settings, &progress, &expected, run);
        // The report replaces the progress.
        drop(progress);
        if !matches!(probed, Err(PreflightError::Run(_))) {
            super::notice(&request.cache);
        }
        let probed = probed.map_err(|error| match error {
            PreflightError::Run(failure) => failure,
            PreflightError::Image(error) => error.into(),
            PreflightError::Platforms => {
                let why = "a probe runs the image of one platform: omit --platform all";
                CliError::Usage(format!("{}: {why}", request.text))
            }
        })?;
        exit = exit.max(incomplete.status(report(&check, &probed, &described, &mut outputs, &plan.style)?));
    }
    outputs.finish(&plan.style)?;
    Ok(exit)
}

/// `ncclcheck watch`, which a probe starts: removes the containers of its owner when that ends.
pub(super) fn watch(owner: &str, environment: &Environment) -> Result<ExitStatus, CliError> {
    // Whoever ends the probe by a signal to all of its processes must not end this one. An error means that a handler is
    // already set.
    let _ = ctrlc::set_handler(|| {});
    probe::watch(&options(environment), owner)?;
    Ok(ExitStatus::Pass)
}

impl LikeArg {
    fn read(&self, environment: &Environment) -> Result<Option<RunLine>, CliError> {
        self.like.as_deref().map(|text| RunLine::read(text, environment)).transpose()
    }
}

/// Note on the command line of a preflight, which is printed without reading the image.
const UNDECIDED: &str = "note: the image's entrypoint is replaced in this command, but a preflight runs it if the check sees \
                         that it starts the command that it is given; --entrypoint image prints that command";

/// Python that runs if the user names none.
const PYTHON: &str = "python3";

/// Runs the program in the container of this process.
fn here(
    process: &ProcessArgs,
    steps: &Steps,
    more: &InvestigationArgs,
    terminal: &Terminal,
) -> Result<Recording, CliError> {
    let plan = plan::plan(steps, more)?;
    let python = process.python.as_deref().unwrap_or(PYTHON);
    listened(terminal, steps, |listener| in_place(python, plan, listener))
}

/// Options to run images with.
struct ImageRun<'a> {
    container: &'a ContainerArgs,
    steps: &'a Steps,
    more: &'a InvestigationArgs,
    terminal: &'a Terminal,
    options: &'a AccessOptions,
}

impl ImageRun<'_> {
    /// Runs an image and returns the recording. A preflight passes the image that it reads at the same time.
    fn record(&self, image: &str, reading: Option<&ImageReading<'_>>) -> Result<Recording, CliError> {
        let plan = plan::plan(self.steps, self.more)?;
        let ways = plan::ways(self.more, &self.container.launch)?;
        let prepared = self.open(image)?.prepare().map_err(refused)?;
        let prepared = match reading {
            Some(reading) => self.with_entrypoint(prepared, reading),
            None => prepared,
        };
        let interrupt = Interrupt::default();
        handle_interrupt(&interrupt);
        let watchdog = Watchdog::start(&["watch"]).inspect_err(|error| {
            super::say(&format!("note: if this process is killed, its container may stay: {}", cause(error)));
        });
        let recording = listened(self.terminal, self.steps, |listener| prepared.run(plan, &ways, &interrupt, listener));
        let _ = watchdog.map(Watchdog::end);
        recording
    }

    /// Decides by the image's files whether its entrypoint starts the program, if no option does.
    fn with_entrypoint(&self, prepared: PreparedSession, reading: &ImageReading<'_>) -> PreparedSession {
        if self.container.launch.entrypoint.is_some() || prepared.image_entrypoint().is_empty() {
            return prepared;
        }
        let python = self.container.process.python.as_deref().unwrap_or(PYTHON);
        match reading.entrypoint_gap(python) {
            None => prepared.through_entrypoint(),
            Some(gap) => prepared.bypassing_entrypoint(gap.why),
        }
    }

    /// Prints the command line that would run an image, without running it.
    fn show(&self, image: &str) -> Result<ExitStatus, CliError> {
        let plan = plan::plan(self.steps, self.more)?;
        plan::ways(self.more, &self.container.launch)?;
        let (line, unasked) = command_line(self.options, &self.arrangement(image)?, &plan).map_err(refused)?;
        if let Some(error) = unasked {
            super::say(&format!("note: no engine was asked, so the command requests GPUs by --gpus: {error}"));
        }
        print(&format!("ncclcheck probe --print-payload > payload.py\n{line}\n"))
    }

    fn open(&self, image: &str) -> Result<Session, CliError> {
        Ok(Session::open(self.options, self.arrangement(image)?)?)
    }

    fn arrangement(&self, image: &str) -> Result<Arrangement, CliError> {
        plan::container(image, self.container)
    }
}

/// Runs a probe with progress on standard error.
fn listened(
    terminal: &Terminal,
    steps: &Steps,
    run: impl FnOnce(&mut Listener<'_>) -> Result<Recording, ProbeError>,
) -> Result<Recording, CliError> {
    let mut listener = Listener::new(terminal, steps.record.as_deref())?;
    let recording = run(&mut listener);
    listener.finish()?;
    Ok(recording?)
}

/// Adds the name of the option that caused the error.
fn refused(error: ProbeError) -> CliError {
    match error {
        ProbeError::DeviceNodes(why) => CliError::Usage(format!("--gpu-mode devices: {why}")),
        error => error.into(),
    }
}

/// Judges a run and writes the report.
fn report(
    check: &Check<'_>,
    probed: &Probed,
    run: &ReportRun,
    outputs: &mut Outputs,
    style: &Style,
) -> Result<Verdict, CliError> {
    let assessment = check.assess(probed.facts.clone(), probed.without_launch.as_ref(), &probed.image);
    let report = Report { run: Some(run), ..assessment.report(&probed.image, Some(&probed.recording)) };
    outputs.report(&[report], style)?;
    Ok(assessment.verdict().unwrap_or(Verdict::Pass))
}

fn options(environment: &Environment) -> AccessOptions {
    AccessOptions { environment: environment.clone(), ..AccessOptions::default() }
}

fn print(text: &str) -> Result<ExitStatus, CliError> {
    super::output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(ExitStatus::Pass)
}
