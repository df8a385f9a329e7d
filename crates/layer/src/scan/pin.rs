//! The release of torch that a Python package requires exactly, in its metadata (Core metadata, `Requires-Dist`).

use std::sync::LazyLock;

use regex::bytes::Regex;

use model::{BoundsError, Entry, Found, Gap, index};

use super::extract::{Collect, Extractor};

pub(super) const EXTRACTOR: Extractor =
    Extractor { name: "pin", wants: |entry, _| is_metadata(entry), start: |_, _| Box::new(Metadata::default()) };

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

#[derive(Default)]
struct Metadata(Vec<u8>);

impl Collect for Metadata {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        // The size is limited, and holes read as zeros.
        self.0.resize(index(offset)?, 0);
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let pin = PIN.captures(&self.0).and_then(|captures| captures.get(1));
        Ok(pin.map(|release| Found::TorchPin(String::from_utf8_lossy(release.as_bytes()).into_owned())))
    }
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
            let mut metadata = Metadata::default();
            metadata.push(0, text.as_bytes()).unwrap();
            let found = match Box::new(metadata).finish() {
                Ok(Some(Found::TorchPin(release))) => Some(release),
                _ => None,
            };
            assert_eq!(found.as_deref(), release, "{text}");
        }
    }
}
