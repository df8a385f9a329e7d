//! Shells, which differ in what they read and in which commands they have.

/// The program that reads a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellKind {
    /// bash.
    Bash,
    /// bash under the name `sh`, with which it follows POSIX where the two differ.
    PosixBash,
    /// dash.
    Dash,
    /// The shell of busybox, which has some of bash's extensions.
    Busybox,
    /// Any other, without bash's extensions.
    Posix,
}

impl ShellKind {
    /// True for bash under either name.
    pub const fn is_bash(self) -> bool {
        matches!(self, Self::Bash | Self::PosixBash)
    }

    /// True for a shell with `[[`, `function`, `source`, `&>`, `$'…'`, `${NAME//…}` and `${NAME:…}`.
    pub(super) const fn is_like_bash(self) -> bool {
        self.is_bash() || matches!(self, Self::Busybox)
    }
}
