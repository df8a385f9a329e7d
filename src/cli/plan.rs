//! Resolves arguments to a plan without defaults or choices.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::io::{self, IsTerminal as _};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use crate::check::{HostDescription, read_hosts};
use facts::explain::Question;
use facts::is_shown;
use facts::launch::{self, Assignment, LaunchFile, Launched, Setting};
use image::dockerfile::Dockerfile;
use image::reference::{Reference, transport_of};
use image::source::AccessOptions;
use image::{PlatformChoice, RegistryContacts, Request};
use judge::{RulebookSource, policy};
use layer::cache::ScanCache;
use model::Environment;
use model::document::{FileError, read_text, read_text_from};
use model::{FailOn, ImagePath, Limits, StartChoice, StartCommand, StartUser, cause, conceal, counted, suggestion};
use report::{Format, ReportRun, Style};

use super::CliError;
use super::advice::{self, LAUNCH_ENDINGS, is_stdin};
use super::args::verdict::IncompleteArg;
use super::args::{
    AccessArgs, CheckArgs, CheckCommand, ImageArgs, ImageProcessArgs, InspectArgs, JobsArg, ReadingArgs, StyleArgs,
};
use super::file_kind::{LIST_FORM, refuse_other_kind};
use super::output::OutputTarget;
use super::verbosity::Verbosity;

/// Maximum number of variables in a launch file. Linux gives a process at most 6 MiB of arguments and environment.
const MOST_VARIABLES: usize = 1 << 16;

/// Maximum number of notes that are shown of a launch file.
const LAUNCH_NOTES: usize = 8;

/// Columns if the terminal's width is unknown, as in a CI log.
const WIDTH: usize = 80;

/// Maximum images that are loaded at once: each holds a merged file system.
const MOST_IMAGES: usize = 8;

/// Plan of a run over images.
#[derive(Debug)]
pub(super) struct ImagesPlan {
    pub(super) action: Action,
    pub(super) requests: Vec<Request>,
    /// Number of images to load at once.
    pub(super) at_once: NonZeroUsize,
    /// What launch files and options set and start.
    pub(super) launch: Launched,
    /// True if the images are those that launch files name.
    pub(super) takes_images: bool,
    pub(super) outputs: Vec<(Format, OutputTarget)>,
    pub(super) style: Style,
    /// Value of `--fail-on`, if given.
    pub(super) fail_on: Option<FailOn>,
    /// What `--incomplete` makes of a verdict.
    pub(super) exit: IncompleteArg,
    pub(super) rulebook: RulebookSource,
    pub(super) verbosity: Verbosity,
    pub(super) hosts: Vec<HostDescription>,
    /// Logs of a job that ran the image.
    pub(super) logs: Vec<PathBuf>,
    /// Dockerfile of the image, to annotate with findings.
    pub(super) dockerfile: Option<Dockerfile>,
    /// What was asked for, for reports.
    pub(super) run: ReportRun,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Check,
    Inspect,
    Files,
    Explain(Question),
}

impl ImagesPlan {
    /// Plans `ncclcheck check`.
    pub(super) fn check(command: CheckCommand, environment: &Environment) -> Result<Self, CliError> {
        let mut judged = command.check;
        let lists = &command.list.list;
        if !judged.common.images.is_empty() || !lists.is_empty() {
            judged.common.images = listed(judged.common.images, lists, &judged.common.reading.access.limits()?)?;
        }
        let dockerfile = command.dockerfile.as_deref().map(dockerfile).transpose()?;
        let commented = dockerfile.as_ref().filter(|_| judged.rulebook.takes_found());
        let accepted = commented.and_then(|file| policy::of_dockerfile(file.path(), file.text()));
        let mut plan = Self::judge(judged, command.process, environment)?;
        plan.rulebook.add(accepted.into_iter().chain(policy::of_options(&command.only, &command.ignore)));
        Ok(Self { exit: command.incomplete, logs: command.log, dockerfile, ..plan })
    }

