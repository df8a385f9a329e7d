//! Path names that a pattern becomes (POSIX, "Pathname Expansion").

use super::super::evaluate::{Evaluator, Surroundings};
use super::super::gap::ShellGap;
use super::super::pattern::is_magic;
use super::super::state::{Field, ShellState, UnknownField};
use super::{Quoted, unquoted};

/// Number of path names of a pattern from which on they are unknown.
const PATHS: usize = 1000;

impl<S: Surroundings> Evaluator<'_, S> {
    /// The path names that match a pattern, or the pattern itself if there are none.
    pub(super) fn path_names(&mut self, state: &ShellState, pattern: &[(char, bool)], line: usize) -> Vec<Field> {
        let literal = unquoted(pattern);
        let unknown = |gap: ShellGap| {
            let known: Quoted =
                pattern.iter().take_while(|(c, is_quoted)| *is_quoted || !"*?[@+!".contains(*c)).copied().collect();
            vec![Err(UnknownField { prefix: unquoted(&known), gap })]
        };
        let mut found: Vec<String> = vec![String::new()];
        for (index, part) in pattern.split(|&(c, _)| c == '/').enumerate() {
            let slash = if index == 0 { "" } else { "/" };
            if !is_magic(part) {
                for path in &mut found {
                    *path = format!("{path}{slash}{}", unquoted(part));
                }
                continue;
            }
            let mut next = Vec::new();
            for path in &found {
                let folder = match state.absolute(&format!("{path}{slash}")) {
                    Ok(folder) => folder,
                    Err(gap) => return unknown(gap),
                };
                if !self.spend_on_list(next.len()) {
                    return unknown(self.gap(line, "a pattern matches too many path names"));
                }
                let names = match self.names(state, &folder, line) {
                    Ok(names) => names,
                    Err(gap) => return unknown(gap),
                };
                for name in names {
                    let is_hidden = name.starts_with('.') && part.first() != Some(&('.', false));
                    match self.is_matched(part, &name) {
                        Some(true) if !is_hidden => next.push(format!("{path}{slash}{name}")),
                        Some(_) => {}
                        None => {
                            return unknown(self.gap(line, "only a shell can determine which names match a pattern"));
                        }
                    }
                }
            }
            found = next;
        }
        let mut kept = Vec::new();
        for path in found {
            match state.absolute(&path).and_then(|absolute| self.kind(state, &absolute, line)) {
                Ok(Some(_)) => kept.push(Ok(path)),
                Ok(None) => {}
                Err(gap) => return unknown(gap),
            }
        }
        if kept.len() > PATHS {
            return unknown(self.gap(line, "a pattern matches too many path names"));
        }
        if kept.is_empty() && !state.options.drops_unmatched {
            kept.push(Ok(literal));
        }
        kept
    }
}
