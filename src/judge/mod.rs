//! Judgements over facts: rules, what a policy makes of them, and the verdict on an image or on the difference of two.

mod across_hosts;
mod difference;
mod identity;
pub mod policy;
mod rulebook;
pub mod rules;
mod verdict;

pub use across_hosts::{SharedJudgement, across_hosts};
pub use difference::{Change, ChangedFact, ChangedRule, Difference, Side};
pub use identity::{FindingIdentity, distinct_names};
pub use rulebook::{Rulebook, RulebookError};
pub use verdict::Verdict;