    /// Plans to judge images.
    pub(super) fn judge(
        judged: CheckArgs,
        process: ImageProcessArgs,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        // First, because hosts and launch files are read by its tables.
        let rulebook = judged.rulebook.read(&judged.common.reading.access.options(environment)?)?;
        let hosts = hosts(&judged.host)?;
        let plan = Self::new(Action::Check, judged.common, process, environment)?;
        Ok(Self { hosts, fail_on: judged.fail_on.fail_on, rulebook, ..plan })
    }

    /// Adds the variables of this process, for an image that is its own root file system. Those that the job sets take
    /// precedence.
    pub(super) fn add_variables(&mut self, environment: &Environment) {
        let variables = || environment.with_prefix("").map(|(name, value)| (name.to_owned(), value.to_owned()));
        for request in &mut self.requests {
            let own = std::mem::take(&mut request.environment);
            request.environment = variables().chain(own).collect();
        }
        let shown = variables().filter(|(name, _)| is_shown(name));
        let settings = shown.map(|(name, value)| {
            Assignment { name, value: Some(value), line: None }.in_launch("the environment of this process")
        });
        self.launch.files.insert(0, LaunchFile { settings: settings.collect(), ..LaunchFile::default() });
    }

    pub(super) fn inspect(inspect: InspectArgs, environment: &Environment) -> Result<Self, CliError> {
        let path = |text: Option<String>| text.map(|text| ImagePath::from(text.as_str()));
        let action = if inspect.files {
            Action::Files
        } else if inspect.explain.is_empty() {
            Action::Inspect
        } else {
            let program = path(inspect.program);
            Action::Explain(Question { names: inspect.explain, program, caller: path(inspect.caller) })
        };
        let mut common = inspect.common;
        common.images = listed(common.images, &inspect.list.list, &common.reading.access.limits()?)?;
        Self::new(action, common, inspect.process, environment)
    }

    fn new(
        action: Action,
        common: ImageArgs,
        process: ImageProcessArgs,
        environment: &Environment,
    ) -> Result<Self, CliError> {
        let style = style(&common.output.look, environment);
        let verbosity = Verbosity::of(&common.output, environment);
        let from_stdin = common.launch.iter().filter(|path| path.as_os_str() == "-").count();
        if from_stdin > 1 || from_stdin == 1 && common.images.iter().any(|image| is_stdin(image)) {
            let what = "--launch -: standard input cannot also be another launch file or an image";
            return Err(CliError::Usage(what.to_owned()));
        }
        let mut launch = launch(&common.launch, &common.env, &common.reading.access.limits()?)?;
        launch.files.extend(common.like.map(LaunchFile::with_shown));
        let given = process.command.as_deref().map(|text| StartCommand::of_option("--command", text)).transpose();
        let given = given.map_err(|why| CliError::Usage(format!("--command: {why}")))?;
        let user = process.user.map(|name| Ok(StartUser::named(&name)));
        let start = StartChoice { command: given.map(Ok), python: process.python, user };
        let command = if action == Action::Check { "check" } else { "inspect" };
        let run = ReportRun {
            command: command.to_owned(),
            time: now(),
            platform: platform(common.reading.platform.as_ref()),
            variables: launch.all_settings().into_iter().map(|set| set.name).collect(),
            sandbox: None,
        };
        let cache = Arc::new(common.caching.open(environment)?);
        let takes_images = common.images.is_empty();
        let is_empty = |file: &LaunchFile| file.containers.is_empty() && file.settings.is_empty();
        if takes_images && launch.options.is_empty() && launch.files.iter().all(is_empty) {
            let names: Vec<_> = launch.files.iter().map(|file| file.name.as_str()).collect();
            let what = "starts no container and sets no variable that is judged: name the image to check";
            return Err(CliError::Usage(format!("--launch {}: {what}", names.join(", "))));
        }
        let images = if takes_images { images_of(&launch) } else { common.images };
        if let Some(refusal) = images.iter().find_map(|image| advice::refusal(image, io::stdin().is_terminal())) {
            return Err(CliError::Usage(refusal));
        }
        let requests = requests(&images, common.reading, process.jobs, &cache, environment)?;
        let jobs = requests.first().map_or(NonZeroUsize::MIN, |request| request.jobs);
        let (at_once, jobs) = shared_jobs(jobs, requests.len());
        let contacts = RegistryContacts::default();
        let requests = requests.into_iter().map(|request| Request {
            jobs,
            contacts: contacts.clone(),
            environment: known(launch.settings(&request.text)),
            start: StartChoice {
                command: start.command.clone().or_else(|| launch.command(&request.text)),
                user: start.user.clone().or_else(|| launch.user(&request.text)),
                ..start.clone()
            },
            ..request
        });
        let requests: Vec<_> = requests.collect();
        let forms = if action == Action::Check { Format::ALL } else { Format::GENERAL };
        let outputs = outputs(&common.output.format, &named(forms))?;
        outputs.iter().try_for_each(|(format, target)| holds(*format, target, requests.len()))?;
        Ok(Self {
            action,
            requests,
            at_once,
            launch,
            takes_images,
            outputs,
            style,
            fail_on: None,
            exit: IncompleteArg::default(),
            rulebook: RulebookSource::default(),
            verbosity,
            hosts: Vec::new(),
            logs: Vec::new(),
            dockerfile: None,
            run,
        })
    }
}

