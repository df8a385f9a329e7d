//! Package ownership of files: wheels (PEP 376, `RECORD`), Debian packages (`/var/lib/dpkg`), conda packages
//! (`conda-meta`).

use std::collections::BTreeMap;

use memchr::memmem;

use model::{Found, Gap, ImagePath};
use rootfs::{RootFile, RootFs};

use super::pattern;

/// A file as the record of a wheel lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Recorded {
    /// The wheel's name and version: `nvidia-cudnn-cu12 9.10.2.21`.
    pub(super) wheel: String,
    /// `sha256=` and the digest; empty if the record has none.
    pub(super) hash: String,
    /// Size in bytes; `None` if the record has none.
    pub(super) size: Option<u64>,
}

pattern!(NAME, r"(?m)^Name: *(\S+) *\r?$");
pattern!(VERSION, r"(?m)^Version: *(\S+) *\r?$");

/// Most libraries whose owners are kept. The image of torch 2.9.0 has some 3,000.
const MOST_LIBRARIES: usize = 100_000;

/// Most owners of one library.
const MOST_OWNERS: usize = 100;

/// Most bytes of the name and the version of an owner.
const LONGEST: usize = 500;

/// Owners of files, as strings such as `nvidia-nccl-cu12 2.27.5 (wheel)`.
#[derive(Debug, Default)]
pub(super) struct Packages {
    owners: BTreeMap<ImagePath, Vec<String>>,
    /// Libraries by path, as the wheels record them.
    recorded: BTreeMap<ImagePath, Vec<Recorded>>,
    /// Why a wheel's record was not read, if any.
    unread: Option<Gap>,
}

/// Returns true for a file of a package in the store from which conda or uv installs it: a folder in conda's `pkgs`, which
/// has the package's `info`, or in `archive-v0` of uv's cache directory. No search path leads there.
pub(super) fn is_stored(rootfs: &RootFs, path: &ImagePath) -> bool {
    let mut package = ImagePath::root();
    let mut store: &[u8] = b"";
    for folder in path.components() {
        package = package.child(folder);
        if store == b"archive-v0" || (store == b"pkgs" && rootfs.is_directory(&package.join(b"info"))) {
            return true;
        }
        store = folder;
    }
    false
}

impl Packages {
    pub(super) fn read(rootfs: &RootFs) -> Self {
        let mut packages = Self::default();
        let versions = dpkg_versions(rootfs);
        for (path, file) in rootfs.read_files() {
            let Some(bytes) = whole(&file) else {
                if path.file_name() == b"RECORD" {
                    packages.unread =
                        packages.unread.or_else(|| file.found.iter().find_map(|found| found.clone().err()));
                }
                continue;
            };
            let parent = path.parent();
            if path.file_name() == b"RECORD" {
                packages.wheel(rootfs, &parent, bytes);
            } else if parent.file_name() == b"conda-meta" {
                packages.conda(rootfs, &parent.parent(), bytes);
            } else if let Some(name) = path.file_name().strip_suffix(b".list") {
                packages.dpkg(rootfs, name, &versions, bytes);
            }
        }
        packages
    }

    /// The packages that own a file, joined; several if one overwrote another.
    pub(super) fn owner(&self, path: &ImagePath) -> Option<String> {
        self.owners.get(path).map(|owners| owners.join(", "))
    }

    /// The packages that own a file, one by one.
    pub(super) fn owners(&self, path: &ImagePath) -> &[String] {
        self.owners.get(path).map_or(&[], Vec::as_slice)
    }

    /// The libraries that wheels installed, each with what every wheel recorded about it.
    pub(super) fn recorded(&self) -> impl Iterator<Item = (&ImagePath, &[Recorded])> {
        self.recorded.iter().map(|(path, wheels)| (path, wheels.as_slice()))
    }

    /// The gap for files without an owner: they may belong to a wheel whose record was not read.
    pub(super) const fn unread(&self) -> Option<&Gap> {
        self.unread.as_ref()
    }

