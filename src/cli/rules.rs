//! `ncclcheck rules`: what rules there are, and whether they are any good.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::document::{Document, suggestion};
use crate::facts::key::{self, KEYS};
use crate::model::Limits;
use crate::policy::{self, Profile};
use crate::report::{self, pages};
use crate::rules::{self, RuleSet, Trial};
use crate::source::Environment;

use super::args::{Docs, Explain, Rules, Schema, SchemaOf, Show, Test};
use super::policy::Book;
use super::{Exit, Failure, output, plan};

pub(super) fn run(command: &Rules, environment: &Environment) -> Result<Exit, Failure> {
    match command {
        Rules::List(list) => {
            let rules = Book::open(&list.judged)?.rules;
            output::rules(&rules, list.format, &plan::style(&list.look, environment))?;
            Ok(Exit::Pass)
        }
        Rules::Profiles => profiles(),
        Rules::Show(asked) => show(asked),
        Rules::Test(asked) => test(asked),
        Rules::Schema(asked) => schema(asked),
        Rules::Docs(asked) => docs(asked),
    }
}

fn profiles() -> Result<Exit, Failure> {
    let profiles = Profile::all();
    let width = profiles.iter().map(|profile| profile.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for profile in profiles {
        let _ = writeln!(text, "{:width$}  {}", profile.name, profile.about()?);
    }
    print(&text)
}

fn schema(asked: &Schema) -> Result<Exit, Failure> {
    print(&match asked.what {
        SchemaOf::Policy => policy::schema(),
        SchemaOf::Rule => rules::schema(),
        SchemaOf::Report => report::json::schema(),
        SchemaOf::Facts => pages::contract(KEYS),
    })
}

/// Writes a page for each rule, and the list of them.
fn docs(asked: &Docs) -> Result<Exit, Failure> {
    let rules = Book::open(&asked.judged)?.rules;
    let failed = |path: &Path, error| Failure::Output { what: path.display().to_string(), error };
    for rule in rules.iter() {
        let path = asked.folder.join(format!("{}.md", rule.id));
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        output::file(&path, &pages::rule(rule))?;
    }
    output::file(&asked.folder.join("README.md"), &pages::index(&rules))?;
    Ok(Exit::Pass)
}

/// `ncclcheck explain`.
pub(super) fn explain(asked: &Explain) -> Result<Exit, Failure> {
    let rules = Book::open(&asked.judged)?.rules;
    let all = RuleSet::builtin()?;
    // A rule that the policy turned off can be read about too.
    if let Some(rule) = rules.get(&asked.name).or_else(|| all.get(&asked.name)) {
        return print(&pages::rule(rule));
    }
    if let Some(key) = key::find(&asked.name) {
        return print(&pages::fact(key, &rules));
    }
    let names = rules.iter().map(|rule| &*rule.id).chain(KEYS.iter().map(|key| key.name));
    let help = suggestion(&asked.name, names)
        .unwrap_or_else(|| "`ncclcheck rules list` and `ncclcheck rules schema facts` show those there are".to_owned());
    Err(Failure::Usage(format!("there is no rule and no fact '{}'\n  help: {help}", asked.name)))
}

fn print(text: &str) -> Result<Exit, Failure> {
    output::stdout(|out| out.write_all(text.as_bytes()))?;
    Ok(Exit::Pass)
}

fn show(asked: &Show) -> Result<Exit, Failure> {
    let rules = RuleSet::builtin()?;
    let Some(text) = rules.get(&asked.rule).and_then(|rule| RuleSet::source(&rule.id)) else {
        return Err(no_rule(&asked.rule, &rules));
    };
    print(text)
}

/// A rule that somebody names and that there is not.
pub(super) fn no_rule(id: &str, rules: &RuleSet) -> Failure {
    let help = suggestion(id, rules.iter().map(|rule| &*rule.id));
    let help = help.unwrap_or_else(|| "`ncclcheck rules list` shows those there are".to_owned());
    Failure::Usage(format!("there is no rule '{id}'\n  help: {help}"))
}

/// Tries rules; every rule that can be read is tried, whatever is wrong with others.
fn test(asked: &Test) -> Result<Exit, Failure> {
    let mut wrong = Vec::new();
    let rules = if asked.folders.is_empty() {
        RuleSet::builtin()?
    } else {
        let mut rules = RuleSet::default();
        for file in asked.folders.iter().map(|folder| files(folder)).collect::<Result<Vec<_>, _>>()?.concat() {
            let text = read(&file.path)?;
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
        let trial = rule.try_out(asked.mutate);
        count += 1;
        sum.examples += trial.examples;
        sum.mutants += trial.mutants;
        sum.failures.extend(trial.failures);
        sum.survivors.extend(trial.survivors);
    }
    wrong.extend(sum.failures.iter().cloned());
    wrong.extend(sum.survivors.iter().cloned());
    output::stdout(|out| {
        wrong.iter().try_for_each(|what| writeln!(out, "{}", crate::model::printable(what)))?;
        write!(out, "{count} rules, {} examples: {} come out otherwise", sum.examples, sum.failures.len())?;
        if asked.mutate {
            let noticed = sum.mutants - sum.survivors.len();
            write!(out, "; {noticed} of {} changes of their conditions are noticed", sum.mutants)?;
        }
        if unread > 0 {
            write!(
                out,
                "; {}",
                if unread == 1 { "1 file is no rule".to_owned() } else { format!("{unread} files are no rules") }
            )?;
        }
        writeln!(out)
    })?;
    Ok(if wrong.is_empty() { Exit::Pass } else { Exit::Fail })
}

/// A rule's file.
#[derive(Clone)]
pub(super) struct RuleFile {
    /// What the rule must be called: its folder's name and its own.
    pub(super) id: String,
    pub(super) path: PathBuf,
}

/// All rules of a folder, or one file.
pub(super) fn files(place: &Path) -> Result<Vec<RuleFile>, Failure> {
    let failed = |path: &Path, why: &dyn std::fmt::Display| Failure::Usage(format!("{}: {why}", path.display()));
    let (mut found, mut folders) =
        if place.is_file() { (vec![place.to_owned()], Vec::new()) } else { (Vec::new(), vec![place.to_owned()]) };
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, &error))? {
            let entry = entry.map_err(|error| failed(&folder, &error))?;
            // A link to a folder is not followed: it may lead back.
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            let path = entry.path();
            if is_folder {
                folders.push(path);
            } else if path.is_file()
                && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
            {
                found.push(path);
            }
        }
    }
    if found.is_empty() {
        return Err(failed(place, &"there is no rule in it: no file AREA/NAME.yaml"));
    }
    found.sort();
    let file = |path: PathBuf| {
        let whole = path.canonicalize().map_err(|error| failed(&path, &error))?;
        let name = |part: Option<&std::ffi::OsStr>| part.unwrap_or_default().to_string_lossy().into_owned();
        let area = name(whole.parent().and_then(Path::file_name));
        Ok(RuleFile { id: format!("{area}/{}", name(whole.file_stem())), path })
    };
    found.into_iter().map(file).collect()
}

/// The text of a file that a person wrote, within the limit for such.
pub(super) fn read(path: &Path) -> Result<String, Failure> {
    let failed = |why: String| Failure::Usage(format!("{}: {why}", path.display()));
    let limit = Limits::default().text_file;
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| failed(error.to_string()))?;
    #[expect(clippy::disallowed_methods, reason = "bounded by the limit")]
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| failed(error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(failed(format!("it has more than {limit} bytes")));
    }
    String::from_utf8(bytes).map_err(|error| {
        failed(format!("it is no UTF-8 text: byte {} is none of a character", error.utf8_error().valid_up_to()))
    })
}
