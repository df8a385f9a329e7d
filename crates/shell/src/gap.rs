//! Why something is unknown.

use std::fmt;

/// Why something is unknown. The reason may quote the script, and so secrets in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShellGap {
    /// The reason, with the file and the line if it lies in a script.
    pub why: String,
    /// What would determine it.
    pub settle: Option<String>,
    /// True if the reason lies with the machine or the moment: the same surroundings may know it another time.
    pub is_transient: bool,
}

impl ShellGap {
    /// Creates a gap with its reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self { why: why.into(), settle: None, is_transient: false }
    }

    /// Adds what would determine it.
    #[must_use]
    pub fn settled_by(self, how: impl Into<String>) -> Self {
        Self { settle: Some(how.into()), ..self }
    }
}

impl fmt::Display for ShellGap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.settle {
            None => f.write_str(&self.why),
            Some(how) => write!(f, "{}; {how}", self.why),
        }
    }
}
