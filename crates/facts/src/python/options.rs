//! Options of an interpreter, from its command line and its variables (CPython, `Python/initconfig.c`).

use super::super::start::PythonCall;
use super::version::PythonVersion;

/// The options that decide where modules come from.
#[derive(Clone, Copy, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "one for each option of the interpreter")]
pub(super) struct PathOptions {
    /// True if the variables `PYTHON*` count.
    pub(super) reads_environment: bool,
    /// True if the user's site directory counts.
    pub(super) user_site: bool,
    /// True if `site` is imported.
    pub(super) site: bool,
    /// True if neither the script's nor the working directory is an entry.
    pub(super) safe_path: bool,
}

impl PathOptions {
    pub(super) fn of(call: &PythonCall, version: PythonVersion) -> Self {
        let flags = call.flags;
        let reads_environment = !flags.ignores_environment && !flags.isolated;
        let is_set = |name: &str| reads_environment && call.state.known(name).is_some_and(|value| !value.is_empty());
        Self {
            reads_environment,
            user_site: !flags.no_user_site && !flags.isolated && !is_set("PYTHONNOUSERSITE"),
            site: !flags.no_site,
            safe_path: flags.safe_path || flags.isolated || (version.minor >= 11 && is_set("PYTHONSAFEPATH")),
        }
    }

    /// A variable of the interpreter; an empty one is as good as none.
    pub(super) fn variable<'c>(self, call: &'c PythonCall, name: &str) -> Option<&'c str> {
        call.state.known(name).filter(|value| self.reads_environment && !value.is_empty())
    }
}