/// Divides the jobs: the number of images to load at once, and of the layers of each. While one image waits for its
/// registry, another has the processors, so there are up to twice as many layers as jobs.
fn shared_jobs(jobs: NonZeroUsize, images: usize) -> (NonZeroUsize, NonZeroUsize) {
    let at_once = jobs.get().min(images).min(MOST_IMAGES);
    match NonZeroUsize::new(at_once) {
        Some(at_once) if at_once.get() > 1 => {
            let layers = (2 * jobs.get()).div_ceil(at_once.get()).min(jobs.get());
            (at_once, NonZeroUsize::new(layers).unwrap_or(NonZeroUsize::MIN))
        }
        _ => (NonZeroUsize::MIN, jobs),
    }
}

/// The current time in UTC, to the second.
pub(super) fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The platform that is asked for, as reports name it.
fn platform(choice: Option<&PlatformChoice>) -> String {
    match choice {
        Some(PlatformChoice::One(platform)) => platform.to_string(),
        Some(PlatformChoice::All) => "all".to_owned(),
        Some(PlatformChoice::Host) | None => "host".to_owned(),
    }
}

impl AccessArgs {
    /// Resolves `--limit`.
    pub(super) fn limits(&self) -> Result<Limits, CliError> {
        let mut limits = Limits::default();
        for text in &self.limit {
            let (name, value) = text.split_once('=').unwrap_or((text, ""));
            limits.set(name, value).map_err(|error| CliError::Usage(format!("--limit {text}: {error}")))?;
        }
        Ok(limits)
    }

    /// Resolves the options for media.
    pub(super) fn options(&self, environment: &Environment) -> Result<AccessOptions, CliError> {
        Ok(AccessOptions {
            cert_dir: self.cert_dir.clone(),
            authfile: self.authfile.clone(),
            tls_verify: self.tls_verify,
            limits: self.limits()?,
            environment: environment.clone(),
        })
    }
}

