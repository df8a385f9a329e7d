//! Judgements over facts: the rules, the policy that adjusts them, and the verdict on one image or on a comparison of
//! two.

mod across_hosts;
pub(crate) mod consequences;
mod difference;
mod identity;
mod in_force;
pub mod policy;
mod rulebook;
pub mod rules;
mod verdict;

pub use across_hosts::{SharedJudgement, across_hosts};
pub use difference::{Change, ChangeKind, ChangedFact, ChangedRule, Difference, Side};
pub use identity::{FindingIdentity, distinct_names};
pub use in_force::{PolicyInForce, RulesInForce};
pub use policy::{PolicyError, PolicyText};
pub use rulebook::{Rulebook, RulebookError};
pub use verdict::Verdict;
