//! What a scan is kept under: the bytes that were scanned, and all else that decides what a scan of them says.

use std::fmt;

use crate::model::BlobRef;
use crate::model::{Hasher, Limits};

/// Digest of the scanner's sources and of the versions of the crates that it uses, which the build script computes.
const SOURCES: &str = env!("NCCLCHECK_SCANNER");

/// Two scans under the same key say the same.
#[derive(Clone, Copy, Debug)]
pub struct ScanKey<'a> {
    /// Digest and number of the bytes: of a blob as stored, or of the tar inside, which then stands for an uncompressed blob.
    pub blob: &'a BlobRef,
    /// The bounds within which they are scanned.
    pub limits: &'a Limits,
}

impl ScanKey<'_> {
    /// What scans them.
    pub fn scanner(&self) -> Scanner {
        Scanner::of(self.limits)
    }

    /// The name of an entry: a folder for each scanner, and a file for each digest.
    pub(super) fn name(&self) -> String {
        format!("{}/{}-{}", self.scanner(), self.blob.digest.algorithm(), self.blob.digest.hex())
    }
}

/// A version of the scanner and the bounds that it works within, as sixteen hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scanner(String);

impl Scanner {
    /// This program's, within these bounds.
    pub fn of(limits: &Limits) -> Self {
        // Each limit by its name: who adds one has to decide here whether scans depend on it.
        let Limits {
            entries,
            path,
            extended_header,
            sparse_extents,
            unpacked,
            expansion,
            zstd_window_log,
            text_file,
            elf_kept,
            spool,
            // Of documents, which are read before, and of the merge and the loader, which come after.
            document: _,
            nesting: _,
            layers: _,
            loader_steps: _,
            symlinks: _,
            // Of layers that are read in part, which are not kept.
            toc: _,
            // Where there is no room, the scan is not kept.
            temporary: _,
        } = limits;
        let bounds = format!(
            "{entries} {path} {extended_header} {sparse_extents} {unpacked} {expansion} {zstd_window_log} {text_file} \
             {elf_kept} {spool}"
        );
        let mut hasher = Hasher::sha256();
        hasher.update(SOURCES.as_bytes());
        hasher.update(bounds.as_bytes());
        Self(hasher.finish().hex().chars().take(16).collect())
    }

    /// The scanner whose folder is called so; `None` for a folder that is none of ours.
    pub(super) fn of_folder(name: &str) -> Option<Self> {
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        (name.len() == 16 && name.bytes().all(is_digit)).then(|| Self(name.to_owned()))
    }
}

impl fmt::Display for Scanner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use regex::Regex;

    use super::*;

    #[test]
    fn bounds_of_scans_are_part_of_the_version() {
        let standard = Scanner::of(&Limits::default());
        assert_eq!(Scanner::of_folder(&standard.to_string()), Some(standard.clone()));
        for name in Limits::NAMES {
            let mut limits = Limits::default();
            limits.set(name, "7").unwrap();
            let outside = ["document", "nesting", "layers", "loader_steps", "symlinks", "toc"];
            assert_eq!(Scanner::of(&limits) == standard, outside.contains(name), "{name}");
        }
        assert_eq!(Scanner::of(&Limits { temporary: Some("/x".into()), ..Limits::default() }), standard);
    }

    fn sources(place: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(place).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                sources(&entry, found);
            } else {
                found.push(entry);
            }
        }
    }

    /// The build script digests the code of some folders. Code elsewhere that they used would change scans unseen.
    #[test]
    fn the_scanner_uses_no_code_whose_change_would_not_be_noticed() {
        const FOLDERS: [&str; 3] = ["src/layer/scan", "src/layer/tar", "src/model"];
        const MODULES: [&str; 3] = ["layer::scan", "layer::tar", "model"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in FOLDERS {
            sources(&root.join(folder), &mut files);
            assert!(fs::read_to_string(root.join("build.rs")).unwrap().contains(&format!("\"{folder}\"")));
        }
        assert!(files.len() > 30, "{}", files.len());
        let module = Regex::new(r"\bcrate::\{?\s*(\w+(?:::\w+)?)").unwrap();
        let mut count = 0;
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for used in module.captures_iter(&text) {
                let is_known = MODULES.iter().any(|module| used[1].starts_with(module));
                assert!(is_known, "{} uses crate::{}, which build.rs does not digest", file.display(), &used[1]);
                count += 1;
            }
        }
        assert!(count > 30, "{count}");
    }
}