impl JobsArg {
    /// Resolves `--jobs`.
    pub(super) fn count(self) -> NonZeroUsize {
        self.jobs.unwrap_or_else(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
    }
}

/// Resolves the reading options to one request per image.
pub(super) fn requests(
    images: &[String],
    reading: ReadingArgs,
    jobs: JobsArg,
    cache: &Arc<ScanCache>,
    environment: &Environment,
) -> Result<Vec<Request>, CliError> {
    let ReadingArgs { platform, access } = reading;
    let options = access.options(environment)?;
    let choice = platform.unwrap_or(PlatformChoice::Host);
    let jobs = jobs.count();
    let request = |text: &String| -> Result<Request, CliError> {
        Ok(Request {
            choice: choice.clone(),
            jobs,
            limits: options.limits.clone(),
            options: options.clone(),
            cache: Arc::clone(cache),
            ..Request::new(text).map_err(|error| CliError::Usage(error.to_string()))?
        })
    };
    images.iter().map(request).collect()
}

/// The images of the command line, then those of each list.
fn listed(mut images: Vec<String>, lists: &[PathBuf], limits: &Limits) -> Result<Vec<String>, CliError> {
    images.extend(read_lists(lists, limits)?);
    if images.is_empty() {
        let files: Vec<_> = lists.iter().map(|path| path.to_string_lossy()).collect();
        return Err(CliError::Usage(format!(
            "--list {}: no line names an image\n  help: {LIST_FORM}",
            files.join(", ")
        )));
    }
    if images.iter().any(|image| is_stdin(image)) && lists.iter().any(|path| path.as_os_str() == "-") {
        return Err(CliError::Usage("--list -: standard input cannot also be an image".to_owned()));
    }
    Ok(images)
}

/// The images of lists.
pub(super) fn read_lists(lists: &[PathBuf], limits: &Limits) -> Result<Vec<String>, CliError> {
    lists.iter().try_for_each(|path| refuse_other_kind("--list", path))?;
    let names = lists.iter().map(|path| names(path, &read_input(path, limits)?));
    Ok(names.collect::<Result<Vec<_>, CliError>>()?.concat())
}

/// Reads a text file; `-` is standard input.
pub(super) fn read_input(path: &Path, limits: &Limits) -> Result<String, FileError> {
    match path.to_str() {
        Some("-") => read_text_from(io::stdin().lock(), Path::new("standard input"), limits),
        _ => read_text(path, limits),
    }
}

/// The lines of a list that name images. A line that cannot name one is an error, which does not quote it: the path may
/// lead to a file that holds secrets.
fn names(path: &Path, list: &str) -> Result<Vec<String>, CliError> {
    let lines = list.lines().map(str::trim).zip(1..).filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let is_name = |line: &str| conceal(line) == line && format!("docker://{line}").parse::<Reference>().is_ok();
    let is_path =
        |line: &str| ["/", "./", "../"].iter().any(|begin| line.starts_with(begin)) || Path::new(line).exists();
    let name = |(line, number): (&str, usize)| {
        if transport_of(line).is_some() || is_path(line) || is_name(line) {
            return Ok(line.to_owned());
        }
        let file = if path.as_os_str() == "-" { Path::new("standard input") } else { path };
        let what = format!("expected the name of an image or an existing file\n  help: {LIST_FORM}");
        Err(CliError::Usage(format!("{}:{number}: {what}", file.display())))
    };
    lines.map(name).collect()
}

/// Resolves `--launch` and `--env`, options last. Only relevant variables of launch files are kept: others may be
/// secrets.
pub(super) fn launch(files: &[PathBuf], options: &[String], limits: &Limits) -> Result<Launched, CliError> {
    let mut launched = Launched::default();
    for path in in_folders(files)? {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin { "standard input".to_owned() } else { path.display().to_string() };
        let wrong = |what: String| CliError::Usage(format!("--launch {name}: {what}"));
        if let Some(command) = advice::instead_of_launch(&path) {
            return Err(wrong(format!("not a launch file\n  help: {command}")));
        }
        refuse_other_kind("--launch", &path)?;
        let text = read_input(&path, limits).map_err(|error| wrong(error.why))?;
        let file = launch::read(&name, &text).map_err(|error| CliError::Usage(format!("--launch {error}")))?;
        let more = file.notes.len().saturating_sub(LAUNCH_NOTES);
        let more = (more > 0).then(|| counted(more, "more note", "more notes"));
        for note in file.notes.iter().take(LAUNCH_NOTES).chain(&more) {
            super::say(&format!("note: --launch {name}: {note}"));
        }
        let of_containers = file.containers.iter().map(|container| container.settings.len());
        let count = file.settings.len() + of_containers.sum::<usize>();
        if count > MOST_VARIABLES {
            return Err(wrong(format!("it sets {count} variables, of which at most {MOST_VARIABLES} are read")));
        }
        launched.files.push(file.with_shown());
    }
    for text in options {
        let (name, value) = variable(text)?;
        let given = Assignment { name: name.to_owned(), value: Some(value.to_owned()), line: None };
        launched.options.push(given.in_launch("--env"));
    }
    Ok(launched)
}

/// The launch files, with those in a folder in the place of it, in the order of their names.
fn in_folders(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CliError> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let wrong = |why: String| CliError::Usage(format!("--launch {}: {why}", path.display()));
        let entries = path.read_dir().and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let entries = entries.map_err(|error| wrong(cause(&error)))?;
        let is_launch = |file: &PathBuf| {
            let ending = file.extension().and_then(OsStr::to_str);
            file.is_file() && ending.is_some_and(|ending| LAUNCH_ENDINGS.contains(&ending))
        };
        let mut inside: Vec<_> = entries.iter().map(fs::DirEntry::path).filter(is_launch).collect();
        if inside.is_empty() {
            return Err(wrong(format!("the folder has no file that ends with .{}", LAUNCH_ENDINGS.join(", ."))));
        }
        inside.sort();
        files.extend(inside);
    }
    Ok(files)
}

