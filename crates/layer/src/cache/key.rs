//! Key of a cached scan: the scanned bytes, and everything else that determines the result.

use std::fmt;

use model::{BlobRef, Digest, Hasher, Limits};

/// Digest of the scanner's sources and of the versions of the crates that it uses, which the build script computes.
const SOURCES: &str = env!("NCCLCHECK_SCANNER");

/// Two scans with the same key have the same result.
#[derive(Clone, Copy, Debug)]
pub struct ScanKey<'a> {
    /// Digest and size of the bytes: of a stored blob, or of the tar inside, which then stands for an uncompressed
    /// blob.
    pub blob: &'a BlobRef,
    /// The limits of the scan.
    pub limits: &'a Limits,
}

impl ScanKey<'_> {
    /// The scanner that these limits select.
    pub fn scanner(&self) -> Scanner {
        Scanner::of(self.limits)
    }

    /// Name of the cache entry: one folder per scanner, one file per digest.
    pub(super) fn name(&self) -> String {
        self.scanner().entry(&self.blob.digest)
    }
}

/// A version of the scanner with its limits, as sixteen hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Scanner(String);

impl Scanner {
    /// This program's scanner with these limits.
    pub fn of(limits: &Limits) -> Self {
        // Exhaustive: a new limit does not compile before its author decides whether scans depend on it.
        let Limits {
            entries,
            path,
            extended_header,
            sparse_extents,
            unpacked,
            expansion,
            zstd_window_log,
            text_file,
            settings_file,
            texts,
            paths,
            implied_folders,
            elf_kept,
            elf_names,
            elf_strings,
            elf_notes,
            spool,
            // These bound documents, which are read before a scan, and the merge, the loader and Python, which come after it.
            document: _,
            nesting: _,
            indexes: _,
            images: _,
            layers: _,
            loader_steps: _,
            python_steps: _,
            symlinks: _,
            // This bounds what an engine says of images.
            engine_answer: _,
            // This bounds documents, not layers.
            store_list: _,
            // A scan that runs out of temporary space is not cached.
            temporary: _,
        } = limits;
        let bounds = format!(
            "{entries} {path} {extended_header} {sparse_extents} {unpacked} {expansion} {zstd_window_log} {text_file} \
             {settings_file} {texts} {paths} {implied_folders} {elf_kept} {elf_names} {elf_strings} {elf_notes} {spool}"
        );
        let mut hasher = Hasher::sha256();
        hasher.update(SOURCES.as_bytes());
        hasher.update(bounds.as_bytes());
        Self(hasher.finish().hex().chars().take(16).collect())
    }

    /// Name of the cache entry of this scanner for a digest.
    pub(super) fn entry(&self, digest: &Digest) -> String {
        format!("{self}/{}-{}", digest.algorithm(), digest.hex())
    }

    /// The scanner that a folder is named after, or `None` for a foreign folder.
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
            let outside = [
                "document",
                "nesting",
                "indexes",
                "images",
                "layers",
                "loader_steps",
                "python_steps",
                "symlinks",
                "engine_answer",
                "store_list",
            ];
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

    /// The build script digests the code of some folders, and all of the crates below this one. If they used other code, a change of
    /// it would go unnoticed.
    #[test]
    fn the_scanner_only_uses_code_that_its_digest_covers() {
        const FOLDERS: [&str; 3] = ["src/scan", "src/squashfs", "src/tar"];
        const MODULES: [&str; 3] = ["scan", "squashfs", "tar"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = Vec::new();
        for folder in FOLDERS {
            sources(&root.join(folder), &mut files);
            assert!(fs::read_to_string(root.join("build.rs")).unwrap().contains(&format!("\"{folder}\"")));
        }
        assert!(files.len() > 30, "{}", files.len());
        let module = Regex::new(r"\bcrate::\{?\s*(\w+)").unwrap();
        let mut count = 0;
        for file in files {
            let text = fs::read_to_string(&file).unwrap();
            for used in module.captures_iter(&text) {
                let is_known = MODULES.iter().any(|module| used[1].starts_with(module));
                assert!(is_known, "{} uses crate::{}, which build.rs does not digest", file.display(), &used[1]);
                count += 1;
            }
        }
        assert!(count > 5, "{count}");
    }
}
