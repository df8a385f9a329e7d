//! Judgements over facts: rules, what a policy makes of them, and the verdict on an image or on the difference of two.

mod difference;
pub mod policy;
pub mod rules;
mod verdict;

pub use difference::{Change, ChangedFact, ChangedRule, Difference, Side};
pub use verdict::Verdict;