    /// Notes the owner of a library and returns its path after links; `None` for other files, which need no owners. The
    /// owner recorded the path `raw` in `folder`.
    fn own(&mut self, rootfs: &RootFs, folder: &ImagePath, raw: &[u8], owner: &str) -> Option<ImagePath> {
        let is_library = |path: &[u8]| memmem::find(path, b".so").is_some();
        let path = is_library(raw).then(|| folder.join(raw)).filter(|path| is_library(path.file_name()))?;
        let real = rootfs.open(&path).map_or(path, |(real, _)| real);
        let count = self.owners.len();
        let owners = self.owners.entry(real.clone()).or_default();
        if owners.iter().any(|known| known == owner) {
            return Some(real);
        }
        if count > MOST_LIBRARIES || owners.len() >= MOST_OWNERS || owner.len() > LONGEST {
            if owners.is_empty() {
                self.owners.remove(&real);
            }
            let why = format!(
                "records of packages are read for {MOST_LIBRARIES} libraries with {MOST_OWNERS} owners, each with a name of \
                 {LONGEST} bytes, and there are more"
            );
            self.unread.get_or_insert_with(|| Gap::new(why));
            return None;
        }
        owners.push(owner.to_owned());
        Some(real)
    }

    fn wheel(&mut self, rootfs: &RootFs, info: &ImagePath, record: &[u8]) {
        let metadata = rootfs.open(&info.join(b"METADATA")).ok().and_then(|(_, file)| whole(&file));
        let field = |pattern: &std::sync::LazyLock<regex::bytes::Regex>| {
            metadata
                .and_then(|text| pattern.captures(text))
                .map(|captures| String::from_utf8_lossy(&captures[1]).into_owned())
        };
        let (Some(name), Some(version)) = (field(&NAME), field(&VERSION)) else {
            return;
        };
        let wheel = format!("{name} {version}");
        let owner = format!("{wheel} (wheel)");
        let folder = info.parent();
        for line in lines_of_libraries(record) {
            let (path, rest) = path_and_rest(line);
            if let Some(real) = self.own(rootfs, &folder, path, &owner) {
                let recorded = self.recorded.entry(real).or_default();
                let (hash, size) = hash_and_size(rest);
                let new = Recorded { wheel: wheel.clone(), hash, size };
                // A wheel has one line for a file.
                if recorded.last() != Some(&new) && recorded.len() < MOST_OWNERS {
                    recorded.push(new);
                }
            }
        }
    }

    fn dpkg(&mut self, rootfs: &RootFs, name: &[u8], versions: &BTreeMap<String, String>, list: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let name = name.split(':').next().unwrap_or_default();
        let version = versions.get(name).map_or("", String::as_str);
        let owner = format!("{name} {version} (dpkg)");
        for line in lines_of_libraries(list) {
            self.own(rootfs, &ImagePath::root(), line, &owner);
        }
    }

    fn conda(&mut self, rootfs: &RootFs, prefix: &ImagePath, json: &[u8]) {
        #[derive(serde::Deserialize)]
        struct Package {
            name: String,
            version: String,
            #[serde(default)]
            files: Vec<String>,
        }
        let Ok(package) = serde_json::from_slice::<Package>(json) else {
            return;
        };
        let owner = format!("{} {} (conda)", package.name, package.version);
        for file in &package.files {
            self.own(rootfs, prefix, file.as_bytes(), &owner);
        }
    }
}

/// The lines of a text that contain `.so`. The others are not split: an image has a hundred other files for each library.
fn lines_of_libraries(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (before, _) = rest.split_at(memmem::find(rest, b".so")?);
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let line = rest.get(start..)?.split(|&byte| byte == b'\n').next()?;
        rest = rest.get(start + line.len()..)?;
        Some(line)
    })
}

