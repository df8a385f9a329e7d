//! What is not in the sources themselves: that a change in the rules folder, which is embedded, is a change of the program, and
//! the version of the scanner.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use sha2::{Digest as _, Sha256};

/// All that decides what a scan of the same bytes gives, and how it is written down. A test holds that the code here uses no
/// other code of this crate.
const SCANNER: &[&str] = &[
    "crates/emulate/src",
    "crates/unpack/src",
    "src/cache/entry.rs",
    "src/cache/key.rs",
    "src/model",
    "src/scan",
    "src/tarball",
    "Cargo.toml",
    "Cargo.lock",
];

#[expect(clippy::disallowed_methods, reason = "cargo speaks to build scripts by variables")]
fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    for place in SCANNER {
        println!("cargo::rerun-if-changed={place}");
        gather(Path::new(place), &mut files)?;
    }
    files.sort();
    let mut hasher = Sha256::new();
    for path in files {
        let content = fs::read(&path)?;
        hasher.update(format!("{} {}\n", path.display(), content.len()));
        hasher.update(content);
    }
    // How large a number in a file may be.
    hasher.update(env::var("CARGO_CFG_TARGET_POINTER_WIDTH").unwrap_or_default());
    let version = hasher.finalize().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    println!("cargo::rustc-env=NCCLCHECK_SCANNER={version}");
    Ok(())
}

/// The files of a place, in whatever order. A lock file need not be there: a library is built with that of its user.
fn gather(place: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if place.is_dir() {
        for entry in fs::read_dir(place)? {
            gather(&entry?.path(), files)?;
        }
    } else if place.exists() || !place.ends_with("Cargo.lock") {
        files.push(place.to_owned());
    }
    Ok(())
}
