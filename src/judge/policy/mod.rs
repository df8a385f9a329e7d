//! What an organisation makes of the rules: which count and how much, what else it requires, and what it has accepted. A file
//! that people write, `ncclcheck.yaml`, over a profile that ships.

mod baseline;
mod file;
mod pattern;
mod waiver;

use crate::document::{Document, DocumentError, Spanned, shipped, suggestion};
use crate::judge::rules::{Judgement, Required, Rule, RuleSet};
use crate::model::Severity;

pub use baseline::Baseline;
pub use file::schema;
pub use waiver::{Subject, Today};

use file::{PolicyFile, Requirement, RuleLevel};
use pattern::RulePattern;
use waiver::Waiver;

/// A policy.
#[derive(Debug, Default)]
pub struct Policy {
    /// The profile, if one is chosen, and then the file, whose words weigh more.
    layers: Vec<PolicyLayer>,
}

/// A file of a policy.
#[derive(Debug)]
struct PolicyLayer {
    name: String,
    text: String,
    file: PolicyFile,
    waivers: Vec<Waiver>,
}

/// A profile that ships.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// What `--profile` calls it.
    pub name: &'static str,
    text: &'static str,
}

impl Profile {
    /// All of them, by name.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<_> = shipped::profiles().map(|(name, text)| Self { name, text }).collect();
        all.sort_by_key(|profile| profile.name);
        all
    }

    /// What it is for.
    pub fn about(self) -> Result<String, DocumentError> {
        Ok(self.layer()?.file.about)
    }

    fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| profile.name == name)
    }

    fn layer(self) -> Result<PolicyLayer, DocumentError> {
        PolicyLayer::read(Document { name: &format!("profile {}", self.name), text: self.text })
    }
}

/// A name that no profile has, and what is near.
#[derive(Debug, thiserror::Error)]
#[error("there is no profile '{name}'; there are {known}{}", help.as_ref().map(|help| format!("\n  help: {help}")).unwrap_or_default())]
pub struct NoProfile {
    name: String,
    known: String,
    help: Option<String>,
}

impl NoProfile {
    fn new(name: &str) -> Self {
        let known: Vec<_> = Profile::all().into_iter().map(|profile| profile.name).collect();
        let help = suggestion(name, known.iter().copied());
        Self { name: name.to_owned(), known: known.join(", "), help }
    }
}

impl Policy {
    /// A profile alone.
    pub fn of_profile(name: &str) -> Result<Result<Self, DocumentError>, NoProfile> {
        let profile = Profile::find(name).ok_or_else(|| NoProfile::new(name))?;
        Ok(profile.layer().map(|layer| Self { layers: vec![layer] }))
    }

    /// Puts a file over what there is; its own profile counts if none was chosen before.
    pub fn add(&mut self, document: Document<'_>) -> Result<(), DocumentError> {
        let layer = PolicyLayer::read(document)?;
        if let (Some(name), true) = (&layer.file.profile, self.layers.is_empty()) {
            let profile = Profile::find(&name.value).ok_or_else(|| {
                let mut error = NoProfile::new(&name.value);
                let help = error.help.take();
                document.mistake(name, error.to_string()).help(help)
            })?;
            self.layers.push(profile.layer()?);
        }
        self.layers.push(layer);
        Ok(())
    }

    /// Folders of rules that it names, as they are written: relative to the file.
    pub fn folders(&self) -> impl Iterator<Item = &Spanned<String>> {
        self.layers.iter().flat_map(|layer| &layer.file.rules.folders)
    }

    /// The severity from which findings fail a check, where it says so.
    pub fn fail_on(&self) -> Option<Severity> {
        self.layers.iter().rev().find_map(|layer| layer.file.fail_on)
    }

    /// The rules that count, with the severities that the policy gives them.
    pub fn apply(&self, mut rules: RuleSet) -> Result<RuleSet, DocumentError> {
        for layer in &self.layers {
            for requirement in &layer.file.require {
                layer.require(requirement, &mut rules)?;
            }
        }
        for layer in &self.layers {
            let only = layer.patterns(&layer.file.rules.only, &rules)?;
            let levels = layer.file.rules.severity.0.iter();
            let levels = levels.map(|(pattern, level)| Ok((layer.pattern(pattern, &rules)?, level.value)));
            let levels = levels.collect::<Result<Vec<_>, DocumentError>>()?;
            layer.waivers.iter().try_for_each(|waiver| layer.pattern(&waiver.rule, &rules).map(|_| ()))?;
            // Of several that match, the last counts: the general first, the particular behind it.
            let level = |rule: &Rule| {
                levels.iter().rev().find(|(pattern, _)| pattern.matches(&rule.id)).map(|(_, level)| *level)
            };
            rules = rules.only(|rule| {
                let is_wanted =
                    only.is_empty() || rule.is_required() || only.iter().any(|pattern| pattern.matches(&rule.id));
                level(rule).map_or(is_wanted, |level| level != RuleLevel::Off)
            });
            for rule in rules.iter_mut() {
                rule.severity = level(rule).and_then(RuleLevel::severity).unwrap_or(rule.severity);
            }
        }
        Ok(rules)
    }

    /// Takes what was accepted out of the failures, and tells which waivers did nothing for this image.
    pub fn accept<'r>(
        &self,
        judgements: Vec<Judgement<'r>>,
        image: &Subject<'_>,
        today: Today,
    ) -> (Vec<Judgement<'r>>, Vec<String>) {
        let waivers: Vec<_> = self.layers.iter().flat_map(|layer| &layer.waivers).collect();
        waiver::accept(&waivers, judgements, image, today)
    }
}

impl PolicyLayer {
    fn read(document: Document<'_>) -> Result<Self, DocumentError> {
        if document.text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
            return Err(document.mistake_of("", "there is nothing in this file"));
        }
        let mut file: PolicyFile = document.parse()?;
        let waivers = std::mem::take(&mut file.waivers).into_iter().map(|entry| Waiver::read(entry, document));
        let waivers = waivers.collect::<Result<_, _>>()?;
        Ok(Self { name: document.name.to_owned(), text: document.text.to_owned(), file, waivers })
    }

    fn document(&self) -> Document<'_> {
        Document { name: &self.name, text: &self.text }
    }

    fn patterns(&self, texts: &[Spanned<String>], rules: &RuleSet) -> Result<Vec<RulePattern>, DocumentError> {
        texts.iter().map(|text| self.pattern(text, rules)).collect()
    }

    /// A pattern, which must match a rule: one that matches none is a slip of the pen.
    fn pattern(&self, text: &Spanned<String>, rules: &RuleSet) -> Result<RulePattern, DocumentError> {
        let pattern = RulePattern::new(&text.value);
        if rules.iter().any(|rule| pattern.matches(&rule.id)) || RuleSet::source(&text.value).is_some() {
            return Ok(pattern);
        }
        let help = suggestion(&text.value, rules.iter().map(|rule| &*rule.id));
        let help = help
            .unwrap_or_else(|| "`ncclcheck rules list` shows those there are; area/* names all of an area".to_owned());
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
            .mistake(that, "this is required already")
            .help(Some("leave it out, or give it an id of its own".to_owned())))
    }
}

#[cfg(test)]
mod tests;
