//! The release of torch that a Python package requires exactly, in its metadata (Core metadata, `Requires-Dist`), and those
//! that the lock of a project names, which `uv run` installs.

use std::sync::LazyLock;

use regex::bytes::Regex;

use model::{Entry, Found};

use super::extract::{Extractor, WholeFile};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "pin",
    wants: |entry, _| is_metadata(entry) || is_lock(entry),
    start: |_, _| WholeFile::start(read),
};

/// Largest metadata that is read, in bytes.
const LARGEST: u64 = 256 << 10;

/// Largest lock that is read, in bytes. That of a project with vLLM has 2 MB.
const LARGEST_LOCK: u64 = 8 << 20;

#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static PIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^Requires-Dist: *torch *\(?== *([0-9]+\.[0-9]+[0-9.]*)[^;\n]*$").expect("a valid pattern")
});

#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static LOCKED: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"(?m)^name = "torch"\r?\nversion = "([^"\n]+)""#).expect("a valid pattern"));

fn is_lock(entry: &Entry) -> bool {
    entry.path.file_name() == b"uv.lock" && entry.size <= LARGEST_LOCK
}

fn is_metadata(entry: &Entry) -> bool {
    let path = &entry.path;
    entry.size <= LARGEST && path.file_name() == b"METADATA" && path.parent().file_name().ends_with(b".dist-info")
}

/// The releases, separated by blanks.
fn read(text: &[u8]) -> Option<Found> {
    let required = PIN.captures_iter(text).take(1);
    let releases = required.chain(LOCKED.captures_iter(text)).filter_map(|captures| captures.get(1));
    let releases: Vec<_> = releases.map(|release| String::from_utf8_lossy(release.as_bytes()).into_owned()).collect();
    (!releases.is_empty()).then(|| Found::TorchPin(releases.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_exact_requirement_without_a_condition_counts() {
        for (text, release) in [
            ("Name: x\nRequires-Dist: torch==2.8.0\n", Some("2.8.0")),
            ("Requires-Dist: torch (==2.8.0)\n", Some("2.8.0")),
            ("Requires-Dist: torch==2.8.0; extra == 'gpu'\n", None),
            ("Requires-Dist: torch>=2.8\nRequires-Dist: torchvision==0.23\n", None),
            ("Requires-Dist: torch\n", None),
            (
                "[[package]]\nname = \"torch\"\nversion = \"2.7.1\"\n\n[[package]]\nname = \"torch\"\nversion = \"2.7.1+cu128\"\n",
                Some("2.7.1 2.7.1+cu128"),
            ),
            ("[[package]]\nname = \"torchaudio\"\nversion = \"2.7.1\"\n", None),
        ] {
            let found = match read(text.as_bytes()) {
                Some(Found::TorchPin(release)) => Some(release),
                _ => None,
            };
            assert_eq!(found.as_deref(), release, "{text}");
        }
    }
}
