//! Policies: which rules count and how much, which further conditions hold, and which findings are waived. A policy is
//! a file that users write, `ncclcheck.yaml`, on top of a built-in profile.

mod baseline;
mod derived;
mod file;
mod patterns;
mod text;
mod waiver;

use crate::rules::{Judgement, Required, Rule, RuleSet};
use crate::shipped::Shipped;
use model::document::{Document, DocumentError, Spanned};
use model::{FailOn, Severity, suggestion};

pub use baseline::Baseline;
pub use derived::{of_dockerfile, of_options};
pub use file::schema;
pub use patterns::is_rule;
pub use text::{PolicyError, PolicyText};
pub use waiver::{Subject, Today};

use file::{PolicyFile, Requirement, RuleLevel};
use waiver::Waiver;

/// What a policy is, for those who gave another file.
pub const POLICY_FORM: &str =
    "a policy has lines such as `fail-on: warning`; `ncclcheck rules schema policy` prints its schema";

/// A policy.
#[derive(Debug, Default)]
pub struct Policy {
    /// The profile, if one is chosen.
    profile: Option<PolicyLayer>,
    /// True if the user chose the profile, and no file can.
    is_chosen: bool,
    /// The files; a later one takes precedence over the profile and the earlier ones.
    files: Vec<PolicyLayer>,
}

/// One file of a policy.
#[derive(Debug)]
struct PolicyLayer {
    name: String,
    text: String,
    file: PolicyFile,
    waivers: Vec<Waiver>,
}

/// A built-in profile.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// Name of the profile, as `--profile` takes it.
    pub name: &'static str,
    text: &'static str,
}

impl Profile {
    /// All profiles, sorted by name.
    pub fn all(shipped: &Shipped) -> Vec<Self> {
        let mut all: Vec<_> = shipped.profiles().map(|(name, text)| Self { name, text }).collect();
        all.sort_by_key(|profile| profile.name);
        all
    }

    /// Purpose of the profile, in one line.
    pub fn about(self) -> Result<String, DocumentError> {
        Ok(self.layer()?.file.about)
    }

    fn find(name: &str, shipped: &Shipped) -> Result<Self, NoProfile> {
        let all = Self::all(shipped);
        all.iter().copied().find(|profile| profile.name == name).ok_or_else(|| NoProfile::new(name, &all))
    }

    /// Checks the text of a profile.
    pub(crate) fn check(document: Document<'_>) -> Result<(), DocumentError> {
        PolicyLayer::read(document).map(drop)
    }

    fn layer(self) -> Result<PolicyLayer, DocumentError> {
        PolicyLayer::read(Document { name: &format!("profile {}", self.name), text: self.text })
    }
}

/// A name that no profile has, with a suggestion if one is close.
#[derive(Debug, thiserror::Error)]
#[error("there is no profile '{name}'; available: {known}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
pub struct NoProfile {
    name: String,
    known: String,
    help: Option<String>,
}

impl NoProfile {
    fn new(name: &str, all: &[Profile]) -> Self {
        let known: Vec<_> = all.iter().map(|profile| profile.name).collect();
        let help = suggestion(name, known.iter().copied());
        Self { name: name.to_owned(), known: known.join(", "), help }
    }
}

impl Policy {
    /// The policy of a profile alone.
    pub fn of_profile(name: &str, shipped: &Shipped) -> Result<Result<Self, DocumentError>, NoProfile> {
        let profile = Profile::find(name, shipped)?;
        Ok(profile.layer().map(|layer| Self { profile: Some(layer), is_chosen: true, files: Vec::new() }))
    }

    /// Adds a file that takes precedence over the earlier ones. The profile of the last file that names one counts,
    /// unless the user chose one.
    pub fn add(&mut self, document: Document<'_>, shipped: &Shipped) -> Result<(), DocumentError> {
        let layer = PolicyLayer::read(document)?;
        if let (Some(name), true) = (&layer.file.profile, !self.is_chosen) {
            let profile = Profile::find(&name.value, shipped).map_err(|mut error| {
                let help = error.help.take();
                document.mistake(name, error.to_string()).help(help)
            })?;
            self.profile = Some(profile.layer()?);
        }
        self.files.push(layer);
        Ok(())
    }

    /// The profile and the files, in ascending precedence.
    fn layers(&self) -> impl DoubleEndedIterator<Item = &PolicyLayer> {
        self.profile.iter().chain(&self.files)
    }

    /// Folders of rules that the last file names, relative to it.
    pub fn folders(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.files.last().into_iter().flat_map(|layer| &layer.file.rules.folders)
    }

