//! Rules: YAML documents with CEL conditions over facts. Each rule yields exactly one judgement of an image.

mod change;
mod condition;
mod cost;
mod eval;
mod files;
mod fix;
mod message;
mod mutation;
mod outcome;
mod recorded;
mod required;
mod schema;
mod trial;

use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::in_force::PolicyInForce;
use crate::shipped::Shipped;
use facts::Facts;
use facts::key::Definition;
use model::document::{Document, DocumentError};
use model::{Owner, Severity, Site};

use condition::Condition;
use eval::ConditionTruth;
use fix::{FixSubject, FixTemplate};
use message::Message;

pub use change::{RuleChange, RuleEdit, RuleReplacement};
pub use condition::{ConditionError, FUNCTIONS, Function};
pub use files::RuleFile;
pub use fix::ImageNames;
pub use outcome::{Consequence, Finding, Judgement, Outcome, Problem, Waived};
pub use required::Required;
pub use schema::{Example, Examples, schema};
pub use trial::Trial;

/// One rule.
#[derive(Debug)]
pub struct Rule {
    /// `area/kebab-name`, published and never reused.
    pub id: String,
    /// The file that the rule was read from.
    pub file: String,
    /// The problem that the rule detects, in a few words.
    pub title: String,
    /// What a job does not have where the rule fails, for the first line of a report: `RDMA between hosts`.
    pub without: Option<String>,
    /// Severity of a failure.
    pub severity: Severity,
    /// The party that has to fix a failure.
    pub owner: Owner,
    /// The release of ncclcheck that introduced the rule.
    pub since: String,
    /// Explanation of why the problem matters.
    pub why: String,
    /// Instructions and lines to copy, with the names of facts in braces where a finding has their values.
    pub fix: String,
    /// The mechanical part of the fix, if it has one.
    pub change: Option<RuleChange>,
    /// The edits of a launch file that settle a failure, if there are such.
    pub edit: Option<RuleEdit>,
    /// Rules whose findings and missing answers follow from a failure, by id or pattern.
    pub explains: Vec<String>,
    /// URLs of the sources.
    pub references: Vec<String>,
    applies: Option<Condition>,
    check: Condition,
    message: Message,
    remedy: FixTemplate,
    evidence: Vec<Evidence>,
    /// Where the text of a built-in rule is, whose examples are read when they are first needed.
    shipped: Option<&'static Shipped>,
    examples: OnceLock<Examples>,
}

/// A fact whose sites a finding shows, or one entry of a map fact: `image.env.NCCL_DEBUG`.
#[derive(Debug)]
struct Evidence {
    key: &'static Definition,
    entry: Option<String>,
}

impl Rule {
    /// Returns true if the rule comes from a requirement of a policy.
    pub fn is_required(&self) -> bool {
        self.id.starts_with("require/")
    }

    /// Facts for each outcome: pass, fail, not applicable and unknown.
    pub fn examples(&self) -> &Examples {
        let text = || self.shipped.and_then(|shipped| shipped.rule(&self.id)).unwrap_or_default();
        self.examples.get_or_init(|| Examples::of_builtin(&self.id, text()))
    }

    /// The conditions in CEL: `applies`, if the rule has one, and `check`.
    pub fn conditions(&self) -> (Option<&str>, &str) {
        (self.applies.as_ref().map(Condition::text), self.check.text())
    }

    /// The facts that the conditions use, each once, sorted by name.
    pub fn asks(&self) -> Vec<&'static Definition> {
        let conditions = self.applies.iter().chain([&self.check]);
        let mut keys: Vec<_> = conditions.flat_map(|condition| condition::facts_of(condition.root())).collect();
        keys.sort_by_key(|key| key.name);
        keys.dedup_by_key(|key| key.name);
        keys
    }

    /// Returns true if the rule judges a run of the image.
    pub fn is_of_run(&self) -> bool {
        self.id.starts_with("runtime/") || (self.is_required() && self.asks().into_iter().any(Definition::is_of_run))
    }

    /// Returns true if the rule judges the log of a job.
    pub fn is_of_job(&self) -> bool {
        self.id.starts_with("job/") || (self.is_required() && self.asks().into_iter().any(Definition::is_of_job))
    }

    /// Returns true if the rule needs no image: it asks only what a launch and a host say.
    pub fn is_of_launch(&self) -> bool {
        let is_known = |key: &Definition| {
            key.is_of_container()
                || key.name.starts_with("host.")
                || ["env.effective", "launch.variables"].contains(&key.name)
        };
        self.asks().into_iter().all(is_known)
    }

    /// Returns true if the rule judges a run of the image, or requires something of NCCL's lines in that run.
    pub fn is_of_probe(&self) -> bool {
        self.is_of_run() || self.is_required() && self.is_of_job()
    }

    /// Returns true if the rule judges an image, its launch or a host.
    pub fn is_of_image(&self) -> bool {
        !self.is_of_run() && !self.is_of_job()
    }
}

