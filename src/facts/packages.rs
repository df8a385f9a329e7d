//! Package ownership of files: wheels (PEP 376, `RECORD`), Debian packages (`/var/lib/dpkg`), conda packages
//! (`conda-meta`).

use std::collections::BTreeMap;

use crate::model::{Found, Gap, ImagePath};
use crate::rootfs::{RootFile, RootFs};

use super::pattern;

pattern!(NAME, r"(?m)^Name: *(\S+) *\r?$");
pattern!(VERSION, r"(?m)^Version: *(\S+) *\r?$");

/// Owners of files, as strings such as `nvidia-nccl-cu12 2.27.5 (wheel)`.
#[derive(Debug, Default)]
pub(super) struct Packages {
    owners: BTreeMap<ImagePath, Vec<String>>,
    /// Why a wheel's record was not read, if any.
    unread: Option<Gap>,
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

    /// The gap for files without an owner: they may belong to a wheel whose record was not read.
    pub(super) const fn unread(&self) -> Option<&Gap> {
        self.unread.as_ref()
    }

    fn own(&mut self, rootfs: &RootFs, path: &ImagePath, owner: &str) {
        // Only libraries need owners; storing all files would waste memory.
        if path.file_name().windows(3).any(|part| part == b".so") {
            let real = rootfs.open(path).map_or_else(|_| path.clone(), |(real, _)| real);
            let owners = self.owners.entry(real).or_default();
            if !owners.iter().any(|known| known == owner) {
                owners.push(owner.to_owned());
            }
        }
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
        let owner = format!("{name} {version} (wheel)");
        for line in record.split(|&b| b == b'\n') {
            // CSV: paths with a comma are quoted.
            let path = match line.strip_prefix(b"\"") {
                Some(quoted) => quoted.split(|&b| b == b'"').next(),
                None => line.split(|&b| b == b',').next(),
            };
            self.own(rootfs, &info.parent().join(path.unwrap_or_default()), &owner);
        }
    }

    fn dpkg(&mut self, rootfs: &RootFs, name: &[u8], versions: &BTreeMap<String, String>, list: &[u8]) {
        let name = String::from_utf8_lossy(name);
        let name = name.split(':').next().unwrap_or_default();
        let version = versions.get(name).map_or("", String::as_str);
        for line in list.split(|&b| b == b'\n') {
            self.own(rootfs, &ImagePath::normalise(line), &format!("{name} {version} (dpkg)"));
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
            self.own(rootfs, &prefix.join(file.as_bytes()), &owner);
        }
    }
}

/// Versions of installed Debian packages: stanzas of `Package:` and `Version:`.
fn dpkg_versions(rootfs: &RootFs) -> BTreeMap<String, String> {
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