    /// The first policy that the last file builds on.
    pub fn base(&self) -> Option<&Spanned<String>> {
        self.files.last()?.file.extends.first()
    }

    /// Lowest severity that fails a check, if the policy sets one.
    pub fn fail_on(&self) -> Option<FailOn> {
        self.layers().rev().find_map(|layer| layer.file.fail_on)
    }

    /// Adds the policy's requirements, drops rules that are off, and sets the severities of the rest.
    pub fn apply(&self, mut rules: RuleSet) -> Result<RuleSet, DocumentError> {
        for layer in self.layers() {
            for requirement in &layer.file.require {
                layer.require(requirement, &mut rules)?;
            }
        }
        for layer in self.layers() {
            let only = &layer.file.rules.only;
            let levels = &layer.file.rules.severity.0;
            let waived = layer.waivers.iter().map(|waiver| &waiver.rule);
            let patterns = only.iter().chain(levels.iter().map(|(pattern, _)| pattern)).chain(waived);
            patterns.into_iter().try_for_each(|pattern| layer.check_pattern(pattern, &rules))?;
            // The last match wins, so that a file can list the general pattern first and exceptions after it.
            let level = |rule: &Rule| {
                levels.iter().rev().find(|(pattern, _)| is_rule(&pattern.value, &rule.id)).map(|(_, level)| level.value)
            };
            rules = rules.only(|rule| {
                let is_named = || only.iter().any(|pattern| is_rule(&pattern.value, &rule.id));
                let is_wanted = only.is_empty() || rule.is_required() || is_named();
                level(rule).map_or(is_wanted, |level| level != RuleLevel::Off)
            });
            for rule in rules.iter_mut() {
                rule.severity = level(rule).and_then(RuleLevel::severity).unwrap_or(rule.severity);
            }
        }
        Ok(rules)
    }

    /// Applies the waivers to the judgements, and returns a notice for each waiver that had no effect on this image.
    pub fn accept<'r>(
        &self,
        judgements: Vec<Judgement<'r>>,
        image: &Subject<'_>,
        today: Today,
    ) -> (Vec<Judgement<'r>>, Vec<String>) {
        let waivers: Vec<_> = self.layers().flat_map(|layer| &layer.waivers).collect();
        waiver::accept(&waivers, judgements, image, today)
    }
}

impl PolicyLayer {
    fn read(document: Document<'_>) -> Result<Self, DocumentError> {
        if document.text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Err(document.mistake_of("", "this file is empty"));
        }
        let mut file: PolicyFile = document.parse().map_err(|error| error.or_help(POLICY_FORM))?;
        let waivers = std::mem::take(&mut file.waivers).into_iter().map(|entry| Waiver::read(entry, document));
        let waivers = waivers.collect::<Result<_, _>>()?;
        Ok(Self { name: document.name.to_owned(), text: document.text.to_owned(), file, waivers })
    }

    fn document(&self) -> Document<'_> {
        Document { name: &self.name, text: &self.text }
    }

    /// Refuses a pattern that matches no rule, which is most likely a typing error.
    fn check_pattern(&self, text: &Spanned<String>, rules: &RuleSet) -> Result<(), DocumentError> {
        if rules.iter().any(|rule| is_rule(&text.value, &rule.id)) || rules.has_builtin(&text.value) {
            return Ok(());
        }
        let help = suggestion(&text.value, rules.iter().map(|rule| &*rule.id));
        let help = help.unwrap_or_else(|| {
            "`ncclcheck rules list` lists the rules; AREA/* matches all rules of an area".to_owned()
        });
        Err(self.document().mistake(text, format!("there is no rule '{}'", text.value)).help(Some(help)))
    }

    fn require(&self, requirement: &Requirement, rules: &mut RuleSet) -> Result<(), DocumentError> {
        let that = &requirement.that;
        let required = Required {
            id: requirement.id.as_ref().map(|id| &*id.value),
            that: &that.value,
            because: requirement.because.as_deref(),
            severity: requirement.severity.unwrap_or(Severity::Error),
            place: &format!("{}:{}", self.name, that.referenced.line()),
        };
        let rule = Rule::required(&required)
            .map_err(|wrong| self.document().mistake_within(that, wrong.part, wrong.what).help(wrong.help))?;
        if rules.insert(rule) {
            return Ok(());
        }
        Err(self
            .document()
            .mistake(that, "this requirement is a duplicate")
            .help(Some("remove it, or give it an id of its own".to_owned())))
    }
}

#[cfg(test)]
mod tests;
