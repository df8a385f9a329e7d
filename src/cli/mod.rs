//! The command line: what was typed ([`args`]), what it means ([`plan`]), and doing it. Nothing below reads the environment or
//! writes to a terminal.

mod args;
mod hosts;
mod margin;
mod output;
mod plan;
mod probe;
mod progress;

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;

use clap::Parser as _;

use crate::document::Mistake;
use crate::facts::explain::explain;
use crate::facts::{Facts, World};
use crate::model::{Host, Owner};
use crate::pipeline::{self, Image};
use crate::report::{Explanation, Report, Verdict};
use crate::rootfs::listing;
use crate::rules::{self, RuleSet};
use crate::scan::Cancel;
use crate::source::Environment;

use args::{Arguments, Command, Rules};
use output::Outputs;
use plan::{Action, Plan};
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
    let exit = run(arguments, environment).unwrap_or_else(|error| {
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
    Image(#[from] pipeline::Error),
    #[error(transparent)]
    Document(#[from] Mistake),
    #[error(transparent)]
    Probe(#[from] crate::probe::ProbeError),
    #[error("writing {what}: {error}")]
    Output { what: String, error: io::Error },
}

fn run(arguments: Arguments, environment: Environment) -> Result<Exit, Failure> {
    match arguments.command {
        Command::Rules(Rules::List(list)) => {
            let rules = RuleSet::builtin()?;
            output::rules(&rules, list.format, &plan::style(&list.look, &environment))?;
            Ok(Exit::Pass)
        }
        Command::Check(check) => images(&Plan::check(check, environment)?),
        Command::Probe(probe) => probe::probe(&probe, &environment),
        Command::Preflight(preflight) => probe::preflight(*preflight, &environment),
        Command::Inspect(inspect) => images(&Plan::inspect(inspect, environment)?),
    }
}

/// Loads each image and reports on it. One that cannot be had does not keep the others from it.
fn images(plan: &Plan) -> Result<Exit, Failure> {
    let rules = RuleSet::builtin()?.only(|rule| !rule.is_of_run());
    let mut outputs = Outputs::open(&plan.outputs)?;
    let terminal = Terminal::new(plan.talk);
    let bars = terminal.clone();
    // Nothing of ours outlives the process but the bars on the screen. That there is only one handler is certain here.
    let _ = ctrlc::set_handler(move || {
        let _closed = bars.close();
        #[expect(clippy::exit, reason = "the only way to stop at once, whatever every thread is doing")]
        std::process::exit(130);
    });
    let mut exit = Exit::Pass;
    for request in &plan.requests {
        let loaded = pipeline::load(request, &terminal, &Cancel::default());
        terminal.clear();
        match loaded {
            Ok(images) => {
                for image in &images {
                    exit = exit.max(report(image, plan, &rules, &mut outputs)?);
                }
            }
            Err(error) => {
                complain(&error);
                exit = Exit::Error;
            }
        }
    }
    outputs.finish()?;
    Ok(exit)
}

fn report(image: &Image, plan: &Plan, rules: &RuleSet, outputs: &mut Outputs) -> Result<Exit, Failure> {
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
    let hosts: Vec<Option<&Host>> =
        if plan.hosts.is_empty() { vec![None] } else { plan.hosts.iter().map(Some).collect() };
    let judged: Vec<_> = hosts
        .into_iter()
        .map(|host| {
            let facts = host.map_or_else(|| facts.clone(), |host| facts.on(host));
            let judgements = (plan.action == Action::Check).then(|| rules::judge(rules, &facts));
            (host, facts, judgements)
        })
        .collect();
    let reports: Vec<_> = judged
        .iter()
        .map(|(host, facts, judgements)| Report {
            image: &image.summary,
            host: *host,
            facts,
            judgements: judgements.as_deref(),
            fail_on: plan.fail_on,
            fail_for: &Owner::ALL,
            notices: &[],
            probe: None,
        })
        .collect();
    outputs.report(&reports, &plan.style)?;
    Ok(reports.iter().filter_map(Report::verdict).map(Exit::from).max().unwrap_or(Exit::Pass))
}

/// Tells an error on standard error. If that is gone as well, nobody is left to be told.
fn complain(error: &dyn std::fmt::Display) {
    let mut stderr = io::stderr().lock();
    let style = if stderr.is_terminal() { anstyle::AnsiColor::Red.on_default().bold() } else { anstyle::Style::new() };
    let text = crate::model::printable(&error.to_string()).into_owned();
    let _ = writeln!(stderr, "{style}error{style:#}: {text}");
}
