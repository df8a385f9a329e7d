//! `ncclcheck explain`.

use std::io;
use std::path::Path;

use clap::CommandFactory as _;

use facts::key::{self, KEYS};
use facts::{describe_variable, variable_names};
use judge::policy::Profile;
use judge::rules::RuleSet;
use model::document::read_text_from;
use model::{Environment, Limits, suggestion};
use nccllog::{Job, Symptom, find_symptoms};
use probe::engine::known_messages;
use report::pages::{self, Topic};

use crate::{job, shipped};

use super::args::{Arguments, ExplainArgs, StyleArgs};
use super::rules::print;
use super::{CliError, ExitStatus, log, plan};

/// Prints the page of what was asked for: a rule, a fact, a variable, a message or a topic, in this order.
pub(super) fn explain(asked: &ExplainArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let what = asked.what.join(" ");
    let rulebook = asked.rulebook.open(environment)?;
    let rules = rulebook.rules();
    // A rule that the policy disables can be explained too.
    let all = RuleSet::builtin(shipped())?;
    let style = plan::style(&StyleArgs { color: None, verbose: false }, environment);
    let page = if what == "-" {
        let text = read_text_from(io::stdin().lock(), Path::new("standard input"), &Limits::default())?;
        let jobs = job::read_text("standard input", &text)?;
        if jobs.iter().any(is_log) {
            return log::print(&jobs, rulebook, &style);
        }
        explain_text(&text, &all)
    } else if let Some(page) = named_page(&what, rules, &all) {
        Some(page)
    } else if asked.what.iter().all(|word| Path::new(word).is_file()) {
        return log::print(&job::read(&asked.what)?, rulebook, &style);
    } else {
        explain_text(&what, &all)
    };
    match page {
        Some(page) => print(&pages::for_terminal(&page, &style)),
        None => Err(unknown(&what, rules)),
    }
}

/// Returns true for a log, false for a pasted message.
fn is_log(job: &Job) -> bool {
    const LONGEST_MESSAGE: u64 = 20;
    job.lines > LONGEST_MESSAGE || job.nccl_lines > 2
}

/// The page of a rule, a fact, a variable, or the variables with this beginning.
fn named_page(what: &str, rules: &RuleSet, all: &RuleSet) -> Option<String> {
    if let Some(rule) = rules.get(what).or_else(|| all.get(what)) {
        return Some(pages::rule_in_words(rule));
    }
    if let Some(key) = key::find(what) {
        return Some(pages::fact(key, rules));
    }
    if let Some(variable) = describe_variable(what) {
        return Some(pages::variable(&variable, rules));
    }
    if what.contains('_') { pages::variables(what) } else { None }
}

/// The page of a text that is not a log: the messages in it, or the topics with its words; `None` where nothing is known of it.
pub(super) fn explain_text(text: &str, rules: &RuleSet) -> Option<String> {
    let mut symptoms = find_symptoms(text);
    if symptoms.iter().all(|symptom| symptom.is_general) {
        // What an engine says is more specific than the name of the hook that failed.
        symptoms.splice(..0, engine_symptom(text));
    }
    if !symptoms.is_empty() {
        return Some(pages::symptoms(&symptoms, rules));
    }
    let words = text.split(|character: char| !character.is_ascii_alphanumeric() && character != '_');
    let variable = words.filter_map(describe_variable).map(|variable| pages::variable(&variable, rules)).next();
    variable.or_else(|| pages::answer(text.trim(), rules, KEYS, &topics()))
}

/// Words that messages of container engines have: the table's own words are found in texts of other programs.
const ENGINES: [&str; 10] = [
    "docker",
    "podman",
    "oci runtime",
    "runc",
    "crun",
    "containerd",
    "nvidia-container-cli",
    "cdi ",
    "device driver \"",
    "shim",
];

/// What a container engine says in a text.
fn engine_symptom(text: &str) -> Option<Symptom> {
    let lower = text.to_lowercase();
    let known = known_messages().find(|known| known.matches(text))?;
    ENGINES.iter().any(|word| lower.contains(word)).then(|| Symptom {
        message: text.trim().to_owned(),
        meaning: Some(known.cause.clone()),
        fix: Some(known.help.clone()),
        ..Symptom::default()
    })
}

/// The profiles, the commands and the messages of engines.
fn topics() -> Vec<Topic> {
    let profiles = Profile::all(shipped()).into_iter().map(|profile| Topic {
        name: format!("ncclcheck check --profile {}", profile.name),
        about: profile.about().unwrap_or_default(),
        ..Topic::default()
    });
    let program = Arguments::command();
    let commands = program.get_subcommands().filter(|command| !command.is_hide_set()).map(|command| Topic {
        name: format!("ncclcheck {}", command.get_name()),
        about: command.get_about().map(ToString::to_string).unwrap_or_default(),
        ..Topic::default()
    });
    let engines = known_messages().map(|known| Topic {
        name: known.words.join(" … "),
        about: known.cause.clone(),
        text: known.help.clone(),
        ..Topic::default()
    });
    commands.chain(profiles).chain(engines).collect()
}

fn unknown(what: &str, rules: &RuleSet) -> CliError {
    let names = rules.iter().map(|rule| &*rule.id).chain(KEYS.iter().map(|key| key.name));
    let help = suggestion(what, names.chain(variable_names("")))
        .unwrap_or_else(|| "run `ncclcheck rules list` or `ncclcheck rules schema facts` for a list".to_owned());
    CliError::Usage(format!("no rule, fact, variable, topic or message matches '{what}'\n  help: {help}"))
}
