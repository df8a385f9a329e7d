//! Loops, and the turns of which only a shell can determine how many there are.

use super::super::state::{ShellState, ShellValue};
use super::super::syntax::CommandList;
use super::super::word::Word;
use super::{Evaluator, Flow, Frame, Surroundings};

/// Words of a `for` loop, or turns of another one, that are followed one by one.
const TURNS: usize = 200;

/// Turns after which a loop of unknown length changes nothing more, or everything is unknown.
const ROUNDS: usize = 12;

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn while_loop(
        &mut self,
        state: &mut ShellState,
        is_until: bool,
        condition: &CommandList,
        body: &CommandList,
        line: usize,
    ) -> Flow {
        for _ in 0..TURNS {
            let before = self.copy(state);
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

    /// `for ((FIRST; CONDITION; NEXT))`.
    pub(super) fn count(
        &mut self,
        state: &mut ShellState,
        [first, condition, next]: &[Word; 3],
        body: &CommandList,
        line: usize,
    ) -> Flow {
        self.arithmetic(state, first, line).ok();
        for _ in 0..TURNS {
            match if condition.pieces.is_empty() { Ok(1) } else { self.arithmetic(state, condition, line) } {
                Ok(0) => {
                    state.status = Some(0);
                    return Flow::Next;
                }
                Ok(_) => {}
                Err(_) => break,
            }
            if let Some(flow) = self.turn(state, line, |this, state| this.list(state, body)) {
                return flow;
            }
            self.arithmetic(state, next, line).ok();
        }
        self.repeat(state, line, |this, state| {
            let flow = this.list(state, body);
            this.arithmetic(state, next, line).ok();
            flow
        })
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
            if let Some(first) = continued.first().filter(|_| !goes_on) {
                *state = self.copy(first);
            }
            for other in continued {
                self.join(state, other, &gap);
            }
            flow = if goes_on { flow } else { Flow::Next };
        }
        if !broken.is_empty() {
            // Which turn is the last one is unknown, and so is what any later one would set.
            for other in broken {
                self.join(state, other, &gap);
            }
            if matches!(flow, Flow::Next | Flow::Continue(..=1)) {
                let started = state.started.clone();
                self.lose(state, line, "only a shell can determine where a loop ends");
                state.started = started;
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
            let mut once = self.copy(state);
            self.frames.push(Frame::Loop { broken: Vec::new(), continued: Vec::new() });
            let flow = run(self, &mut once);
            let Some(Frame::Loop { broken, continued }) = self.frames.pop() else { return flow };
            let mut merged = self.copy(state);
            match flow {
                Flow::Exit => self.end(&once),
                Flow::Return => self.escape(Flow::Return, once),
                Flow::Next | Flow::Break(_) | Flow::Continue(_) => self.join(&mut merged, once, &gap),
            }
            for other in broken.into_iter().chain(continued) {
                self.join(&mut merged, other, &gap);
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
        self.doubt_all(state, &gap);
        Flow::Next
    }
}
