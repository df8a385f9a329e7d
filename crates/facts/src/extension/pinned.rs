//! Packages with extensions that were built for exactly one series of torch, and not for this one. Without undefined symbols,
//! an extension for another series may still pass its objects in another form.

use std::collections::BTreeSet;

use model::{ElfInfo, Fact, Found, ImagePath, Site, Table, Version};
use rootfs::loader::elf;

use super::super::python::Python;
use crate::table;

use super::super::Context;
use super::{concerns, listed, owner};

/// The first series with another layout of `torch::CppFunction`, which extensions make and torch reads: those that were built
/// before and run under it, or the reverse, crash where they register their operators (torchvision 0.23 and torchcodec 0.7
/// under torch 2.9).
const OTHER_LAYOUT: (u32, u32) = (2, 9);

/// A row of the table of packages whose metadata does not say which torch they were built for.
#[derive(serde::Deserialize)]
pub(crate) struct BuiltFor {
    /// The package, and the beginning of its releases.
    package: String,
    torch: String,
}

pub(crate) static BUILT_FOR: Table<Vec<BuiltFor>> = table!("built-for");

/// The packages for another torch.
pub(super) struct OtherTorch {
    /// Those that the program loads and that crash.
    pub(super) crashing: Fact<Vec<String>>,
    /// The others, apart from those that are known not to load.
    pub(super) other: Fact<Vec<String>>,
}

/// The packages for a release of another series than this torch.
pub(super) fn of_other_torch(
    context: &Context<'_>,
    python: &Python,
    torch: &Version,
    broken: &[String],
    loaded: &[String],
) -> OtherTorch {
    let in_packages = |path: &&ImagePath| python.site_packages.iter().any(|folder| path.starts_with(folder));
    let rootfs = context.rootfs;
    let infos = { python.site_packages.iter() }
        .flat_map(|folder| rootfs.names(folder).map(move |info| (folder.join(info).join(b"METADATA"), info)));
    let pins = infos.filter_map(|(path, info)| {
        let name = std::str::from_utf8(info).ok()?.strip_suffix(".dist-info")?.replacen('-', " ", 1);
        let (path, file) = rootfs.open(&path).ok()?;
        let pin = file.found.iter().find_map(|found| match found {
            Ok(Found::TorchPin(release)) => Some((release.as_str(), format!("{name} requires torch=={release}"))),
            _ => None,
        });
        let known = || BUILT_FOR.iter().find(|row| name.starts_with(&row.package));
        let built = || known().map(|row| (row.torch.as_str(), format!("{name} is built for torch {}", row.torch)));
        let (release, text) = pin.or_else(built).filter(|(release, _)| series(release) != series(torch.as_str()))?;
        Some((name, is_of_other_layout(release), text, file.site(&path, None)))
    });
    let pins: Vec<_> = pins.collect();
    if pins.is_empty() {
        return OtherTorch { crashing: Fact::Absent, other: Fact::Absent };
    }
    let mut owners = BTreeSet::new();
    let mut registering = BTreeSet::new();
    for (path, file) in rootfs.read_files().filter(|(path, _)| in_packages(path)) {
        let Some(elf) = elf(&file).filter(|elf| concerns(elf)) else { continue };
        let Some(owner) = owner::package(context, path) else { continue };
        if registers(elf) && loaded.contains(&path.to_string()) {
            registering.insert(owner.clone());
        }
        owners.insert(owner);
    }
    let is_other = is_of_other_layout(torch.as_str());
    let is_broken = |name: &str| broken.iter().any(|text| text.starts_with(&format!("{name}: ")));
    let (crashing, other): (Vec<_>, Vec<_>) = { pins.into_iter() }
        .filter(|(name, ..)| owners.contains(name) && !is_broken(name))
        .partition(|(name, layout, ..)| *layout != is_other && registering.contains(name));
    let texts =
        |pins: Vec<(String, bool, String, Site)>| listed(pins.into_iter().map(|(_, _, text, site)| (text, Some(site))));
    OtherTorch { crashing: texts(crashing), other: texts(other) }
}

/// Returns true for a library that makes functions of operators for torch.
fn registers(elf: &ElfInfo) -> bool {
    let links = elf.links.as_ref();
    let part = b"11CppFunction";
    links.is_ok_and(|links| {
        links.imports.iter(false).any(|import| import.name.windows(part.len()).any(|own| own == part))
    })
}

/// The series of a release: 2 and 9 of 2.9.1+cu128.
fn series(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(['.', '+']).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

fn is_of_other_layout(release: &str) -> bool {
    series(release).is_some_and(|series| series >= OTHER_LAYOUT)
}
