//! Branches and loops, and the states that leave them early.

use crate::model::Gap;

use super::super::pattern::matches;
use super::super::state::{ShellState, ShellValue};
use super::super::syntax::{CaseArm, CommandList};
use super::super::word::Word;
use super::{Evaluator, Flow, Frame, Surroundings};

/// Words of a `for` loop, or turns of another one, that are followed one by one.
const TURNS: usize = 200;

/// Turns after which a loop of unknown length changes nothing more, or everything is unknown.
const ROUNDS: usize = 12;

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn conditional(
        &mut self,
        state: &mut ShellState,
        arms: &[(CommandList, CommandList)],
        otherwise: &CommandList,
        line: usize,
    ) -> Flow {
        let Some(((condition, body), rest)) = arms.split_first() else {
            state.status = Some(0);
            return self.list(state, otherwise);
        };
        let flow = self.condition(state, condition);
        if flow != Flow::Next {
            return flow;
        }
        match state.status {
            Some(0) => self.list(state, body),
            Some(_) => self.conditional(state, rest, otherwise, line),
            None => {
                let gap = self.gap(line, "only a shell can determine which branch is run");
                self.branch(
                    state,
                    &gap,
                    |this, state| this.list(state, body),
                    |this, state| this.conditional(state, rest, otherwise, line),
                )
            }
        }
    }

    pub(super) fn while_loop(
        &mut self,
        state: &mut ShellState,
        is_until: bool,
        condition: &CommandList,
        body: &CommandList,
        line: usize,
    ) -> Flow {
        for _ in 0..TURNS {
            let before = state.clone();
            let flow = self.condition(state, condition);
            if flow != Flow::Next {
                return flow;
            }
            match state.status.map(|status| (status == 0) != is_until) {
                Some(false) => {
                    state.status = Some(0);
                    return Flow::Next;
                }
                Some(true) => {
                    if let Some(flow) = self.turn(state, line, |this, state| this.list(state, body)) {
                        return flow;
                    }
                }
                None => {
                    *state = before;
                    return self.repeat(state, line, |this, state| match this.condition(state, condition) {
                        Flow::Next => this.list(state, body),
                        flow => flow,
                    });
                }
            }
        }
        self.repeat(state, line, |this, state| this.list(state, body))
    }

    pub(super) fn for_loop(
        &mut self,
        state: &mut ShellState,
        name: &str,
        words: Option<&[Word]>,
        body: &CommandList,
        line: usize,
    ) -> Flow {
        let fields = match words {
            Some(words) => Ok(self.fields(state, words)),
            None => state.arguments.clone(),
        };
        let values: Option<Vec<String>> =
            fields.ok().and_then(|fields| fields.into_iter().map(Result::ok).collect::<Option<Vec<_>>>());
        let at = self.place(line);
        let Some(values) = values.filter(|values| values.len() <= TURNS) else {
            let gap = self.gap(line, &format!("only a shell can determine the value of {name}"));
            state.doubt(name, &gap);
            return self.repeat(state, line, |this, state| this.list(state, body));
        };
        state.status = Some(0);
        for value in values {
            state.assign(name, Ok(ShellValue::Text(value)), at.clone());
            if let Some(flow) = self.turn(state, line, |this, state| this.list(state, body)) {
                return flow;
            }
        }
        Flow::Next
    }

    /// One turn of a loop; `Some` if the loop ends with it.
    pub(super) fn turn(
        &mut self,
        state: &mut ShellState,
        line: usize,
        run: impl FnOnce(&mut Self, &mut ShellState) -> Flow,
    ) -> Option<Flow> {
        let gap = self.gap(line, "only a shell can determine where a loop ends");
        self.frames.push(Frame::Loop { broken: Vec::new(), continued: Vec::new() });
        let mut flow = run(self, state);
        let Some(Frame::Loop { broken, continued }) = self.frames.pop() else { return Some(flow) };
        let goes_on = matches!(flow, Flow::Next | Flow::Continue(..=1));
        if !continued.is_empty() {
            *state = if goes_on { state.clone() } else { continued.first().cloned().unwrap_or_else(|| state.clone()) };
            for other in continued {
                *state = state.clone().merge(other, &gap);
            }
            flow = if goes_on { flow } else { Flow::Next };
        }
        if !broken.is_empty() {
            // Which turn is the last one is unknown, and so is what any later one would set.
            for other in broken {
                *state = state.clone().merge(other, &gap);
            }
            if matches!(flow, Flow::Next | Flow::Continue(..=1)) {
                let rest = state.clone();
                self.lose(state, line, "only a shell can determine where a loop ends");
                state.started = rest.started;
            }
            return Some(Flow::Next);
        }
        match flow {
            Flow::Next | Flow::Continue(..=1) => None,
            Flow::Break(..=1) => Some(Flow::Next),
            Flow::Break(levels) => Some(Flow::Break(levels - 1)),
            Flow::Continue(levels) => Some(Flow::Continue(levels - 1)),
            Flow::Return | Flow::Exit => Some(flow),
        }
    }

    /// A loop whose number of turns is unknown: what one turn changes is unknown.
    pub(super) fn repeat(
        &mut self,
        state: &mut ShellState,
        line: usize,
        run: impl Fn(&mut Self, &mut ShellState) -> Flow,
    ) -> Flow {
        let gap = self.gap(line, "only a shell can determine how often a loop runs");
        for _ in 0..ROUNDS {
            let mut once = state.clone();
            self.frames.push(Frame::Loop { broken: Vec::new(), continued: Vec::new() });
            let flow = run(self, &mut once);
            let Some(Frame::Loop { broken, continued }) = self.frames.pop() else { return flow };
            let mut merged = state.clone();
            match flow {
                Flow::Exit => self.ended.push(once.started),
                Flow::Return => self.escape(Flow::Return, once),
                Flow::Next | Flow::Break(_) | Flow::Continue(_) => merged = merged.merge(once, &gap),
            }
            for other in broken.into_iter().chain(continued) {
                merged = merged.merge(other, &gap);
            }
            merged.status = None;
            let is_stable = merged.variables == state.variables
                && merged.directory == state.directory
                && merged.arguments == state.arguments
                && merged.gap == state.gap;
            *state = merged;
            if is_stable {
                return Flow::Next;
            }
        }
        state.doubt_all(&gap);
        Flow::Next
    }

    pub(super) fn case(&mut self, state: &mut ShellState, word: &Word, arms: &[CaseArm], line: usize) -> Flow {
        let text = self.value(state, word);
        state.status = Some(0);
        self.arms(state, text.as_deref().map_err(Clone::clone), arms, line)
    }

    pub(super) fn arms(
        &mut self,
        state: &mut ShellState,
        text: Result<&str, Gap>,
        arms: &[CaseArm],
        line: usize,
    ) -> Flow {
        let Some((arm, rest)) = arms.split_first() else { return Flow::Next };
        let is_taken = match &text {
            Err(_) => self.is_anything(state, arm).then_some(true),
            Ok(text) => self.is_match(state, arm, text),
        };
        match is_taken {
            Some(false) => self.arms(state, text, rest, line),
            Some(true) if !arm.falls_through => self.list(state, &arm.body),
            _ => {
                let gap = self.gap(line, "only a shell can determine which branch is run");
                let other = text.clone();
                let falls = arm.falls_through;
                self.branch(
                    state,
                    &gap,
                    |this, state| match this.list(state, &arm.body) {
                        Flow::Next if falls => this.arms(state, Err(gap.clone()), rest, line),
                        flow => flow,
                    },
                    |this, state| this.arms(state, other, rest, line),
                )
            }
        }
    }

    pub(super) fn is_anything(&mut self, state: &mut ShellState, arm: &CaseArm) -> bool {
        arm.patterns.iter().any(|pattern| self.pattern(state, pattern).is_ok_and(|pattern| pattern == [('*', false)]))
    }

    pub(super) fn is_match(&mut self, state: &mut ShellState, arm: &CaseArm, text: &str) -> Option<bool> {
        let mut is_known = true;
        for pattern in &arm.patterns {
            match self.pattern(state, pattern).ok().and_then(|pattern| matches(&pattern, text)) {
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
        gap: &Gap,
        one: impl FnOnce(&mut Self, &mut ShellState) -> Flow,
        two: impl FnOnce(&mut Self, &mut ShellState) -> Flow,
    ) -> Flow {
        let mut other = state.clone();
        let flows = (one(self, state), two(self, &mut other));
        match flows {
            (one, two) if one == two => {
                *state = state.clone().merge(other, gap);
                one
            }
            (Flow::Exit, flow) => {
                self.ended.push(std::mem::replace(state, other).started);
                flow
            }
            (flow, Flow::Exit) => {
                self.ended.push(other.started);
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
        self.ended.push(state.started);
    }
}