impl Evidence {
    fn sites(&self, facts: &Facts) -> Vec<Site> {
        let sites = facts.certain(self.key).sites().iter();
        let wanted = |site: &&Site| match (&self.entry, site) {
            (Some(entry), Site::Config(key)) => key.rsplit(' ').next() == Some(entry),
            (Some(entry), Site::Launch { variable, .. }) => variable == entry,
            (Some(entry), Site::Log { entry: own, .. }) => own == entry,
            (Some(entry), Site::File { within: Some(within), .. }) => within.rsplit(' ').next() == Some(entry),
            (Some(_), Site::File { .. } | Site::Probe(_)) => false,
            (None, _) => true,
        };
        sites.filter(wanted).cloned().collect()
    }
}

/// Rules in the order of their ids.
#[derive(Debug, Default)]
pub struct RuleSet {
    rules: BTreeMap<String, Rule>,
    /// The built-in rules, present in this set or not.
    shipped: Option<&'static Shipped>,
}

impl RuleSet {
    /// The built-in rules.
    pub fn builtin(shipped: &'static Shipped) -> Result<Self, DocumentError> {
        let rules = shipped.rules().map(|(id, json)| Ok((id.to_owned(), Rule::builtin(id, json, shipped)?)));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, shipped: Some(shipped) })
    }

    /// The archive that the rules come from in place of the program's.
    pub(crate) fn archive(&self) -> Option<&PolicyInForce> {
        self.shipped.and_then(|shipped| shipped.archive.as_ref())
    }

    /// Returns true if a built-in rule has this id, also one that is not in the set.
    pub fn has_builtin(&self, id: &str) -> bool {
        self.shipped.is_some_and(|shipped| shipped.rules().any(|(known, _)| known == id))
    }

    /// Parses rules for a test from pairs of id and text.
    #[doc(hidden)]
    pub fn from_yaml(documents: &[(&str, &str)]) -> Result<Self, DocumentError> {
        let rules = documents
            .iter()
            .map(|(id, text)| Ok(((*id).to_owned(), Rule::parse(id, Document { name: &format!("{id}.yaml"), text })?)));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, shipped: None })
    }

    /// Adds the rule of a document. `id` is the id that the file's folder and name give.
    pub fn add(&mut self, id: &str, document: Document<'_>) -> Result<(), DocumentError> {
        let rule = Rule::parse(id, document)?;
        if let Some(other) = self.rules.get(&rule.id) {
            let what = if self.has_builtin(&other.id) {
                "a built-in rule has this id".to_owned()
            } else {
                format!("another rule has this id: {}", other.file)
            };
            let help = Some("choose another name: waivers and baselines refer to ids".to_owned());
            return Err(document.mistake_of("id", what).help(help));
        }
        self.rules.insert(rule.id.clone(), rule);
        Ok(())
    }

    /// Keeps the rules for which `wanted` returns true.
    #[must_use]
    pub fn only(mut self, wanted: impl Fn(&Rule) -> bool) -> Self {
        self.rules.retain(|_, rule| wanted(rule));
        self
    }

    /// The rule with this id.
    pub fn get(&self, id: &str) -> Option<&Rule> {
        self.rules.get(id)
    }

    /// Adds a rule and returns true, or returns false if its id is taken.
    pub fn insert(&mut self, rule: Rule) -> bool {
        let is_new = !self.rules.contains_key(&rule.id);
        if is_new {
            self.rules.insert(rule.id.clone(), rule);
        }
        is_new
    }

    /// Iterates mutably over all rules, sorted by id.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Rule> {
        self.rules.values_mut()
    }

    /// Iterates over all rules, sorted by id.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.values()
    }
}

/// Returns true if a text is a valid name of an area or a rule, which appears in paths, patterns and URLs.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| matches!(c, 'a'..='z' | '0'..='9' | '-'))
}

/// Judges an image and returns exactly one judgement for each rule. The fixes call the image by these names.
pub fn judge<'r>(rules: &'r RuleSet, facts: &Facts, names: &ImageNames) -> Vec<Judgement<'r>> {
    let scope = eval::Scope::new(facts);
    rules.iter().map(|rule| Judgement::new(rule, rule.judge(&scope, names))).collect()
}

impl Rule {
    fn judge(&self, scope: &eval::Scope<'_>, names: &ImageNames) -> Outcome {
        match self.applies.as_ref().map_or(ConditionTruth::True, |applies| scope.eval(applies)) {
            ConditionTruth::True => {}
            ConditionTruth::False => return Outcome::NotApplicable,
            ConditionTruth::Unknown(gaps) => return Outcome::Unknown(gaps),
        }
        match scope.eval(&self.check) {
            ConditionTruth::True => Outcome::Pass,
            ConditionTruth::Unknown(gaps) => Outcome::Unknown(gaps),
            ConditionTruth::False => {
                let mut at: Vec<Site> =
                    self.evidence.iter().flat_map(|evidence| evidence.sites(scope.facts())).collect();
                at.sort();
                at.dedup();
                let fix = self.remedy.fill(scope, &FixSubject { names, at: &at });
                Outcome::Fail(Finding { message: self.message.fill(scope.facts()), at, fix, note: None })
            }
        }
    }
}

#[cfg(test)]
mod tests;