/// The path in a line of a wheel's record (PyPA, "Recording installed projects"), and the rest of the line.
fn path_and_rest(line: &[u8]) -> (&[u8], &[u8]) {
    // CSV: paths with a comma are quoted.
    match line.strip_prefix(b"\"").and_then(|quoted| split(quoted, b'"')) {
        Some((path, rest)) => (path, rest.strip_prefix(b",").unwrap_or(rest)),
        None => split(line, b',').unwrap_or((line, &[])),
    }
}

fn hash_and_size(rest: &[u8]) -> (String, Option<u64>) {
    let rest = String::from_utf8_lossy(rest);
    let (hash, size) = rest.trim_end().split_once(',').unwrap_or((&rest, ""));
    (hash.to_owned(), size.parse().ok())
}

fn split(text: &[u8], at: u8) -> Option<(&[u8], &[u8])> {
    let place = text.iter().position(|&byte| byte == at)?;
    Some((text.get(..place)?, text.get(place + 1..)?))
}

/// Versions of installed Debian packages: stanzas of `Package:` and `Version:`.
pub(crate) fn dpkg_versions(rootfs: &RootFs) -> BTreeMap<String, String> {
    let Ok((_, status)) = rootfs.open(&ImagePath::from("var/lib/dpkg/status")) else {
        return BTreeMap::new();
    };
    let text = String::from_utf8_lossy(whole(&status).unwrap_or_default());
    let mut versions = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        if let Some(package) = line.strip_prefix("Package: ") {
            name = package;
        } else if let Some(version) = line.strip_prefix("Version: ") {
            versions.insert(name.to_owned(), version.to_owned());
        }
    }
    versions
}

fn whole<'a>(file: &RootFile<'a>) -> Option<&'a [u8]> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Text(bytes)) => Some(&**bytes),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Limits;

    #[test]
    fn a_record_is_read_by_its_fields() {
        for (line, path, hash, size) in [
            ("a/b.so,sha256=x,12", "a/b.so", "sha256=x", Some(12)),
            ("a/b.so,sha256=x,12\r", "a/b.so", "sha256=x", Some(12)),
            ("\"a,b.so\",sha256=x,12", "a,b.so", "sha256=x", Some(12)),
            ("a/RECORD,,", "a/RECORD", "", None),
            ("a", "a", "", None),
            ("", "", "", None),
        ] {
            let (read, rest) = path_and_rest(line.as_bytes());
            assert_eq!((read, hash_and_size(rest)), (path.as_bytes(), (hash.to_owned(), size)), "{line}");
        }
    }

    #[test]
    fn only_lines_of_libraries_are_split() {
        let text = b"a/x.py\na/b.so,sha256=.so,12\nc\nd.so.1\n\ne.so";
        assert_eq!(lines_of_libraries(text).collect::<Vec<_>>(), [&b"a/b.so,sha256=.so,12"[..], b"d.so.1", b"e.so"]);
        assert_eq!(lines_of_libraries(b"").count(), 0);
    }

    #[test]
    fn owners_are_kept_up_to_limits() {
        let rootfs = RootFs::fold(Vec::new(), &Limits::default());
        let mut packages = Packages::default();
        let library = ImagePath::from("lib/liba.so");
        let other = ImagePath::from("lib/libb.so");
        for number in 0..2 * MOST_OWNERS {
            packages.own(&rootfs, &ImagePath::root(), library.as_bytes(), &format!("a {}", number % MOST_OWNERS));
        }
        assert_eq!((packages.owners(&library).len(), packages.unread()), (MOST_OWNERS, None));
        packages.own(&rootfs, &ImagePath::root(), library.as_bytes(), "b");
        packages.own(&rootfs, &ImagePath::root(), other.as_bytes(), &"c".repeat(LONGEST + 1));
        assert_eq!((packages.owners(&library).len(), packages.owner(&other)), (MOST_OWNERS, None));
        assert!(packages.unread().unwrap().why.ends_with("and there are more"));
    }
}
