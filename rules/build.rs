//! Compresses the rules and the topics that the program contains, and computes the version of the rules.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use flate2::Compression;
use flate2::write::DeflateEncoder;
use sha2::{Digest as _, Sha256};

/// Built-in rules, profiles and tables.
const RULES: &str = "rules";

/// The book, of which `explain` prints some pages.
const BOOK: &str = "docs";

/// The pages of the book that `explain` prints: those about topics, and how to use the program beside others.
const PAGES: [&str; 4] = ["compose.md", "kubernetes.md", "slurm.md", "topics"];

/// The folder of tables, which other crates contain.
const TABLES: &str = "tables";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed={RULES}");
    for page in PAGES {
        println!("cargo::rerun-if-changed={BOOK}/{page}");
    }
    println!("cargo::rustc-env=NCCLCHECK_RULES={}", rules_version(Path::new(RULES))?);
    let output = env::var_os("OUT_DIR").map(PathBuf::from).unwrap_or_default();
    let whole = |_: &Path, text: &str| Ok(text.to_owned());
    fs::write(output.join("rules"), packed(Path::new(RULES), &[""], "yaml", whole)?)?;
    fs::write(output.join("rules.json"), packed(Path::new(RULES), &[""], "yaml", json)?)?;
    fs::write(output.join("topics"), packed(Path::new(BOOK), &PAGES, "md", whole)?)
}

/// The number of rules, and a digest of the whole folder: profiles and tables decide verdicts too.
#[expect(clippy::disallowed_methods, reason = "files of this repository")]
pub(crate) fn rules_version(folder: &Path) -> io::Result<String> {
    let mut files = Vec::new();
    gather(folder, "yaml", &mut files)?;
    files.sort();
    let (mut hasher, mut rules) = (Sha256::new(), 0);
    for path in files {
        let name = path.strip_prefix(folder).unwrap_or(&path);
        hasher.update(format!("\n{} ", name.display()));
        hasher.update(fs::read(&path)?);
        rules += usize::from(!name.starts_with("profiles") && !name.starts_with(TABLES));
    }
    Ok(format!("{rules}, version {}", hex(&hasher.finalize()).get(..12).unwrap_or_default()))
}

/// The files at or below these paths of a folder with this ending of their names, without tables, as raw DEFLATE data: for each its
/// path in the folder and its text in some form, each of them followed by a NUL.
#[expect(clippy::disallowed_methods, reason = "files of this repository")]
fn packed(
    folder: &Path,
    paths: &[&str],
    ending: &str,
    form: impl Fn(&Path, &str) -> io::Result<String>,
) -> io::Result<Vec<u8>> {
    let mut files = Vec::new();
    for path in paths {
        gather(&folder.join(path), ending, &mut files)?;
    }
    files.retain(|path| !path.starts_with(folder.join(TABLES)));
    files.sort();
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    for path in files {
        let text = form(&path, &fs::read_to_string(&path)?)?;
        if text.contains('\0') {
            return Err(io::Error::other(format!("{} contains a NUL", path.display())));
        }
        write!(encoder, "{}\0{text}\0", path.strip_prefix(folder).unwrap_or(&path).display())?;
    }
    encoder.finish()
}

/// A rule as JSON, which is read in a fifth of the time, without its examples.
fn json(path: &Path, text: &str) -> io::Result<String> {
    let options = serde_yaml::options! { strict_booleans: true };
    let value = serde_yaml::from_str_with_options(text, options);
    let mut value: serde_json::Value =
        value.map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    if let Some(rule) = value.as_object_mut() {
        rule.remove("examples");
    }
    Ok(value.to_string())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The files below a path with this ending of their names.
fn gather(path: &Path, ending: &str, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            gather(&entry?.path(), ending, files)?;
        }
    } else if path.extension().is_some_and(|extension| extension == ending) {
        files.push(path.to_owned());
    }
    Ok(())
}
