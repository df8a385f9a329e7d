//! `ncclcheck explain`.

use facts::key::{self, KEYS};
use facts::{describe_variable, variable_names};
use judge::rules::RuleSet;
use model::{Environment, suggestion};
use nccllog::find_symptoms;
use report::pages;

use crate::shipped;

use super::args::ExplainArgs;
use super::rules::print;
use super::{CliError, ExitStatus};

/// Prints the page of what was asked for: a rule, a fact, a variable, a message or a topic, in this order.
pub(super) fn explain(asked: &ExplainArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    let what = asked.what.join(" ");
    let rulebook = asked.rulebook.open(environment)?;
    let rules = rulebook.rules();
    let all = RuleSet::builtin(shipped())?;
    match page(&what, rules, &all) {
        Some(page) => print(&page),
        None => Err(unknown(&what, rules)),
    }
}

/// `all` are the built-in rules: a rule that the policy disables can be explained too.
fn page(what: &str, rules: &RuleSet, all: &RuleSet) -> Option<String> {
    if let Some(rule) = rules.get(what).or_else(|| all.get(what)) {
        return Some(pages::rule(rule));
    }
    if let Some(key) = key::find(what) {
        return Some(pages::fact(key, rules));
    }
    if let Some(variable) = describe_variable(what) {
        return Some(pages::variable(&variable, rules));
    }
    let symptoms = find_symptoms(what);
    if !symptoms.is_empty() {
        return Some(pages::symptoms(&symptoms, all));
    }
    // An empty prefix would select every variable.
    let names = if what.contains('_') { variable_names(what) } else { Vec::new() };
    pages::topic(what, rules, KEYS, &names)
}

fn unknown(what: &str, rules: &RuleSet) -> CliError {
    let names = rules.iter().map(|rule| &*rule.id).chain(KEYS.iter().map(|key| key.name));
    let help = suggestion(what, names.chain(variable_names("")))
        .unwrap_or_else(|| "run `ncclcheck rules list` or `ncclcheck rules schema facts` for a list".to_owned());
    CliError::Usage(format!("no rule, fact, variable, topic or message matches '{what}'\n  help: {help}"))
}
