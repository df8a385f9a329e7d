//! Why a script ends with an error.

use std::rc::Rc;

/// Why a script ends with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptFault {
    /// File and line of the command that fails.
    pub place: (Rc<str>, usize),
    /// What the shell says of it.
    pub message: String,
    /// What is the matter.
    pub cause: ScriptCause,
}

/// What is the matter with a script that ends with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScriptCause {
    /// It is written for bash, and dash reads it.
    OfBash,
    /// A carriage return ends its lines, as Windows writes them.
    LineEnds,
    /// A condition, a file or a variable that a run may provide.
    Surroundings,
}

impl ScriptCause {
    /// What is the matter with a word that names nothing.
    pub(super) fn of_word(word: &str) -> Self {
        if word.ends_with('\r') { Self::LineEnds } else { Self::Surroundings }
    }
}
