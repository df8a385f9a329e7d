//! Names the part of a fleet that makes tests between pairs of nodes slow: a node, a NIC of it, a direction, the uplink of a
//! leaf, or a link.
//!
//! [`survey`] chooses the pairs of the first rounds, [`decide`] makes a [`Verdict`] of their tests, and
//! [`Verdict::next_round`] has the pairs that settle what is undecided. The caller runs the tests. The README has the method.
//!
//! | module | job |
//! |---|---|
//! | `fleet` | what is given: nodes, leaves, tests |
//! | `rails` | rates over the reference of their rail; which rails and directions of a bad part are slow |
//! | `noise` | the rate of sound tests, and the noise |
//! | `decoder` | the bad parts that explain the slow tests best |
//! | `judge` | what of that is sure enough to blame, what is sound, what neither |
//! | `verdict` | the answer |
//! | `rounds` | the pairs to test |

mod decoder;
mod fleet;
mod judge;
mod noise;
mod rails;
mod rounds;
#[cfg(test)]
mod tests;
mod verdict;

pub use fleet::{Fleet, InputError, Node, Outcome, Pair, PairTest, Part, Purpose};
pub use judge::decide;
pub use noise::median;
pub use rails::{Direction, Scope};
pub use rounds::{SETTLING_ROUNDS, survey};
pub use verdict::{Common, Doubt, Fault, State, Verdict, Why};

/// The examples of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
