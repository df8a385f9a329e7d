//! Which torch packages there are, and which of them is imported.

use crate::model::{Fact, Gap, ImagePath, Site};
use crate::rootfs::RootFs;

use super::super::python::Python;

/// The torch packages of an image.
#[derive(Debug)]
pub(in crate::facts) struct Installation {
    pub(in crate::facts) all: Vec<(ImagePath, Site)>,
    /// The one that this check is about.
    pub(in crate::facts) chosen: Fact<ImagePath>,
}

impl Installation {
    pub(in crate::facts) fn find(rootfs: &RootFs, python: &Python) -> Self {
        let mut all = Vec::new();
        for (path, file) in rootfs.files().filter(|(path, _)| path.ends_with("torch/version.py")) {
            let package = path.parent();
            let folder = package.parent();
            // A conda package cache holds copies that nobody imports.
            let is_cache = package.components().any(|part| part == b"pkgs");
            if matches!(folder.file_name(), b"site-packages" | b"dist-packages") && !is_cache {
                all.push((package, file.site(&path, None)));
            }
        }
        let chosen = Self::choose(rootfs, python, &all);
        Self { all, chosen }
    }

    /// The first on the interpreter's path; else the only one there is.
    fn choose(rootfs: &RootFs, python: &Python, all: &[(ImagePath, Site)]) -> Fact<ImagePath> {
        let imported = python.site_packages.iter().find_map(|folder| {
            let (real, file) = rootfs.open(&folder.join(b"torch/version.py")).ok()?;
            Some(Fact::seen(real.parent(), [file.site(&real, None)]))
        });
        imported.unwrap_or_else(|| match all {
            [] => Fact::Absent,
            [(package, site)] => Fact::seen(package.clone(), [site.clone()]),
            several => {
                let paths: Vec<_> = several.iter().map(|(package, _)| package.to_string()).collect();
                Fact::Unknown(Gap::new(format!(
                    "there are {} torch packages, and the Python on PATH imports none of them: {}",
                    several.len(),
                    paths.join(", ")
                )))
            }
        })
    }
}
