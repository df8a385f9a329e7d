//! What verdicts depend on besides the image. It is part of the plan, and a worker with other rules refuses to work.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use judge::Rulebook;
use judge::rules::Rule;
use layer::cache::Scanner;
use model::{FailOn, Limits};

use super::AuditError;
use super::item::text_id;

/// The program, the rules and the policy of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[non_exhaustive]
pub struct AuditRules {
    /// Version of the program.
    pub program: String,
    /// Version of the scanner: the code that reads layers, with its limits.
    pub scanner: String,
    /// Digest of the profile and of the texts of the policies.
    pub policy: String,
    /// Digest of what each rule in force decides by: its conditions, severity and owner.
    pub rules: BTreeMap<String, String>,
    /// Hosts that images are judged for, as `--host` describes them.
    #[serde(default)]
    pub hosts: Vec<String>,
    /// Lowest severity that fails an image, if it is not the policy's.
    #[serde(default)]
    pub fail_on: Option<FailOn>,
}

impl AuditRules {
    /// The rules of a rulebook. `policy` are the profile and the texts of the policies.
    pub fn of(rulebook: &Rulebook, policy: &str, hosts: Vec<String>, fail_on: Option<FailOn>, limits: &Limits) -> Self {
        let version = env!("CARGO_PKG_VERSION");
        let program = rulebook
            .in_force()
            .archive
            .as_ref()
            .map_or_else(|| version.to_owned(), |archive| format!("{version} with the rules {}", archive.digest));
        Self {
            program,
            scanner: Scanner::of(limits).to_string(),
            policy: text_id(policy),
            rules: rulebook.rules().iter().map(|rule| (rule.id.clone(), digest(rule))).collect(),
            hosts,
            fail_on,
        }
    }

    /// Checks that a worker judges by the rules of a plan.
    ///
    /// # Errors
    /// It has another program, scanner or rules; the error names them.
    pub fn require(&self, own: &Self) -> Result<(), AuditError> {
        let differing = |name: &str, planned: &str, own: &str| {
            (planned != own).then(|| format!("the plan has the {name} {planned}, this worker {own}"))
        };
        let found = differing("version", &self.program, &own.program)
            .or_else(|| differing("scanner", &self.scanner, &own.scanner))
            .or_else(|| {
                let changed = changed(&self.rules, &own.rules);
                (!changed.is_empty()).then(|| format!("these rules differ from the plan's: {}", changed.join(", ")))
            });
        match found {
            None => Ok(()),
            Some(why) => Err(AuditError::Usage(format!(
                "{why}\n  help: run the program of the plan where the rules that its policies name are the same, or plan a new run: ncclcheck audit plan --again"
            ))),
        }
    }
}

/// Rules that are in one of two sets alone, or differ.
pub(super) fn changed(a: &BTreeMap<String, String>, b: &BTreeMap<String, String>) -> Vec<String> {
    let mut names: Vec<_> = a.keys().chain(b.keys()).filter(|id| a.get(*id) != b.get(*id)).cloned().collect();
    names.sort();
    names.dedup();
    names
}

fn digest(rule: &Rule) -> String {
    let (applies, check) = rule.conditions();
    let text = format!("{:?} {:?} {:?} {:?} {:?}", applies, check, rule.severity, rule.owner, rule.explains);
    text_id(&text).chars().take(16).collect()
}
