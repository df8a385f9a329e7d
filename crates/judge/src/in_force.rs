//! What identifies the rules and policies that judged an image.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::policy::PolicyText;
use super::rules::RuleSet;
use model::Hasher;

/// The rules and policies that judged an image. Two reports with the same value differ only by their images.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Rules")]
pub struct RulesInForce {
    /// Number of rules.
    pub count: usize,
    /// Number of rules that the profile and the policies switched off.
    #[serde(default)]
    pub off: usize,
    /// SHA-256 of the rules in force: their ids, severities, owners, conditions and texts.
    pub digest: String,
    /// The profile. Null if none was chosen.
    pub profile: Option<String>,
    /// The policies, the last of which takes precedence.
    pub policies: Vec<PolicyInForce>,
    /// The archive of rules and tables that replaces those of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<PolicyInForce>,
}

/// A policy or an archive of rules that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Policy")]
pub struct PolicyInForce {
    /// The path as the user gave it, or the reference in a registry.
    pub path: String,
    /// SHA-256 of its content.
    pub digest: String,
}

impl RulesInForce {
    /// Describes rules, and the profile and policies that selected them.
    pub(super) fn of(rules: &RuleSet, off: usize, profile: Option<&str>, policies: &[PolicyInForce]) -> Self {
        let mut hasher = Hasher::sha256();
        for rule in rules.iter() {
            let (applies, check) = rule.conditions();
            let severity = rule.severity.name();
            let owner = rule.owner.name();
            let parts =
                [&*rule.id, &*rule.title, severity, owner, applies.unwrap_or_default(), check, &*rule.why, &*rule.fix];
            for part in parts {
                hasher.update(part.as_bytes());
                hasher.update(b"\0");
            }
        }
        Self {
            count: rules.iter().count(),
            off,
            digest: hasher.finish().to_string(),
            profile: profile.map(str::to_owned),
            policies: policies.to_vec(),
            archive: rules.archive().cloned(),
        }
    }
}

impl PolicyInForce {
    /// Describes a file.
    pub fn of(path: String, content: &[u8]) -> Self {
        let mut hasher = Hasher::sha256();
        hasher.update(content);
        Self { path, digest: hasher.finish().to_string() }
    }
}

/// `118 rules, profile ci, policy p.yaml (sha256:ab12…), 3 rules switched off`.
impl fmt::Display for RulesInForce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, if self.count == 1 { "rule" } else { "rules" })?;
        if let Some(profile) = &self.profile {
            write!(f, ", profile {profile}")?;
        }
        let archive = self.archive.iter().map(|archive| ("rules", archive));
        for (what, PolicyInForce { path, digest }) in archive.chain(self.policies.iter().map(|one| ("policy", one))) {
            let digest = digest.get(..19).unwrap_or(digest);
            write!(f, ", {what} {path} ({digest})")?;
        }
        if self.profile.is_none() && self.policies.is_empty() {
            f.write_str(", no policy")?;
        }
        match self.off {
            0 => Ok(()),
            1 => f.write_str(", 1 rule switched off"),
            off => write!(f, ", {off} rules switched off"),
        }
    }
}

impl From<&PolicyText> for PolicyInForce {
    fn from(policy: &PolicyText) -> Self {
        Self::of(policy.path.display().to_string(), policy.document().text.as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_in_force_are_one_line() {
        let built_in = RulesInForce {
            count: 118,
            off: 0,
            digest: "sha256:0".to_owned(),
            profile: None,
            policies: Vec::new(),
            archive: None,
        };
        assert_eq!(built_in.to_string(), "118 rules, no policy");
        let policy = PolicyInForce { path: "p.yaml".to_owned(), digest: format!("sha256:{}", "a".repeat(64)) };
        let rules = RulesInForce { off: 2, profile: Some("ci".to_owned()), policies: vec![policy], ..built_in };
        assert_eq!(
            rules.to_string(),
            "118 rules, profile ci, policy p.yaml (sha256:aaaaaaaaaaaa), 2 rules switched off"
        );
    }
}
