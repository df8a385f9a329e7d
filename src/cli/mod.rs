//! The command line: arguments ([`args`]), their resolution ([`plan`]), and the commands. The rest of the crate neither
//! reads the environment nor writes to a terminal.

mod advice;
mod args;
mod audit;
mod cache;
mod cluster;
mod diff;
mod doctor;
mod explain;
mod file_kind;
mod fix;
mod generate;
mod host;
mod images;
mod interrupt;
mod loading;
mod log;
mod manifest;
mod output;
mod output_file;
mod plan;
mod probe;
mod progress;
mod report;
mod rules;
mod sandbox;
mod suggestions;
mod verbosity;
mod version;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::check::HostsError;
use judge::{RulebookError, Verdict};
use layer::cache::ScanCache;
use model::document::{DocumentError, FileError};
use model::{Environment, keep_within_folder};

use args::cluster::ClusterCommand;
use args::{Arguments, Command};

/// Exit status of a run. Of several outcomes the greatest in this order applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ExitStatus {
    Pass,
    Incomplete,
    Fail,
    /// Another attempt may succeed.
    Retry,
    Error,
}

impl ExitStatus {
    const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Error => 2,
            Self::Incomplete => 3,
            // EX_TEMPFAIL of sysexits.h.
            Self::Retry => 75,
        }
    }
}

impl From<Verdict> for ExitStatus {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Pass => Self::Pass,
            Verdict::Fail => Self::Fail,
            Verdict::Incomplete => Self::Incomplete,
        }
    }
}

/// Runs the program with the arguments and the environment of this process.
pub fn main() -> ExitCode {
    let words = suggestions::with_command(args::stdin::mark(std::env::args_os()));
    let arguments =
        Arguments::try_parse_from(&words).unwrap_or_else(|error| suggestions::improve(error, &words).exit());
    // Variables that are not UTF-8 are irrelevant.
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    if environment.get("CI").is_some() {
        keep_within_folder();
    }
    let exit = run(arguments, &environment).unwrap_or_else(|error| {
        complain(&error);
        let is_transient = matches!(&error, CliError::Audit(error) if error.is_transient());
        if is_transient { ExitStatus::Retry } else { ExitStatus::Error }
    });
    exit.code().into()
}

/// An error that ends the run without a verdict.
#[derive(Debug, thiserror::Error)]
enum CliError {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Image(#[from] image::ImageError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Log(#[from] crate::job::LogError),
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error(transparent)]
    Rulebook(#[from] RulebookError),
    #[error(transparent)]
    Audit(#[from] crate::audit::AuditError),
    #[error(transparent)]
    Cluster(#[from] ::cluster::ClusterError),
    #[error(transparent)]
    Probe(#[from] ::probe::ProbeError),
    #[error("writing {what}: {}", model::cause(error))]
    Output { what: String, error: io::Error },
}

fn run(arguments: Arguments, environment: &Environment) -> Result<ExitStatus, CliError> {
    match arguments.command {
        Command::Doctor { format, authfile, look } => doctor::doctor(format, authfile, &look, environment),
        Command::Audit(command) => audit::run(*command, environment),
        Command::Report { files, output } => report::report(&files, &output, environment),
        Command::Host { output, root } => host::host(&output, &root, environment),
        Command::Cache(command) => cache::run(command, environment),
        Command::Rules(command) => rules::run(&command, environment),
        Command::Log(asked) => log::log(&asked, environment),
        Command::Explain(asked) => explain::explain(&asked, environment),
        Command::Check(command) if command.fix => fix::fix(*command, environment),
        Command::Check(command) => images::check(*command, environment),
        Command::Diff(judged) => diff::diff(*judged, environment),
        Command::Probe(probe) => probe::probe(&probe, environment),
        Command::Preflight(preflight) => probe::preflight(*preflight, environment),
        Command::Cluster(asked) => match asked.command {
            Some(ClusterCommand::Manifest(asked)) => manifest::manifest(&asked),
            None => cluster::cluster(&asked, environment),
        },
        Command::Watch { owner } => probe::watch(&owner, environment),
        Command::Completions { shell } => generate::completions(shell),
        Command::Man { folder } => generate::man(folder.as_deref()),
        Command::Inspect(inspect) => images::inspect(*inspect, environment),
    }
}

/// Prints the cache's problems, which do not fail the run.
fn notice(cache: &ScanCache) {
    cache.notices().iter().for_each(|notice| say(&format!("note: {notice}")));
}

/// Prints a note on standard error.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", model::printable_message(text));
}

/// Prints an error on standard error. A failure to do so is ignored: there is no other place to report it.
fn complain(error: &dyn std::fmt::Display) {
    let mut stderr = io::stderr().lock();
    let style = if stderr.is_terminal() { anstyle::AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    let text = model::printable_message(&error.to_string());
    let _ = writeln!(stderr, "{style}error{style:#}: {text}");
}
