//! Packages with extensions that require exactly one release of torch. Without undefined symbols, an extension for another
//! release may still pass its objects in another form: those for torch 2.8 crash under 2.9 when they are loaded.

use std::collections::BTreeSet;

use model::{Fact, Found, Site, Version};
use rootfs::loader::elf;

use super::super::Context;
use super::super::python::Python;
use super::{concerns, listed, owner};

/// The packages that require a release of another series than this torch, apart from those that are known not to load.
pub(super) fn of_other_torch(
    context: &Context<'_>,
    python: &Python,
    torch: &Version,
    broken: &[String],
) -> Fact<Vec<String>> {
    let in_packages = |path| python.site_packages.iter().any(|folder| model::ImagePath::starts_with(path, folder));
    let pins: Vec<_> = { context.rootfs.read_files() }
        .filter_map(|(path, file)| {
            let release = file.found.iter().find_map(|found| match found {
                Ok(Found::TorchPin(release)) => Some(release.as_str()),
                _ => None,
            })?;
            let info = path.parent();
            let name = std::str::from_utf8(info.file_name()).ok()?.strip_suffix(".dist-info")?.replacen('-', " ", 1);
            (in_packages(path) && series(release) != series(torch.as_str()))
                .then(|| (name, release, file.site(path, None)))
        })
        .collect();
    if pins.is_empty() {
        return Fact::Absent;
    }
    let extensions =
        context.rootfs.read_files().filter(|(path, file)| in_packages(path) && elf(file).is_some_and(concerns));
    let owners: BTreeSet<_> = extensions.filter_map(|(path, _)| owner::package(context, path)).collect();
    let is_broken = |name: &String| broken.iter().any(|text| text.starts_with(&format!("{name}: ")));
    let pins = pins.into_iter().filter(|(name, ..)| owners.contains(name) && !is_broken(name));
    listed(
        pins.map(|(name, release, site): (String, &str, Site)| {
            (format!("{name} requires torch=={release}"), Some(site))
        }),
    )
}

/// The series of a release: `2.9` of 2.9.1+cu128.
fn series(release: &str) -> Vec<&str> {
    release.split(['.', '+']).take(2).collect()
}
