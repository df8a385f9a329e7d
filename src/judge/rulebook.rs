//! The rules that judge an image: the built-in ones, as a profile and a policy file adjust them.

use std::path::{Path, PathBuf};

use super::policy::{NoProfile, Policy, PolicyText, Subject, Today};
use super::rules::{ImageNames, Judgement, Rule, RuleFile, RuleSet, judge};
use crate::document::{Document, DocumentError, FileError, read_text};
use crate::facts::Facts;
use crate::model::{Digest, ImageSummary, Limits, Severity};

/// Names of a policy file.
const NAMES: [&str; 2] = ["ncclcheck.yaml", "ncclcheck.yml"];

/// A policy and the rules that it leaves in force.
#[derive(Debug)]
pub struct Rulebook {
    policy: Policy,
    rules: RuleSet,
    /// Names the profile and the policy file; the first notice of every report. `None` with the built-in rules alone.
    about: Option<String>,
}

/// Reason why the rules could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RulebookError {
    /// No profile has this name.
    #[error(transparent)]
    Profile(#[from] NoProfile),
    /// A policy or a rule is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A policy or a rule cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// The policy turns every rule off.
    #[error("the policy turns every rule off: nothing would be judged")]
    Empty,
}

impl Rulebook {
    /// The built-in rules with their own severities.
    pub fn builtin() -> Result<Self, RulebookError> {
        Self::new(None, None)
    }

    /// Adjusts the built-in rules by the profile, then by the policy file, which may name folders with more rules.
    pub fn new(profile: Option<&str>, policy_file: Option<&PolicyText>) -> Result<Self, RulebookError> {
        let mut policy = profile.map_or_else(|| Ok(Ok(Policy::default())), Policy::of_profile)??;
        let mut rules = RuleSet::builtin()?;
        let mut about: Vec<String> = profile.iter().map(|name| format!("the profile {name}")).collect();
        if let Some(file) = policy_file {
            add_file(file, &mut policy, &mut rules)?;
            about.push(file.path.display().to_string());
        }
        let all = rules.iter().count();
        let rules = policy.apply(rules)?;
        if rules.iter().next().is_none() {
            return Err(RulebookError::Empty);
        }
        let off = match all - rules.iter().filter(|rule| !rule.is_required()).count() {
            0 => String::new(),
            1 => ", 1 rule is off".to_owned(),
            off => format!(", {off} rules are off"),
        };
        let about = (!about.is_empty()).then(|| format!("judged by {}{off}", about.join(" and ")));
        Ok(Self { policy, rules, about })
    }

    /// Finds the policy file of a folder: its own or, inside a repository, the nearest one above it up to the
    /// repository's top. Outside a repository, the parent folders may belong to other users. The path is relative to
    /// the folder.
    pub fn policy_file(folder: &Path) -> Option<PathBuf> {
        let is_in_repository = folder.ancestors().any(|above| above.join(".git").exists());
        let mut way_up = PathBuf::new();
        for above in folder.ancestors() {
            if let Some(name) = NAMES.iter().find(|name| above.join(name).is_file()) {
                return Some(way_up.join(name));
            }
            if !is_in_repository || above.join(".git").exists() {
                return None;
            }
            way_up.push("..");
        }
        None
    }

    /// The rules in force.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Keeps the rules for which `wanted` returns true.
    #[must_use]
    pub fn only(self, wanted: impl Fn(&Rule) -> bool) -> Self {
        Self { rules: self.rules.only(wanted), ..self }
    }

    /// Lowest severity that fails an image: `asked`, else the policy's, else error.
    pub fn fail_on(&self, asked: Option<Severity>) -> Severity {
        asked.or(self.policy.fail_on()).unwrap_or(Severity::Error)
    }

    /// Returns one judgement for each rule, with the policy's waivers applied, and notices about the policy. The fixes
    /// call the image by these names.
    pub fn judge(&self, facts: &Facts, image: &ImageSummary, names: &ImageNames) -> (Vec<Judgement<'_>>, Vec<String>) {
        let subject = Subject {
            names: [&image.reference, &image.source],
            digests: [image.manifest.as_ref().map(Digest::as_str), image.config.as_ref().map(Digest::as_str)],
        };
        let (judgements, notices) = self.policy.accept(judge(&self.rules, facts, names), &subject, Today::now());
        (judgements, self.about.iter().cloned().chain(notices).collect())
    }
}

/// Adds a policy file to the policy, and the rules of the folders that it names; their paths are relative to the file.
fn add_file(file: &PolicyText, policy: &mut Policy, rules: &mut RuleSet) -> Result<(), RulebookError> {
    let document = file.document();
    policy.add(document)?;
    let base = file.path.parent().unwrap_or(Path::new(""));
    for folder in policy.folders() {
        let found = RuleFile::find(&base.join(&folder.value));
        for rule in found.map_err(|error| document.mistake(folder, error.to_string()))? {
            let text = read_text(&rule.path, &Limits::default())?;
            rules.add(&rule.id, Document { name: &rule.path.display().to_string(), text: &text })?;
        }
    }
    Ok(())
}
