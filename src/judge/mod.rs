//! Judgements over facts: rules, what a policy makes of them, and the verdict on an image or on the difference of two.

mod difference;
pub mod policy;
mod rulebook;
pub mod rules;
mod verdict;

pub use difference::{Change, ChangedFact, ChangedRule, Difference, Side};
pub use rulebook::{Rulebook, RulebookError};
pub use verdict::Verdict;
