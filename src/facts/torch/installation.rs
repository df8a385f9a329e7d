//! The torch packages of the image, and which one is imported.

use crate::model::{Fact, Gap, ImagePath, Site};
use crate::rootfs::RootFs;

use super::super::python::Python;

/// The torch packages of an image.
#[derive(Debug)]
pub(in crate::facts) struct Installation {
    pub(in crate::facts) all: Vec<(ImagePath, Site)>,
    /// The one that this check covers.
    pub(in crate::facts) chosen: Fact<ImagePath>,
    /// The path through which Python finds it; links are not followed.
    pub(in crate::facts) imported_as: Option<ImagePath>,
}

impl Installation {
    /// No torch, in an image whose subject does not import it.
    pub(in crate::facts) const fn none() -> Self {
        Self { all: Vec::new(), chosen: Fact::Absent, imported_as: None }
    }

    pub(in crate::facts) fn find(rootfs: &RootFs, python: Option<&Python>) -> Self {
        let mut all = Vec::new();
        for (path, file) in rootfs.files_named(|name| name == b"version.py") {
            let package = path.parent();
            if package.file_name() != b"torch" {
                continue;
            }
            let folder = package.parent();
            // A conda package cache contains copies that are never imported.
            let is_cache = package.components().any(|part| part == b"pkgs");
            if matches!(folder.file_name(), b"site-packages" | b"dist-packages") && !is_cache {
                all.push((package, file.site(&path, None)));
            }
        }
        let first = python.into_iter().flat_map(|python| &python.path).map(|folder| folder.join(b"torch"));
        let imported = first.into_iter().find(|package| rootfs.open(&package.join(b"version.py")).is_ok());
        let chosen = Self::choose(rootfs, python, imported.as_ref(), &all);
        let imported_as = imported.or_else(|| chosen.value().cloned());
        Self { all, chosen, imported_as }
    }

    /// The first one on the interpreter's path; else the only one.
    fn choose(
        rootfs: &RootFs,
        python: Option<&Python>,
        imported: Option<&ImagePath>,
        all: &[(ImagePath, Site)],
    ) -> Fact<ImagePath> {
        let imported = imported.and_then(|package| {
            let (real, file) = rootfs.open(&package.join(b"version.py")).ok()?;
            Some(Fact::seen(real.parent(), [file.site(&real, None)]))
        });
        if let (Some(Err(gap)), false) = (python.map(|python| &python.program), all.is_empty()) {
            return Fact::Unknown(gap.clone());
        }
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
