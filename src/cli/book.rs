//! Which rules an image is judged by: those that ship, a profile, and the policy file, which is found upward from here.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::document::Document;
use crate::facts::Facts;
use crate::judge::policy::{Policy, Subject, Today};
use crate::judge::rules::{Judgement, Rule, RuleSet, judge};
use crate::model::ImageSummary;
use crate::model::{Digest, Severity};

use super::Failure;
use super::files::{read, rule_files};

/// What a policy file is called.
const NAMES: [&str; 2] = ["ncclcheck.yaml", "ncclcheck.yml"];

#[derive(Clone, Debug, Default, Args)]
pub(super) struct Judged {
    /// Which rules, how severe: ci, audit, preflight, single-node, multi-node-rdma ...; `ncclcheck rules profiles` lists them
    #[arg(long, value_name = "NAME", help_heading = "Policy")]
    pub(super) profile: Option<String>,
    /// Policy file [default: ncclcheck.yaml in this folder or one above, up to the repository's]
    #[arg(long, value_name = "FILE", help_heading = "Policy")]
    pub(super) config: Option<PathBuf>,
    /// No policy file
    #[arg(long, conflicts_with = "config", help_heading = "Policy")]
    pub(super) no_config: bool,
}

/// A policy, and the rules that it makes count.
#[derive(Debug)]
pub(super) struct Book {
    policy: Policy,
    pub(super) rules: RuleSet,
    /// What was taken into account besides the rules that ship.
    about: Option<String>,
}

impl Book {
    /// All rules that count.
    pub(super) fn open(judged: &Judged) -> Result<Self, Failure> {
        let mut policy = match &judged.profile {
            Some(name) => Policy::of_profile(name).map_err(|error| Failure::Usage(format!("--profile: {error}")))??,
            None => Policy::default(),
        };
        let mut rules = RuleSet::builtin()?;
        let file = match &judged.config {
            Some(file) => Some(file.clone()),
            None if judged.no_config => None,
            None => found(),
        };
        let mut about: Vec<String> = judged.profile.iter().map(|name| format!("the profile {name}")).collect();
        if let Some(file) = &file {
            let (name, text) = (file.display().to_string(), read(file)?);
            let document = Document { name: &name, text: &text };
            policy.add(document)?;
            let base = file.parent().unwrap_or(Path::new(""));
            for folder in policy.folders() {
                let misplaced = |error: Failure| Failure::Document(document.mistake(folder, error.to_string()));
                for found in rule_files(&base.join(&folder.value)).map_err(misplaced)? {
                    let text = read(&found.path)?;
                    rules.add(&found.id, Document { name: &found.path.display().to_string(), text: &text })?;
                }
            }
            about.push(name);
        }
        let all = rules.iter().count();
        let rules = policy.apply(rules)?;
        if rules.iter().next().is_none() {
            return Err(Failure::Usage("the policy leaves no rule: nothing would be judged".to_owned()));
        }
        let off = all - rules.iter().filter(|rule| !rule.is_required()).count();
        let off = if off > 0 {
            format!(", {off} {} off", if off == 1 { "rule is" } else { "rules are" })
        } else {
            String::new()
        };
        let about = (!about.is_empty()).then(|| format!("judged by {}{off}", about.join(" and ")));
        Ok(Self { policy, rules, about })
    }

    /// The same without rules that another kind of check asks.
    pub(super) fn only(self, wanted: impl Fn(&Rule) -> bool) -> Self {
        Self { rules: self.rules.only(wanted), ..self }
    }

    /// The severity from which findings fail: as typed, else as the policy says, else errors.
    pub(super) fn fail_on(&self, typed: Option<Severity>) -> Severity {
        typed.or(self.policy.fail_on()).unwrap_or(Severity::Error)
    }

    /// Judges an image; what the policy accepts is told apart, and what became of its waivers.
    pub(super) fn judge(&self, facts: &Facts, image: &ImageSummary) -> (Vec<Judgement<'_>>, Vec<String>) {
        let subject = Subject {
            names: [&image.reference, &image.source],
            digests: [image.manifest.as_ref().map(Digest::as_str), image.config.as_ref().map(Digest::as_str)],
        };
        let (judgements, notices) = self.policy.accept(judge(&self.rules, facts), &subject, Today::now());
        (judgements, self.about.iter().cloned().chain(notices).collect())
    }
}

/// The policy file that is nearest: in the working directory, or, in a repository, in a folder above it up to the repository's
/// top. Outside of repositories, folders above are anybody's.
fn found() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let is_in_repository = here.ancestors().any(|above| above.join(".git").exists());
    let mut folder = PathBuf::new();
    for above in here.ancestors() {
        if let Some(name) = NAMES.iter().find(|name| above.join(name).is_file()) {
            return Some(folder.join(name));
        }
        if !is_in_repository || above.join(".git").exists() {
            return None;
        }
        folder.push("..");
    }
    None
}
