//! Redirections: the files that they write, and the input that they give.

use super::super::gap::ShellGap;
use super::super::lexer::Redirection;
use super::super::state::ShellState;
use super::super::syntax::Redirected;
use super::{DEPTH, Evaluator, Flow, NESTING, Surroundings, TOO_MANY};

impl<S: Surroundings> Evaluator<'_, S> {
    pub(super) fn redirected(&mut self, state: &mut ShellState, command: &Redirected, has_input: bool) -> Flow {
        if !self.surroundings.spend(1) || self.depth > DEPTH || self.nesting > NESTING {
            self.lose(state, command.line, TOO_MANY);
            state.started = Err(self.gap(command.line, TOO_MANY));
            return Flow::Exit;
        }
        let output = self.redirect(state, &command.redirections, command.line);
        let reads = command.redirections.iter().any(|redirection| redirection.operator.starts_with('<'));
        let input = self.input(state, &command.redirections, command.line);
        let outer = input.map(|input| std::mem::replace(&mut state.input, input));
        self.nesting += 1;
        let flow = self.command(state, command, has_input || reads);
        self.nesting -= 1;
        if let Some(outer) = outer {
            state.input = outer;
        }
        if let Some(output) = output {
            state.output = output;
        }
        flow
    }

    /// What redirections make of the standard input; `None` if they leave it.
    #[expect(clippy::option_option, reason = "an input that is none of which anything is known")]
    fn input(
        &mut self,
        state: &mut ShellState,
        redirections: &[Redirection],
        line: usize,
    ) -> Option<Option<Result<String, ShellGap>>> {
        let is_input =
            |one: &&Redirection| one.operator.starts_with('<') && one.descriptor.is_none_or(|number| number == 0);
        let Redirection { operator, target, .. } = redirections.iter().rev().find(is_input)?;
        Some(match &**operator {
            "<" => self.value(state, target).ok().map(|path| self.content(state, &path, line)),
            "<<<" => self.value(state, target).ok().map(|text| Ok(text + "\n")),
            _ => None,
        })
    }

    /// Takes note of redirections; returns the output to restore if this command's is not captured.
    #[expect(clippy::option_option, reason = "the output before, which may be none")]
    fn redirect(
        &mut self,
        state: &mut ShellState,
        redirections: &[Redirection],
        line: usize,
    ) -> Option<Option<Result<String, ShellGap>>> {
        let mut saved = None;
        for Redirection { descriptor, operator, target } in redirections {
            let writes = operator.contains('>');
            let is_output = operator.starts_with('&') || descriptor.is_none_or(|number| number == 1);
            if writes && is_output && saved.is_none() {
                saved = Some(state.output.take());
            }
            if writes
                && operator != ">&"
                && let Ok(target) = self.value(state, target)
            {
                Self::touch(state, &target);
                if let Ok(path) = state.absolute(&target) {
                    let place = self.place(line);
                    self.surroundings.write(&path, &place);
                }
            }
        }
        saved
    }
}
