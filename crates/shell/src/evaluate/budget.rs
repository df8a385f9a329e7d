//! What a script may cost: each command is a step, and so is what a command handles beyond a usual one.
//!
//! Once the steps are spent, the next command ends the script, and what it starts is unknown.

use super::super::gap::ShellGap;
use super::super::pattern::{Pattern, STEPS, matches};
use super::super::state::ShellState;
use super::{Evaluator, Surroundings};

/// Bytes of text that cost a step.
const BYTES: usize = 1 << 10;

/// Variables, names and files that cost a step.
const ENTRIES: usize = 16;

/// Comparisons of a pattern that cost a step.
const COMPARISONS: usize = 1 << 10;

impl<S: Surroundings> Evaluator<'_, S> {
    /// Pays for text that is read or made.
    pub(crate) fn spend_on_text(&mut self, bytes: usize) {
        self.surroundings.spend(bytes / BYTES);
    }

    /// Pays for a list of names or variables; false once the steps are spent.
    pub(crate) fn spend_on_list(&mut self, entries: usize) -> bool {
        self.surroundings.spend(entries / ENTRIES)
    }

    /// Pays for going through a state.
    pub(super) fn spend_on(&mut self, state: &ShellState) {
        let (entries, bytes) = state.size();
        self.surroundings.spend(entries / ENTRIES + bytes / BYTES);
    }

    pub(super) fn copy(&mut self, state: &ShellState) -> ShellState {
        self.spend_on(state);
        state.clone()
    }

    /// Joins a state with that of another branch.
    pub(super) fn join(&mut self, state: &mut ShellState, other: ShellState, gap: &ShellGap) {
        *state = self.copy(state).merge(other, gap);
    }

    /// Makes everything unknown that a script can set.
    pub(crate) fn doubt_all(&mut self, state: &mut ShellState, gap: &ShellGap) {
        self.spend_on(state);
        state.doubt_all(gap);
    }

    /// Compares with a pattern, by a function that counts the comparisons down.
    pub(crate) fn matching<T>(&mut self, compare: impl FnOnce(&mut usize) -> T) -> T {
        let mut steps = STEPS;
        let answer = compare(&mut steps);
        self.surroundings.spend((STEPS - steps) / COMPARISONS);
        answer
    }

    /// True if the whole text matches; `None` for a pattern that is not understood.
    pub(crate) fn is_matched(&mut self, pattern: &Pattern, text: &str) -> Option<bool> {
        let text: Vec<char> = text.chars().collect();
        self.matching(|steps| matches(pattern, &text, steps))
    }
}
