//! Commands that fail, and what ends a script.

use super::super::fault::{ScriptCause, ScriptFault};
use super::super::kind::ShellKind;
use super::super::parse::Parser;
use super::super::state::ShellState;
use super::{Evaluator, Flow, Surroundings};

impl<S: Surroundings> Evaluator<'_, S> {
    /// A text of which a line is not a command. It is none for the shell either if it would be without carriage returns,
    /// or in bash.
    pub(super) fn unread(&mut self, state: &mut ShellState, text: &str, line: usize, failed: usize) -> Flow {
        self.spend_on_text(3 * text.len());
        let cause = if Parser::reads(&text.replace("\r\n", "\n"), line, state.kind, failed) {
            ScriptCause::LineEnds
        } else if state.kind == ShellKind::Dash && Parser::reads(text, line, ShellKind::Bash, failed) {
            ScriptCause::OfBash
        } else {
            let why = "only a shell can determine what this command does";
            self.lose(state, failed, why);
            state.started = Err(self.gap(failed, why));
            return Flow::Next;
        };
        self.fail(state, failed, "syntax error", cause);
        // bash goes on behind a file that it cannot read.
        if state.kind == ShellKind::Bash && !self.path.is_empty() { Flow::Return } else { Flow::Exit }
    }

    /// Makes the last command one that fails.
    pub(crate) fn fail(&self, state: &mut ShellState, line: usize, message: &str, cause: ScriptCause) {
        state.status = Some(2);
        state.fault = Some(self.fault(line, message, cause));
    }

    pub(crate) fn fault(&self, line: usize, message: &str, cause: ScriptCause) -> ScriptFault {
        ScriptFault { place: self.place(line), message: message.to_owned(), cause }
    }

    /// Ends the script where an expansion does.
    pub(super) fn refuse(&mut self, state: &mut ShellState) -> Option<Flow> {
        state.fault = Some(self.refused.take()?);
        state.status = Some(2);
        Some(Flow::Exit)
    }
}
