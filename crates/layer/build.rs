//! Computes the version of the scanner.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use sha2::{Digest as _, Sha256};

/// The code that decides what a scan of the same bytes gives, and how a scan is stored. A test verifies that it uses no other
/// code of this repository.
const SCANNER: &[&str] = &[
    "src/cache/entry.rs",
    "src/cache/key.rs",
    "src/scan",
    "src/squashfs",
    "src/tar",
    "../emulate/src",
    "../model/src",
    "../unpack/src",
];

/// The lock file of this repository, or of a package.
const LOCKS: [&str; 2] = ["../../Cargo.lock", "Cargo.lock"];

#[expect(clippy::disallowed_methods, reason = "cargo passes variables to build scripts")]
fn main() -> io::Result<()> {
    for path in SCANNER.iter().chain(&LOCKS).chain(&["build.rs"]).filter(|path| Path::new(path).exists()) {
        println!("cargo::rerun-if-changed={path}");
    }
    let mut files = Vec::new();
    SCANNER.iter().try_for_each(|place| gather(Path::new(place), &mut files))?;
    files.sort();
    let (mut hasher, mut words) = (Sha256::new(), BTreeSet::new());
    for path in files {
        let tokens: TokenStream = fs::read_to_string(&path)?
            .parse()
            .map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
        hasher.update(format!("\n{} ", path.display()));
        digest(tokens, &mut hasher, &mut words);
    }
    // Without a lock file, versions do not count.
    if let Some(lock) = LOCKS.iter().find_map(|path| fs::read_to_string(path).ok()) {
        for (name, version) in used_crates(&lock, &words)? {
            hasher.update(format!("\n{name} {version}"));
        }
    }
    // How large a number in a file may be.
    hasher.update(env::var("CARGO_CFG_TARGET_POINTER_WIDTH").unwrap_or_default());
    println!("cargo::rustc-env=NCCLCHECK_SCANNER={}", hex(&hasher.finalize()));
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The Rust files below a path, without files of tests. A path may be missing: a package has no other crate's code, and the
/// versions of those crates count instead.
fn gather(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            gather(&entry?.path(), files)?;
        }
    } else if path.extension().is_some_and(|own| own == "rs") && !is_test(path) {
        files.push(path.to_owned());
    }
    Ok(())
}

fn is_test(path: &Path) -> bool {
    path.components().any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs")))
}

/// Adds the code of a file to the digest, without comments, documentation, layout and tests, and its words to the set.
pub(crate) fn digest(tokens: TokenStream, hasher: &mut Sha256, words: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        if is_hash(&token) {
            // An inner attribute, `#![…]`, has one more sign.
            tokens.next_if(|next| matches!(next, TokenTree::Punct(sign) if sign.as_char() == '!'));
            match tokens.peek().map(ToString::to_string).as_deref().map(without_space).as_deref() {
                Some(text) if text.starts_with("[doc") => {
                    tokens.next();
                    continue;
                }
                Some("[cfg(test)]") => {
                    // The item ends with its body, or with a semicolon.
                    tokens.find(is_end_of_item);
                    continue;
                }
                _ => {}
            }
        }
        match token {
            TokenTree::Group(group) => {
                hasher.update(format!("{:?}(", group.delimiter()));
                digest(group.stream(), hasher, words);
                hasher.update(")");
            }
            other => {
                let text = other.to_string();
                hasher.update(format!("{text} "));
                words.insert(text);
            }
        }
    }
}

fn is_hash(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Punct(sign) if sign.as_char() == '#')
}

fn without_space(text: &str) -> String {
    text.split_whitespace().collect()
}

fn is_end_of_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        TokenTree::Ident(_) | TokenTree::Literal(_) => false,
    }
}

/// The crates of a lock file that the scanner names, and all that those depend on, with their versions.
pub(crate) fn used_crates(lock: &str, words: &BTreeSet<String>) -> io::Result<BTreeMap<String, String>> {
    let mut packages: BTreeMap<&str, Vec<Package<'_>>> = BTreeMap::new();
    for text in lock.split("[[package]]").skip(1) {
        let package =
            Package::parse(text).ok_or_else(|| io::Error::other("Cargo.lock has a package without a name"))?;
        packages.entry(package.name).or_default().push(package);
    }
    let own = ["ncclcheck-emulate", "ncclcheck-model", "ncclcheck-unpack"];
    let is_named = |name: &str| words.contains(&name.replace('-', "_")) || own.contains(&name);
    let mut wanted: Vec<&str> = packages.keys().copied().filter(|name| is_named(name)).collect();
    let mut used = BTreeMap::new();
    while let Some(name) = wanted.pop() {
        for package in packages.remove(name).unwrap_or_default() {
            used.insert(format!("{name} {}", package.version), package.version.to_owned());
            wanted.extend(package.needs);
        }
    }
    Ok(used)
}

/// A package of the lock file.
struct Package<'l> {
    name: &'l str,
    version: &'l str,
    needs: Vec<&'l str>,
}

impl<'l> Package<'l> {
    fn parse(text: &'l str) -> Option<Self> {
        let value = |key: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = "))?;
            Some(line.trim_matches('"'))
        };
        // ` "name",` or ` "name version",`
        let needs = text.lines().filter_map(|line| line.strip_prefix(" \"")?.split(['"', ' ']).next());
        Some(Self { name: value("name")?, version: value("version")?, needs: needs.collect() })
    }
}
