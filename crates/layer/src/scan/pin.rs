//! The release of torch that a Python package requires exactly, in its metadata (Core metadata, `Requires-Dist`).

use std::sync::LazyLock;

use regex::bytes::Regex;

use model::{Entry, Found};

use super::extract::{Extractor, WholeFile};

pub(super) const EXTRACTOR: Extractor =
    Extractor { name: "pin", wants: |entry, _| is_metadata(entry), start: |_, _| WholeFile::start(read) };

/// Largest file that is read, in bytes.
const LARGEST: u64 = 256 << 10;

#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static PIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?m)^Requires-Dist: *torch *\(?== *([0-9]+\.[0-9]+[0-9.]*)[^;\n]*$").expect("a valid pattern")
});

fn is_metadata(entry: &Entry) -> bool {
    let path = &entry.path;
    entry.size <= LARGEST && path.file_name() == b"METADATA" && path.parent().file_name().ends_with(b".dist-info")
}

fn read(metadata: &[u8]) -> Option<Found> {
    let release = PIN.captures(metadata)?.get(1)?;
    Some(Found::TorchPin(String::from_utf8_lossy(release.as_bytes()).into_owned()))
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
        ] {
            let found = match read(text.as_bytes()) {
                Some(Found::TorchPin(release)) => Some(release),
                _ => None,
            };
            assert_eq!(found.as_deref(), release, "{text}");
        }
    }
}
