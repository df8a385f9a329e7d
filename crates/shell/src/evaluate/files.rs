//! What paths lead to, unless the script may have changed it.

use super::super::gap::ShellGap;
use super::super::state::ShellState;
use super::{Evaluator, FileKind, Surroundings};

impl<S: Surroundings> Evaluator<'_, S> {
    /// What an absolute path leads to, unless the script may have changed it.
    pub(crate) fn kind(&mut self, state: &ShellState, path: &str, line: usize) -> Result<Option<FileKind>, ShellGap> {
        self.spend_on_list(state.touched.len());
        let kind = self.surroundings.kind(path);
        // What changes in a folder leaves it one.
        let is_kept = kind == Ok(Some(FileKind::Directory)) && !state.may_have_moved(path);
        if Self::is_touched(state, path) && !is_kept {
            return Err(self.gap(line, &format!("a command before may have changed {path}")));
        }
        kind
    }

    pub(crate) fn names(&mut self, state: &ShellState, folder: &str, line: usize) -> Result<Vec<String>, ShellGap> {
        if Self::is_touched(state, folder) {
            return Err(self.gap(line, &format!("a command before may have changed {folder}")));
        }
        let names = self.surroundings.names(folder)?;
        self.spend_on_list(names.len());
        Ok(names)
    }

    pub(super) fn is_touched(state: &ShellState, path: &str) -> bool {
        state.may_have_changed(path)
    }

    pub(super) fn touch(state: &mut ShellState, word: &str) {
        if word.starts_with('-') || word.is_empty() {
            return;
        }
        if let Ok(path) = state.absolute(word)
            && path != "/"
            && !path.starts_with("/dev/")
        {
            state.touched.insert(path);
        }
    }
}
