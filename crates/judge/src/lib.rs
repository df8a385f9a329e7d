//! Judgements over facts: the rules, the policy that adjusts them, and the verdict on one image or on a comparison of
//! two.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod across_hosts;
pub mod consequences;
mod difference;
mod identity;
mod in_force;
pub mod policy;
mod rulebook;
pub mod rules;
mod shipped;
mod verdict;

pub use across_hosts::{SharedJudgement, across_hosts};
pub use difference::{Change, ChangeKind, ChangedFact, ChangedRule, Difference, Side};
pub use identity::{FindingIdentity, distinct_names};
pub use in_force::{PolicyInForce, RulesInForce};
pub use policy::{PolicyError, PolicyText};
pub use rulebook::{Rulebook, RulebookError, RulebookSource};
pub use shipped::{Shipped, ShippedFile};
pub use verdict::Verdict;

/// The JSON schema of a policy. Tests verify that the schemas are current: the program would be larger with the code that generates
/// them.
pub const POLICY_SCHEMA: &str = include_str!("../schema/policy.schema.json");

/// The JSON schema of a rule.
pub const RULE_SCHEMA: &str = include_str!("../schema/rule.schema.json");