/// The images that launch files name, which the command line does not show.
fn images_of(launch: &Launched) -> Vec<String> {
    let images = launch.images();
    for (file, image) in &images {
        super::say(&format!("note: {file} names the image {}", conceal(image)));
    }
    images.into_iter().map(|(_, image)| image).collect()
}

/// The last known value of each variable. An unknown value, which only a shell can compute, is ignored here.
fn known(settings: Vec<Setting>) -> BTreeMap<String, String> {
    settings.into_iter().filter_map(|setting| Some((setting.name, setting.value?))).collect()
}

/// Resolves `--host`.
pub(super) fn hosts(texts: &[String]) -> Result<Vec<HostDescription>, CliError> {
    let path = |text: &String| Path::new(text.strip_prefix('@').unwrap_or(text)).to_owned();
    texts.iter().map(path).try_for_each(|path| refuse_other_kind("--host", &path))?;
    Ok(read_hosts(texts)?)
}

/// Resolves `--dockerfile`. CI services identify files by their path in the repository, whose root must be the current
/// directory.
fn dockerfile(path: &Path) -> Result<Dockerfile, CliError> {
    refuse_other_kind("--dockerfile", path)?;
    let wrong = |what: String| CliError::Usage(format!("--dockerfile {}: {what}", path.display()));
    let text = read_text(path, &Limits::default()).map_err(|error| wrong(error.why))?;
    let here = std::env::current_dir().unwrap_or_default();
    let inside = path.strip_prefix(&here).unwrap_or(path).to_str().and_then(report::relative);
    let why = "the file must be inside the current directory: run ncclcheck in the root of the repository";
    Dockerfile::parse(inside.ok_or_else(|| wrong(why.to_owned()))?, &text).map_err(wrong)
}

/// Parses `--env`. A bare name is an error: engines would take its value from their own environment, which is unknown.
fn variable(text: &str) -> Result<(&str, &str), CliError> {
    let pair = text.split_once('=').filter(|(name, _)| !name.is_empty());
    pair.ok_or_else(|| CliError::Usage(format!("--env {text}: expected NAME=VALUE")))
}

/// Formats with their names on the command line.
pub(super) fn named(formats: &[Format]) -> Vec<(&'static str, Format)> {
    formats.iter().map(|format| (format.name(), *format)).collect()
}

