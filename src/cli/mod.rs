//! The command line: what was typed ([`args`]), what it means ([`plan`]), and doing it. Nothing below reads the environment or
//! writes to a terminal.

mod args;
mod book;
mod cache;
mod files;
mod host;
mod hosts;
mod margin;
mod output;
mod plan;
mod probe;
mod progress;
mod rules;

use std::io::{self, IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::{iter, thread};

use clap::Parser as _;

use crate::document::{Document, Mistake};
use crate::facts::explain::explain;
use crate::facts::{Facts, World};
use crate::image::source::Environment;
use crate::image::{self, Image, Request};
use crate::judge::policy::Baseline;
use crate::judge::{Difference, Side, Verdict};
use crate::layer::cache::Cache;
use crate::model::{Owner, Severity};
use crate::report::{Explanation, Format, Report};
use crate::rootfs::listing;
use unpack::pipe::Cancel;

use args::{Arguments, Command};
use book::Book;
use hosts::Described;
use output::Outputs;
use plan::{Action, Plan, Talk};
use progress::Terminal;

/// How a run ended. More of these than one: the first in this order counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Exit {
    Pass,
    Incomplete,
    Fail,
    Error,
}

impl Exit {
    const fn code(self) -> u8 {
        match self {
            Self::Pass => 0,
            Self::Fail => 1,
            Self::Error => 2,
            Self::Incomplete => 3,
        }
    }
}

impl From<Verdict> for Exit {
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
    let arguments = Arguments::parse();
    // A variable that is no UTF-8 names nothing that is looked for here.
    let environment: Environment = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect();
    let exit = run(arguments, &environment).unwrap_or_else(|error| {
        complain(&error);
        Exit::Error
    });
    exit.code().into()
}

