//! Branches, and the states that leave functions and loops early.

use super::super::gap::ShellGap;
use super::super::state::ShellState;
use super::super::syntax::{CaseArm, CommandList};
use super::super::word::Word;
use super::{Evaluator, Flow, Frame, NESTING, Surroundings, TOO_MANY};

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn conditional(
        &mut self,
        state: &mut ShellState,
        mut arms: &[(CommandList, CommandList)],
        otherwise: &CommandList,
        line: usize,
    ) -> Flow {
        while let Some(((condition, body), rest)) = arms.split_first() {
            let flow = self.condition(state, condition);
            if flow != Flow::Next {
                return flow;
            }
            match state.status {
                Some(0) => return self.list(state, body),
                Some(_) => arms = rest,
                None => {
                    let gap = self.gap(line, "only a shell can determine which branch is run");
                    return self.branch(
                        state,
                        &gap,
                        |this, state| this.list(state, body),
                        |this, state| this.conditional(state, rest, otherwise, line),
                    );
                }
            }
        }
        state.status = Some(0);
        self.list(state, otherwise)
    }

    pub(super) fn case(&mut self, state: &mut ShellState, word: &Word, arms: &[CaseArm], line: usize) -> Flow {
        let text = self.value(state, word);
        state.status = Some(0);
        self.arms(state, text.as_deref(), arms, line)
    }

    pub(super) fn arms(
        &mut self,
        state: &mut ShellState,
        text: Result<&str, &ShellGap>,
        mut arms: &[CaseArm],
        line: usize,
    ) -> Flow {
        while let Some((arm, rest)) = arms.split_first() {
            self.surroundings.spend(1);
            let is_taken = match text {
                Err(_) => self.is_anything(state, arm).then_some(true),
                Ok(text) => self.is_match(state, arm, text),
            };
            match is_taken {
                Some(false) => arms = rest,
                Some(true) if !arm.falls_through => return self.list(state, &arm.body),
                _ => {
                    let gap = self.gap(line, "only a shell can determine which branch is run");
                    let falls = arm.falls_through;
                    return self.branch(
                        state,
                        &gap,
                        |this, state| match this.list(state, &arm.body) {
                            Flow::Next if falls => this.arms(state, Err(&gap), rest, line),
                            flow => flow,
                        },
                        |this, state| this.arms(state, text, rest, line),
                    );
                }
            }
        }
        Flow::Next
    }

    pub(super) fn is_anything(&mut self, state: &mut ShellState, arm: &CaseArm) -> bool {
        arm.patterns.iter().any(|pattern| self.pattern(state, pattern).is_ok_and(|pattern| pattern == [('*', false)]))
    }

    pub(super) fn is_match(&mut self, state: &mut ShellState, arm: &CaseArm, text: &str) -> Option<bool> {
        let mut is_known = true;
        for pattern in &arm.patterns {
            match self.pattern(state, pattern).ok().and_then(|pattern| self.is_matched(&pattern, text)) {
                Some(true) => return Some(true),
                Some(false) => {}
                None => is_known = false,
            }
        }
        is_known.then_some(false)
    }

    /// Follows two branches of which one is run.
    pub(super) fn branch(
        &mut self,
        state: &mut ShellState,
        gap: &ShellGap,
        one: impl FnOnce(&mut Self, &mut ShellState) -> Flow,
        two: impl FnOnce(&mut Self, &mut ShellState) -> Flow,
    ) -> Flow {
        if self.nesting > NESTING {
            self.lose(state, 0, TOO_MANY);
            state.started = Err(self.gap(0, TOO_MANY));
            return Flow::Exit;
        }
        self.nesting += 1;
        let mut other = self.copy(state);
        let flows = (one(self, state), two(self, &mut other));
        self.nesting -= 1;
        match flows {
            (one, two) if one == two => {
                self.join(state, other, gap);
                one
            }
            (Flow::Exit, flow) => {
                let ended = std::mem::replace(state, other);
                self.end(&ended);
                flow
            }
            (flow, Flow::Exit) => {
                self.end(&other);
                flow
            }
            (Flow::Next, flow) => {
                self.escape(flow, other);
                Flow::Next
            }
            (flow, _) => {
                self.escape(flow, std::mem::replace(state, other));
                flows.1
            }
        }
    }

    /// Takes note of what a branch has started that ends the script. One that gives up has started nothing.
    pub(super) fn end(&mut self, state: &ShellState) {
        if state.started != Ok(None) || !state.fails() {
            self.ended.push((state.started.clone(), state.fails()));
        }
    }

    /// Keeps the state of a branch that leaves a function or a loop, for the place that it leads to.
    pub(super) fn escape(&mut self, flow: Flow, state: ShellState) {
        for frame in self.frames.iter_mut().rev() {
            match (frame, flow) {
                (Frame::Function { returned, .. }, Flow::Return) => return returned.push(state),
                (Frame::Loop { continued, .. }, Flow::Continue(..=1)) => return continued.push(state),
                // `continue 2` ends this loop.
                (Frame::Loop { broken, .. }, Flow::Break(_) | Flow::Continue(_)) => return broken.push(state),
                (Frame::Subshell, _) => break,
                _ => {}
            }
        }
        self.ended.push((state.started, false));
    }
}
