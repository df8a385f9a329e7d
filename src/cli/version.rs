//! What `--version` prints.

use std::sync::LazyLock;

use layer::cache::Scanner;
use model::Limits;

static TEXT: LazyLock<String> = LazyLock::new(|| {
    format!(
        "{}\ncommit   {}\nrules    {}\nscanner  {}",
        env!("CARGO_PKG_VERSION"),
        option_env!("NCCLCHECK_COMMIT").unwrap_or("not recorded"),
        env!("NCCLCHECK_RULES"),
        Scanner::of(&Limits::default())
    )
});

/// The versions of everything that decides a verdict: the commit and its date, the rules, and the scanner, whose
/// version is part of each cache key.
pub(super) fn long_version() -> &'static str {
    &TEXT
}