/// Why nothing could be said.
#[derive(Debug, thiserror::Error)]
enum Failure {
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Image(#[from] image::Error),
    #[error(transparent)]
    Document(#[from] Mistake),
    #[error(transparent)]
    Probe(#[from] crate::probe::ProbeError),
    #[error("writing {what}: {error}")]
    Output { what: String, error: io::Error },
}

fn run(arguments: Arguments, environment: &Environment) -> Result<Exit, Failure> {
    match arguments.command {
        Command::Host(host) => host::host(&host, environment),
        Command::Cache(command) => cache::run(command, environment),
        Command::Rules(command) => rules::run(&command, environment),
        Command::Explain(asked) => rules::explain(&asked),
        Command::Check(check) => images(&Plan::check(check, environment)?, Use::Nothing),
        Command::Diff(diff) => difference(&Plan::check(diff.check, environment)?),
        Command::Baseline(command) => match *command {
            args::Baseline::Write(write) => {
                let file = write.baseline;
                images(&Plan::check(write.check, environment)?, Use::Write(file, Baseline::default()))
            }
            args::Baseline::Check(check) => {
                let (name, text) = (check.baseline.display().to_string(), files::read(&check.baseline)?);
                let known = Baseline::read(Document { name: &name, text: &text })?;
                images(&Plan::check(check.check, environment)?, Use::Accept(known))
            }
        },
        Command::Probe(probe) => probe::probe(&probe, environment),
        Command::Preflight(preflight) => probe::preflight(*preflight, environment),
        Command::Inspect(inspect) => images(&Plan::inspect(inspect, environment)?, Use::Nothing),
    }
}

/// What is done with a baseline.
enum Use {
    Nothing,
    /// Problems are gathered for this file.
    Write(PathBuf, Baseline),
    /// Those that it has are accepted.
    Accept(Baseline),
}

/// Loads each image and reports on it. One that cannot be had does not keep the others from it.
fn images(plan: &Plan, mut baseline: Use) -> Result<Exit, Failure> {
    let mut outputs = Outputs::open(&plan.outputs, plan.dockerfile.as_ref())?;
    let mut exit = Exit::Pass;
    let cancel = Cancel::default();
    thread::scope(|scope| {
        // Rules take nearly as long to read as an image whose layers are known, so both are done at once. A policy that is wrong
        // stops the image.
        let reading = scope.spawn(|| book(plan).inspect_err(|_| cancel.cancel()));
        let mut reading = Some(reading);
        let mut book = None;
        load(&plan.requests, plan.talk, &cancel, |request, loaded| {
            if let Some(reading) = reading.take() {
                book = reading.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
            }
            match loaded {
                Ok(images) => {
                    for image in &images {
                        exit = exit.max(report(image, plan, book.as_ref(), &mut baseline, &mut outputs)?);
                    }
                }
                Err(error) => {
                    complain(&error);
                    outputs.missing(&request.text, &error.to_string());
                    exit = Exit::Error;
                }
            }
            Ok(())
        })
    })?;
    outputs.finish()?;
    match baseline {
        // What is wrong is written down and no reason to fail; an image that could not be had is.
        Use::Write(file, known) => {
            output::file(&file, &known.text().map_err(|error| Failure::Usage(error.to_string()))?)?;
            if plan.talk != Talk::Nothing {
                let count =
                    if known.len() == 1 { "1 problem is".to_owned() } else { format!("{} problems are", known.len()) };
                say(&format!("{}: {count} known from now on", file.display()));
            }
            Ok(if exit == Exit::Error { exit } else { Exit::Pass })
        }
        Use::Nothing | Use::Accept(_) => Ok(exit),
    }
}

/// What a check judges by. What is only shown is judged by nothing: a policy that is wrong must not be in its way.
fn book(plan: &Plan) -> Result<Option<Book>, Failure> {
    match plan.action {
        Action::Check => Ok(Some(Book::open(&plan.judged)?.only(|rule| !rule.is_of_run()))),
        Action::Inspect | Action::Files | Action::Explain(_) => Ok(None),
    }
}

/// Loads images, one after the other. The first can be stopped.
fn load(
    requests: &[Request],
    talk: Talk,
    first: &Cancel,
    mut take: impl FnMut(&Request, Result<Vec<Image>, image::Error>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let terminal = Terminal::new(talk);
    let bars = terminal.clone();
    // Nothing of ours outlives the process but the bars on the screen. That there is only one handler is certain here.
    let _ = ctrlc::set_handler(move || {
        let _closed = bars.close();
        #[expect(clippy::exit, reason = "the only way to stop at once, whatever every thread is doing")]
        std::process::exit(130);
    });
    let others = iter::repeat_with(Cancel::default);
    for (index, (request, other)) in requests.iter().zip(others).enumerate() {
        let loaded = image::load(request, &terminal, if index == 0 { first } else { &other });
        terminal.clear();
        notice(&request.cache);
        take(request, loaded)?;
    }
    Ok(())
}

fn report(
    image: &Image,
    plan: &Plan,
    book: Option<&Book>,
    baseline: &mut Use,
    outputs: &mut Outputs,
) -> Result<Exit, Failure> {
    if plan.action == Action::Files {
        outputs.text(&listing(&image.rootfs))?;
        return Ok(Exit::Pass);
    }
    let world = World { rootfs: &image.rootfs, config: image.config.as_ref(), launch: &plan.launch };
    if let Action::Explain(question) = &plan.action {
        let accounts = explain(&world, question);
        outputs.explanation(&Explanation { image: &image.summary, accounts: &accounts }, &plan.style)?;
        return Ok(if accounts.is_ok() { Exit::Pass } else { Exit::Incomplete });
    }
    let facts = Facts::collect(&world);
    // Without a host, the image is judged alone.
    let hosts: Vec<Option<&Described>> =
        if plan.hosts.is_empty() { vec![None] } else { plan.hosts.iter().map(Some).collect() };
    let judged: Vec<_> = hosts
        .into_iter()
        .map(|host| {
            let facts = host.map_or_else(|| facts.clone(), |host| host.add_to(&facts));
            let judgements = book.map(|book| {
                let (judgements, mut notices) = book.judge(&facts, &image.summary);
                match baseline {
                    Use::Nothing => (judgements, notices),
                    Use::Write(_, known) => {
                        known.add(&judgements);
                        (judgements, notices)
                    }
                    Use::Accept(known) => {
                        let (judgements, more) = known.accept(judgements);
                        notices.extend(more);
                        (judgements, notices)
                    }
                }
            });
            (host.map(|host| &host.host), facts, judgements)
        })
        .collect();
    let reports: Vec<_> = judged
        .iter()
        .map(|(host, facts, judged)| Report {
            image: &image.summary,
            host: *host,
            facts,
            judgements: judged.as_ref().map(|(judgements, _)| &**judgements),
            fail_on: book.map_or(Severity::Error, |book| book.fail_on(plan.fail_on)),
            fail_for: &Owner::ALL,
            notices: judged.as_ref().map_or(&[], |(_, notices)| notices),
            probe: None,
        })
        .collect();
    outputs.report(&reports, &plan.style)?;
    Ok(reports.iter().filter_map(Report::verdict).map(Exit::from).max().unwrap_or(Exit::Pass))
}

/// `ncclcheck diff`.
fn difference(plan: &Plan) -> Result<Exit, Failure> {
    if plan.requests.len() != 2 || plan.hosts.len() > 1 {
        let what = "a diff is of two images, the older first, and for one host at most";
        return Err(Failure::Usage(what.to_owned()));
    }
    if let Some((format, _)) = plan.outputs.iter().find(|(format, _)| !Format::GENERAL.contains(format)) {
        return Err(Failure::Usage(format!("--format {}: a diff is human or json", format.name())));
    }
    let book = Book::open(&plan.judged)?.only(|rule| !rule.is_of_run());
    let mut outputs = Outputs::open(&plan.outputs, None)?;
    let mut sides = Vec::new();
    load(&plan.requests, plan.talk, &Cancel::default(), |_, loaded| {
        for image in loaded? {
            let world = World { rootfs: &image.rootfs, config: image.config.as_ref(), launch: &plan.launch };
            let facts = Facts::collect(&world);
            let facts = plan.hosts.first().map_or_else(|| facts.clone(), |host| host.add_to(&facts));
            let (judgements, _) = book.judge(&facts, &image.summary);
            sides.push((image.summary, facts, judgements));
        }
        Ok(())
    })?;
    let [before, after] = &*sides else {
        return Err(Failure::Usage("a diff is of one platform: leave out --all-platforms".to_owned()));
    };
    let difference = Difference {
        before: Side { reference: &before.0.reference, facts: &before.1, judgements: &before.2 },
        after: Side { reference: &after.0.reference, facts: &after.1, judgements: &after.2 },
        fail_on: book.fail_on(plan.fail_on),
    };
    outputs.difference(&difference, &plan.style)?;
    outputs.finish()?;
    Ok(difference.verdict().into())
}

/// Tells what is wrong with the cache, which is no reason to stop.
fn notice(cache: &Cache) {
    cache.notices().iter().for_each(|notice| say(&format!("note: {notice}")));
}

/// Tells what was done on standard error, which is no part of a report.
fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{}", crate::model::printable(text));
}

/// Tells an error on standard error. If that is gone as well, nobody is left to be told.
fn complain(error: &dyn std::fmt::Display) {
    let mut stderr = io::stderr().lock();
    let style = if stderr.is_terminal() { anstyle::AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    let text = crate::model::printable(&error.to_string()).into_owned();
    let _ = writeln!(stderr, "{style}error{style:#}: {text}");
}
