//! Paths, and what they lead to unless the script may have changed it.

use model::Gap;

use super::super::state::ShellState;
use super::{Evaluator, FileKind, Surroundings};

impl<S: Surroundings> Evaluator<'_, S> {
    /// An absolute path, without `.` and `..`.
    pub(crate) fn absolute(state: &ShellState, path: &str) -> Result<String, Gap> {
        let whole =
            if path.starts_with('/') { path.to_owned() } else { format!("{}/{path}", state.directory.clone()?) };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => _ = parts.pop(),
                part => parts.push(part),
            }
        }
        Ok(format!("/{}", parts.join("/")))
    }

    /// What an absolute path leads to, unless the script may have changed it.
    pub(crate) fn kind(&mut self, state: &ShellState, path: &str, line: usize) -> Result<Option<FileKind>, Gap> {
        self.spend_on_list(state.touched.len());
        if Self::is_touched(state, path) {
            return Err(self.gap(line, &format!("a command before may have changed {path}")));
        }
        self.surroundings.kind(path)
    }

    pub(crate) fn names(&mut self, state: &ShellState, folder: &str, line: usize) -> Result<Vec<String>, Gap> {
        if Self::is_touched(state, folder) {
            return Err(self.gap(line, &format!("a command before may have changed {folder}")));
        }
        let names = self.surroundings.names(folder)?;
        self.spend_on_list(names.len());
        Ok(names)
    }

    pub(super) fn is_touched(state: &ShellState, path: &str) -> bool {
        let is_below = |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        state.touched.iter().any(|touched| touched == path || is_below(path, touched) || is_below(touched, path))
    }

    pub(super) fn touch(state: &mut ShellState, word: &str) {
        if word.starts_with('-') || word.is_empty() {
            return;
        }
        if let Ok(path) = Self::absolute(state, word)
            && path != "/"
            && !path.starts_with("/dev/")
        {
            state.touched.insert(path);
        }
    }
}
