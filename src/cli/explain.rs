//! `ncclcheck explain`.

use std::io;
use std::path::Path;

use clap::CommandFactory as _;

use facts::key::{self, KEYS};
use facts::{describe_variable, variable_names};
use judge::ShippedFile;
use judge::policy::Profile;
use judge::rules::RuleSet;
use model::document::read_text_from;
use model::{Environment, Limits, suggestion};
use nccllog::{Job, Symptom, find_symptoms};
use probe::engine::known_messages;
use report::pages::{self, Topic};

use crate::shipped::topics;
use crate::{job, shipped};

use super::args::{Arguments, ExplainArgs, StyleArgs};
use super::rules::print;
use super::{CliError, ExitStatus, log, plan};

/// Prints the page of what was asked for: a rule, a fact, a variable, a topic by its name, a message or any topic, in this order. Lists
/// the topics if nothing was asked for.
pub(super) fn explain(asked: &ExplainArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let what = asked.what.join(" ");
    let rulebook = asked.rulebook.open(environment)?;
    let rules = rulebook.rules();
    // A rule that the policy disables can be explained too.
    let all = RuleSet::builtin(shipped())?;
    let style = plan::style(&StyleArgs { color: None, verbose: false }, environment);
    let page = if what.is_empty() {
        Some(pages::topics(&all_topics()) + OTHERS)
    } else if what == "-" {
        let text = read_text_from(io::stdin().lock(), Path::new("standard input"), &Limits::default())?;
        let jobs = job::read_text("standard input", &text)?;
        if jobs.iter().any(is_log) {
            return log::print(&jobs, rulebook, &style);
        }
        explain_text(&text, &all)
    } else if let Some(page) = named_page(name_in(&what), rules, &all) {
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

/// The name in `rule NAME`, `fact NAME` and `variable NAME`, or the whole text.
fn name_in(what: &str) -> &str {
    let named = ["rule ", "fact ", "variable "].iter().find_map(|kind| what.strip_prefix(kind));
    named.unwrap_or(what)
}

/// What a list of topics ends with.
const OTHERS: &str = "
A rule, a fact, a variable, a message of a failing job or a question in your words is explained too: `ncclcheck explain --help`.
";

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
fn explain_text(text: &str, rules: &RuleSet) -> Option<String> {
    let topics = all_topics();
    if let Some(page) = pages::named(text.trim(), rules, KEYS, &topics) {
        return Some(page);
    }
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
    variable.or_else(|| pages::answer(text.trim(), rules, KEYS, &topics))
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

/// The topics that have a page, the commands, the profiles and the messages of engines.
fn all_topics() -> Vec<Topic> {
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
    topics().iter().map(topic).chain(commands).chain(profiles).chain(engines).collect()
}

/// A page of the book. Its first line is a comment with the phrases with which people ask about it.
fn topic((file, text): &ShippedFile) -> Topic {
    let (asked, page) = text.split_once('\n').unwrap_or_default();
    let name = file.trim_end_matches(".md").trim_start_matches("topics/");
    Topic {
        name: format!("ncclcheck explain {name}"),
        about: page.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default().to_owned(),
        asked: format!("{name},{}", asked.trim_start_matches("<!-- asked:").trim_end_matches("-->")),
        page: page.to_owned(),
        ..Topic::default()
    }
}

fn unknown(what: &str, rules: &RuleSet) -> CliError {
    let names = rules.iter().map(|rule| &*rule.id).chain(KEYS.iter().map(|key| key.name));
    let help = suggestion(what, names.chain(variable_names(""))).unwrap_or_else(|| {
        "`ncclcheck explain` lists topics, `ncclcheck rules list` rules, and `ncclcheck rules schema facts` facts"
            .to_owned()
    });
    CliError::Usage(format!("no rule, fact, variable, topic or message matches '{what}'\n  help: {help}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use clap::Parser as _;
    use clap::error::ErrorKind;
    use nccllog::all_symptoms;

    use super::*;

    fn rules() -> RuleSet {
        RuleSet::builtin(shipped()).unwrap()
    }

    #[test]
    fn questions_lead_to_pages() {
        let rules = rules();
        let pages: Vec<_> = topics().iter().map(topic).collect();
        let asked = [
            ("rdma", &["rdma", "infiniband", "roce", "is RDMA used?"][..]),
            ("efa", &["efa", "aws"][..]),
            ("gpudirect", &["gdr", "gpudirect rdma", "nvidia_peermem"][..]),
            ("nvlink", &["nvl", "why is nvlink not used", "is nccl using nvlink", "fabric manager"][..]),
            ("p2p", &["p2p", "peer-to-peer"][..]),
            ("acs", &["acs", "iommu"][..]),
            ("shm", &["/dev/shm", "shm", "shared memory", "bus error"][..]),
            ("mtu", &["mtu", "jumbo frames"][..]),
            ("gid", &["gid", "which gid index"][..]),
            (
                "hang",
                &[
                    "hang",
                    "my job is stuck",
                    "training stuck at barrier",
                    "nccl hangs at init",
                    "timeout",
                    "watchdog timeout",
                ][..],
            ),
            ("first-call", &["first collective", "why is the first all_reduce slow"][..]),
            ("isolated", &["one container per gpu", "containers per GPU"][..]),
            (
                "libraries",
                &[
                    "DT_RPATH",
                    "rpath",
                    "runpath",
                    "soname",
                    "DT_NEEDED",
                    "LD_LIBRARY_PATH",
                    "ld.so.cache",
                    "why is the wrong NCCL loaded",
                ],
            ),
            ("compose", &["compose", "docker compose", "docker-compose"][..]),
            ("kubernetes", &["kubernetes", "k8s", "how do I use ncclcheck on kubernetes"][..]),
            ("slurm", &["slurm", "srun", "Apptainer with Slurm"][..]),
        ];
        assert_eq!(asked.len(), pages.len());
        for (name, questions) in asked {
            let topic = pages.iter().find(|topic| topic.name == format!("ncclcheck explain {name}")).unwrap();
            for question in questions {
                let page = explain_text(question, &rules).unwrap_or_default();
                assert!(page.trim_start().starts_with(&format!("# {}\n", topic.about)), "{question}: {page}");
            }
        }
    }

    #[test]
    fn a_name_may_follow_the_word_for_its_kind() {
        let rules = rules();
        for what in ["rule nccl/missing-library", "fact nccl.loaded.version", "variable NCCL_DEBUG", "NCCL_DEBUG"] {
            assert!(named_page(name_in(what), &rules, &rules).is_some(), "{what}");
        }
        assert_eq!(named_page(name_in("rule of thumb"), &rules, &rules), None);
    }

    #[test]
    fn each_phrase_is_of_one_page() {
        let pages: Vec<_> = topics().iter().map(topic).collect();
        let mut phrases = BTreeSet::new();
        for phrase in pages.iter().flat_map(|page| page.asked.split(',')) {
            assert!(phrases.insert(phrase.trim()), "{phrase}");
        }
    }

    #[test]
    fn messages_are_not_taken_for_topics() {
        let rules = rules();
        let pages: Vec<_> = topics().iter().map(topic).map(|topic| format!("# {}\n", topic.about)).collect();
        for known in all_symptoms().filter(|known| known.asked.is_none()) {
            let page = explain_text(&known.message, &rules).unwrap_or_default();
            assert!(pages.iter().all(|title| !page.trim_start().starts_with(title)), "{}", known.message);
        }
    }

    #[test]
    fn pages_name_rules_and_commands_that_exist() {
        let rules = rules();
        let files = topics();
        assert!(!files.is_empty());
        for (file, text) in files.iter().filter(|(file, _)| file.starts_with("topics/")) {
            let lines = text.lines().count();
            assert!((40..=80).contains(&lines), "{file}: {lines} lines");
            let links: Vec<_> = text.split("](../rules/").collect();
            assert!(links.len() > 3, "{file} names {} rules", links.len() - 1);
            for pair in links.windows(2) {
                let name = pair[0].rsplit('[').next().unwrap();
                let link = pair[1].split(".md)").next().unwrap();
                assert!(name == link && rules.get(name).is_some(), "{file}: {name} leads to the rule {link}");
            }
            let commands: Vec<_> =
                text.split("ncclcheck ").skip(1).filter_map(|rest| rest.split(['`', '|', '\n']).next()).collect();
            assert!(commands.len() > 2, "{file} names {} commands", commands.len());
            for command in commands {
                // A name alone says of which command the text speaks.
                let more = if command.contains(' ') { "" } else { "--help" };
                let words = ["ncclcheck"].into_iter().chain(command.split_whitespace()).chain(more.split_whitespace());
                let wrong =
                    Arguments::try_parse_from(words).err().filter(|error| error.kind() != ErrorKind::DisplayHelp);
                assert!(wrong.is_none(), "{file}: ncclcheck {command}: {wrong:?}");
            }
        }
    }
}
