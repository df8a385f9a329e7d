//! The rules that judge an image: the built-in ones, as a profile and a policy file adjust them.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use super::in_force::{PolicyInForce, RulesInForce};
use super::policy::{NoProfile, Policy, PolicyError, PolicyText, Subject, Today};
use super::rules::{ImageNames, Judgement, Rule, RuleFile, RuleSet, judge};
use super::shipped::Shipped;
use facts::Facts;
use model::document::{Document, DocumentError, FileError, read_text};
use model::{Digest, FailOn, ImageSummary, Limits};

/// A policy and the rules that it leaves in force.
#[derive(Debug)]
pub struct Rulebook {
    policy: Policy,
    rules: RuleSet,
    /// Names the profile and the policy file; the first notice of every report. `None` with the built-in rules alone.
    about: Option<String>,
    /// Number of rules that are switched off.
    off: usize,
    profile: Option<String>,
    policies: Vec<PolicyInForce>,
    in_force: OnceLock<RulesInForce>,
}

/// Reason why the rules could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum RulebookError {
    /// No profile has this name.
    #[error("--profile: {0}")]
    Profile(#[from] NoProfile),
    /// A policy or a rule is invalid.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A policy or a rule cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
    /// A policy that another builds on is invalid or cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// The policy turns every rule off.
    #[error("the policy turns every rule off: nothing would be judged")]
    Empty,
}

/// A profile, and the policies that were read: everything that the rules depend on besides the program, and the folders
/// of rules that the policies name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RulebookSource {
    profile: Option<String>,
    policies: Vec<PolicyText>,
    /// The archive of rules that replaces those of the program: its path, or its reference in a registry.
    #[serde(default)]
    pub archive: Option<String>,
}

impl RulebookSource {
    /// The policies must be [with their bases](PolicyText::with_bases).
    pub const fn new(profile: Option<String>, policies: Vec<PolicyText>, archive: Option<String>) -> Self {
        Self { profile, policies, archive }
    }

    /// Adds policies that take precedence.
    pub fn add(&mut self, policies: impl IntoIterator<Item = PolicyText>) {
        self.policies.extend(policies);
    }

    /// Loads the selected rules.
    pub fn open(&self, shipped: &'static Shipped) -> Result<Rulebook, RulebookError> {
        Rulebook::new(shipped, self.profile.as_deref(), &self.policies)
    }

    /// The profile and the texts of the policies.
    pub fn identity(&self) -> String {
        let policies = self.policies.iter().map(|policy| policy.document().text);
        self.profile.as_deref().into_iter().chain(policies).collect::<Vec<_>>().join("\0")
    }

    /// The folders of rules that the policies name. A policy that is wrong is reported where the rules are loaded.
    pub fn folders(&self) -> Vec<PathBuf> {
        self.policies.iter().flat_map(|policy| policy.folders().unwrap_or_default()).collect()
    }
}

impl Rulebook {
    /// The built-in rules with their own severities.
    pub fn builtin(shipped: &'static Shipped) -> Result<Self, RulebookError> {
        Self::new(shipped, None, [])
    }

    /// Adjusts the built-in rules by the profile, then by the policies, which may name folders with more rules. A later
    /// policy takes precedence.
    pub fn new<'p>(
        shipped: &'static Shipped,
        profile: Option<&str>,
        policies: impl IntoIterator<Item = &'p PolicyText>,
    ) -> Result<Self, RulebookError> {
        let mut policy =
            profile.map_or_else(|| Ok(Ok(Policy::default())), |name| Policy::of_profile(name, shipped))??;
        let mut rules = RuleSet::builtin(shipped)?;
        let mut read = Vec::new();
        let archive = shipped.archive.iter().map(|archive| format!("the rules {}", archive.path));
        let mut about: Vec<String> = archive.chain(profile.iter().map(|name| format!("the profile {name}"))).collect();
        for file in policies {
            add_file(file, shipped, &mut policy, &mut rules)?;
            about.push(file.path.display().to_string());
            read.push(PolicyInForce::from(file));
        }
        let all = rules.iter().count();
        let rules = policy.apply(rules)?;
        if rules.iter().next().is_none() {
            return Err(RulebookError::Empty);
        }
        let off = all - rules.iter().filter(|rule| !rule.is_required()).count();
        let without = match off {
            0 => String::new(),
            1 => ", 1 rule is off".to_owned(),
            off => format!(", {off} rules are off"),
        };
        let about = (!about.is_empty()).then(|| format!("judged by {}{without}", about.join(" and ")));
        let profile = profile.map(str::to_owned);
        let in_force = OnceLock::new();
        Ok(Self { policy, rules, about, off, profile, policies: read, in_force })
    }

    /// The rules in force.
    pub fn rules(&self) -> &RuleSet {
        &self.rules
    }

    /// Keeps the rules for which `wanted` returns true.
    #[must_use]
    pub fn only(self, wanted: impl Fn(&Rule) -> bool) -> Self {
        Self { rules: self.rules.only(wanted), in_force: OnceLock::new(), ..self }
    }

    /// What identifies these rules and the policies that selected them.
    pub fn in_force(&self) -> &RulesInForce {
        self.in_force.get_or_init(|| RulesInForce::of(&self.rules, self.off, self.profile.as_deref(), &self.policies))
    }

    /// Lowest severity that fails an image: `asked`, else the policy's, else error.
    pub fn fail_on(&self, asked: Option<FailOn>) -> FailOn {
        asked.or(self.policy.fail_on()).unwrap_or_default()
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
fn add_file(
    file: &PolicyText,
    shipped: &Shipped,
    policy: &mut Policy,
    rules: &mut RuleSet,
) -> Result<(), RulebookError> {
    let document = file.document();
    policy.add(document, shipped)?;
    if let Some(base) = policy.base().filter(|_| !file.has_bases()) {
        return Err(document.mistake(base, "this policy was not read: PolicyText::with_bases reads it").into());
    }
    for folder in policy.folders() {
        let found = RuleFile::find(&file.file(folder)?);
        for rule in found.map_err(|error| document.mistake(folder, error.to_string()))? {
            let text = read_text(&rule.path, &Limits::default())?;
            rules.add(&rule.id, Document { name: &rule.path.display().to_string(), text: &text })?;
        }
    }
    Ok(())
}