/// Resolves `--format`. `forms` are the formats that the command supports, the default first.
pub(super) fn outputs<F: Copy>(
    formats: &[String],
    forms: &[(&'static str, F)],
) -> Result<Vec<(F, OutputTarget)>, CliError> {
    let names: Vec<_> = forms.iter().map(|(name, _)| *name).collect();
    let mut outputs: Vec<(F, OutputTarget)> = Vec::new();
    for text in formats {
        let (name, file) = text.split_once('=').map_or((text.as_str(), None), |(name, file)| (name, Some(file)));
        let Some((_, form)) = forms.iter().copied().find(|(form, _)| *form == name) else {
            if name.split(',').all(|part| names.contains(&part)) {
                return Err(CliError::Usage(format!("--format {text}: give each format its own --format")));
            }
            let help = suggestion(name, names.iter().copied());
            let help = help.unwrap_or_else(|| format!("available formats: {}", names.join(", ")));
            return Err(CliError::Usage(format!("--format {text}: {help}")));
        };
        let target = match file {
            Some("") => return Err(CliError::Usage(format!("--format {text}: expected a file name after '='"))),
            Some(file) if is_list(file, &names) => {
                return Err(CliError::Usage(format!("--format {text}: give each format its own --format")));
            }
            Some("-") | None => OutputTarget::Stdout,
            Some(file) => OutputTarget::File(file.into()),
        };
        if outputs.iter().any(|(_, taken)| taken.is_same(&target)) {
            return Err(CliError::Usage(format!(
                "--format {text}: another format has the same target; use FORMAT=FILE"
            )));
        }
        outputs.push((form, target));
    }
    if outputs.is_empty() {
        outputs.extend(forms.first().map(|(_, form)| (*form, OutputTarget::Stdout)));
    }
    Ok(outputs)
}

/// Returns true for `FILE,FORMAT=FILE`, which is not a name that a user means.
fn is_list(file: &str, names: &[&str]) -> bool {
    file.split(',').skip(1).filter_map(|part| part.split_once('=')).any(|(name, _)| names.contains(&name))
}

/// Refuses standard output, and what is written in place, for more images than a document of the format holds: only regular
/// files can be numbered.
fn holds(format: Format, target: &OutputTarget, images: usize) -> Result<(), CliError> {
    let Some(most) = format.most_images().filter(|most| images > *most && target.is_single()) else {
        return Ok(());
    };
    let name = format.name();
    Err(CliError::Usage(format!(
        "--format {name}: a document holds at most {most} images, but there are {images}\n  help: --format \
         {name}=FILE writes numbered files, where FILE is a regular file"
    )))
}

/// Resolves the style of the output from the options, the environment and the terminal.
pub(super) fn style(look: &StyleArgs, environment: &Environment) -> Style {
    let is_terminal = io::stdout().is_terminal();
    let color = match look.color {
        Some(color) => color,
        // no-color.org and bixense.com/clicolors.
        None if environment.get("NO_COLOR").is_some() => false,
        None if environment.get("CLICOLOR_FORCE").is_some_and(|value| value != "0") => true,
        None => is_terminal && environment.get("TERM") != Some("dumb"),
    };
    let columns = || environment.get("COLUMNS").and_then(|columns| columns.parse().ok());
    let terminal = terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| usize::from(width.0));
    Style { color, width: terminal.or_else(columns).unwrap_or(WIDTH), verbose: look.verbose, brief: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(formats: &[&str]) -> Result<Vec<(Format, OutputTarget)>, String> {
        let formats: Vec<_> = formats.iter().map(|format| (*format).to_owned()).collect();
        outputs(&formats, &named(Format::ALL)).map_err(|error| error.to_string())
    }

    #[test]
    fn jobs_are_shared_by_images() {
        for (jobs, images, expected) in
            [(1, 50, (1, 1)), (2, 1, (1, 2)), (2, 50, (2, 2)), (16, 3, (3, 11)), (64, 50, (8, 16))]
        {
            let (at_once, layers) = shared_jobs(NonZeroUsize::new(jobs).unwrap(), images);
            assert_eq!((at_once.get(), layers.get()), expected, "{jobs} jobs, {images} images");
        }
    }

    #[test]
    fn formats_are_paired_with_files() {
        let file = |name: &str| OutputTarget::File(name.into());
        assert_eq!(targets(&[]).unwrap(), [(Format::Human, OutputTarget::Stdout)]);
        assert_eq!(targets(&["json=-"]).unwrap(), [(Format::Json, OutputTarget::Stdout)]);
        assert_eq!(targets(&["human=json"]).unwrap(), [(Format::Human, file("json"))]);
        let both = [(Format::Human, OutputTarget::Stdout), (Format::Json, file("r.json"))];
        assert_eq!(targets(&["human", "json=r.json"]).unwrap(), both);
        assert_eq!(targets(&["json=a,b=c"]).unwrap(), [(Format::Json, file("a,b=c"))]);
        for (formats, why) in [
            (
                &["toml"][..],
                "available formats: human, table, json, csv, sarif, junit, github, gitlab, markdown, \
                 html, prometheus, in-toto",
            ),
            (&["markdwon"], "--format markdwon: did you mean markdown?"),
            (&["json="], "expected a file name after '='"),
            (&["json=a,html=b"], "--format json=a,html=b: give each format its own --format"),
            (&["json,html"], "--format json,html: give each format its own --format"),
            (&["json", "human"], "another format has the same target"),
        ] {
            let error = targets(formats).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
