//! The package that an extension belongs to.

use model::{Fact, ImagePath};
use rootfs::RootFs;

use super::super::{Context, text};

/// Name and version of the package of a file: `flash_attn 2.8.3`; its first folder where no metadata says. `None` outside of
/// folders of packages.
pub(super) fn package(context: &Context<'_>, path: &ImagePath) -> Option<String> {
    if let Some(owner) = context.packages.owners(path).first() {
        return Some(owner.rsplit_once(" (").map_or(owner.as_str(), |(name, _)| name).to_owned());
    }
    let folders = context.python.iter().flat_map(|python| &python.site_packages);
    let folder = folders.filter(|folder| path.starts_with(folder)).max_by_key(|folder| folder.as_bytes().len())?;
    let first = path.components().nth(folder.components().count()).unwrap_or_default();
    let names = [path.file_name(), first]
        .map(|name| String::from_utf8_lossy(name.split(|&byte| byte == b'.').next().unwrap_or_default()).into_owned());
    let installed = names.iter().find_map(|name| installed(context.rootfs, folder, name));
    installed.or_else(|| names.into_iter().next_back())
}

/// The distribution in a folder that has this module: its list of modules says so, or its name does.
fn installed(rootfs: &RootFs, folder: &ImagePath, module: &str) -> Option<String> {
    let infos = rootfs.names(folder).filter_map(|info| {
        let (name, version) = std::str::from_utf8(info).ok()?.strip_suffix(".dist-info")?.split_once('-')?;
        Some((info, name, version))
    });
    let infos: Vec<_> = infos.collect();
    let lists = |info: &[u8]| match text(rootfs, &folder.join(info).join(b"top_level.txt")) {
        Fact::Seen { value, .. } => {
            value.split(|&byte| byte == b'\n').any(|line| line.trim_ascii() == module.as_bytes())
        }
        Fact::Absent | Fact::Unknown(_) => false,
    };
    let listed = infos.iter().find(|(info, ..)| lists(info));
    let plain = |name: &str| name.to_lowercase().replace(['-', '.'], "_");
    let module = plain(module);
    let same = || infos.iter().find(|(_, name, _)| plain(name) == module);
    let is_part = |whole: &str, part: &str| whole.strip_prefix(part).is_some_and(|rest| rest.starts_with('_'));
    let akin = || {
        let akin = infos.iter().filter(|(_, name, _)| is_part(&module, &plain(name)) || is_part(&plain(name), &module));
        akin.max_by_key(|(_, name, _)| name.len())
    };
    let (_, name, version) = listed.or_else(same).or_else(akin)?;
    Some(format!("{name} {version}"))
}
