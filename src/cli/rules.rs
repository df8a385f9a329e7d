//! `ncclcheck rules`.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use facts::key::KEYS;
use judge::Rulebook;
use judge::policy::Profile;
use judge::rules::{RuleFile, RuleSet, Trial};
use model::document::{Document, read_text};
use model::{Environment, Limits, suggestion};
use report::pages;

use crate::shipped;

use super::args::rulebook::RulebookArgs;
use super::args::{RulesCommand, SchemaOf};
use super::{CliError, ExitStatus, output, output_file, plan};

pub(super) fn run(command: &RulesCommand, environment: &Environment) -> Result<ExitStatus, CliError> {
    match command {
        RulesCommand::List { format, rulebook, look } => {
            let rulebook = rulebook.open(environment)?;
            output::rules(rulebook.rules(), *format, &plan::style(look, environment))?;
            Ok(ExitStatus::Pass)
        }
        RulesCommand::Profiles => profiles(),
        RulesCommand::Show { rule, rulebook } => show(rule, rulebook, environment),
        RulesCommand::Test { folders, mutate } => test(folders, *mutate),
        RulesCommand::Schema { what } => schema(*what),
        RulesCommand::Docs { folder, rulebook } => docs(folder, &rulebook.open(environment)?),
    }
}

fn profiles() -> Result<ExitStatus, CliError> {
    let profiles = Profile::all(shipped());
    let width = profiles.iter().map(|profile| profile.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for profile in profiles {
        let _ = writeln!(text, "{:width$}  {}", profile.name, profile.about()?);
    }
    print(&text)
}

fn schema(what: SchemaOf) -> Result<ExitStatus, CliError> {
    match what {
        SchemaOf::Policy => print(judge::POLICY_SCHEMA),
        SchemaOf::Rule => print(judge::RULE_SCHEMA),
        SchemaOf::Report => print(report::SCHEMA),
        SchemaOf::Verdict => print(report::VERDICT_SCHEMA),
        SchemaOf::Audit => print(crate::audit::SCHEMA),
        SchemaOf::Cluster => print(report::CLUSTER_SCHEMA),
        SchemaOf::Facts => print(&pages::contract(KEYS)),
    }
}

/// Writes a page for each rule, and an index.
fn docs(folder: &Path, rulebook: &Rulebook) -> Result<ExitStatus, CliError> {
    let rules = rulebook.rules();
    let failed = |path: &Path, error| CliError::Output { what: path.display().to_string(), error };
    for rule in rules.iter() {
        let path = folder.join(format!("{}.md", rule.id));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        output_file::file(&path, &pages::rule(rule))?;
    }
    output_file::file(&folder.join("README.md"), &pages::index(rules))?;
    Ok(ExitStatus::Pass)
}

/// Prints a text on standard output.
pub(super) fn print(text: &str) -> Result<ExitStatus, CliError> {
    output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(ExitStatus::Pass)
}

fn show(id: &str, rulebook: &RulebookArgs, environment: &Environment) -> Result<ExitStatus, CliError> {
    // A policy that is wrong does not hide a rule of the program.
    if let Some(text) = shipped().rule(id).filter(|_| rulebook.rules.is_none()) {
        return print(text);
    }
    let rulebook = rulebook.open(environment)?;
    if let Some(text) = shipped().rule(id) {
        return print(text);
    }
    let rules = rulebook.rules();
    match rules.get(id) {
        // A requirement of a policy has no file of its own.
        Some(rule) if rule.is_required() => {
            Err(CliError::Usage(format!("{} is a requirement in {}", rule.id, rule.file)))
        }
        Some(rule) => print(&read_text(Path::new(&rule.file), &Limits::default())?),
        None => Err(no_rule(id, rules)),
    }
}

/// Creates the error for an unknown rule.
pub(super) fn no_rule(id: &str, rules: &RuleSet) -> CliError {
    let help = suggestion(id, rules.iter().map(|rule| &*rule.id));
    let help = help.unwrap_or_else(|| "run `ncclcheck rules list` for a list".to_owned());
    CliError::Usage(format!("unknown rule '{id}'\n  help: {help}"))
}

/// Tests rules. An invalid rule file does not stop the tests of other rules.
fn test(folders: &[PathBuf], mutate: bool) -> Result<ExitStatus, CliError> {
    let mut wrong = Vec::new();
    let rules = if folders.is_empty() {
        RuleSet::builtin(shipped())?
    } else {
        let mut rules = RuleSet::default();
        for file in folders.iter().map(|folder| RuleFile::find(folder)).collect::<Result<Vec<_>, _>>()?.concat() {
            let text = read_text(&file.path, &Limits::default())?;
            let document = Document { name: &file.path.display().to_string(), text: &text };
            if let Err(mistake) = rules.add(&file.id, document) {
                wrong.push(mistake.to_string());
            }
        }
        rules
    };
    let unread = wrong.len();
    let mut sum = Trial::default();
    let mut count = 0;
    for rule in rules.iter() {
        let trial = rule.try_out(mutate);
        count += 1;
        sum.examples += trial.examples;
        sum.mutants += trial.mutants;
        sum.failures.extend(trial.failures);
        sum.survivors.extend(trial.survivors);
    }
    wrong.extend(sum.failures.iter().cloned());
    wrong.extend(sum.survivors.iter().cloned());
    output::stdout(|out| {
        wrong.iter().try_for_each(|what| writeln!(out, "{}", model::printable_message(what)))?;
        write!(out, "{count} rules, {} examples: {} failed", sum.examples, sum.failures.len())?;
        if mutate {
            let noticed = sum.mutants - sum.survivors.len();
            write!(out, "; {noticed} of {} mutants caught", sum.mutants)?;
        }
        if unread > 0 {
            write!(
                out,
                "; {}",
                if unread == 1 { "1 invalid rule file".to_owned() } else { format!("{unread} invalid rule files") }
            )?;
        }
        writeln!(out)
    })?;
    Ok(if wrong.is_empty() { ExitStatus::Pass } else { ExitStatus::Fail })
}
