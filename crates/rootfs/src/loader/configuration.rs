//! `/etc/ld.so.conf`: the directories from which ldconfig builds the loader's cache, in order (ldconfig(8); glibc,
//! `elf/ldconfig.c`). Of several libraries with one soname, the cache has that of the first directory.

use std::collections::BTreeSet;

use model::{Gap, ImagePath};

use super::{RootFs, text};

/// A directory that ldconfig searches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfiguredDirectory {
    /// The directory.
    pub path: ImagePath,
    /// The file that names it: `/etc/ld.so.conf`, or one that this includes.
    pub file: ImagePath,
}

/// The directories that `/etc/ld.so.conf` names, in the order of ldconfig.
///
/// # Errors
///
/// Fails if the text of one of its files is unknown.
pub fn configured_directories(rootfs: &RootFs) -> Result<Vec<ConfiguredDirectory>, Gap> {
    let mut directories = Vec::new();
    read(rootfs, &ImagePath::from("etc/ld.so.conf"), &mut BTreeSet::new(), &mut directories)?;
    Ok(directories)
}

fn read(
    rootfs: &RootFs,
    file: &ImagePath,
    seen: &mut BTreeSet<ImagePath>,
    directories: &mut Vec<ConfiguredDirectory>,
) -> Result<(), Gap> {
    // A file that is included again adds no directory that is not before.
    if !seen.insert(file.clone()) {
        return Ok(());
    }
    let content = String::from_utf8_lossy(text(rootfs, &file.to_string())?).into_owned();
    for line in content.lines().map(|line| line.split('#').next().unwrap_or_default().trim()) {
        let mut words = line.split_whitespace();
        match words.next() {
            None | Some("hwcap") => {}
            Some("include") => {
                for included in words.flat_map(|pattern| matching(rootfs, file, pattern)) {
                    read(rootfs, &included, seen, directories)?;
                }
            }
            Some(_) => {
                // The type of the directory's libraries may follow it.
                let path = line.split('=').next().unwrap_or_default().trim();
                directories.push(ConfiguredDirectory { path: ImagePath::from(path), file: file.clone() });
            }
        }
    }
    Ok(())
}

/// The files that a pattern with at most one `*`, in its last part, matches, sorted. A relative pattern belongs to the folder of
/// the file that has it.
fn matching(rootfs: &RootFs, file: &ImagePath, pattern: &str) -> Vec<ImagePath> {
    let whole =
        if pattern.starts_with('/') { ImagePath::from(pattern) } else { file.parent().join(pattern.as_bytes()) };
    let name = String::from_utf8_lossy(whole.file_name()).into_owned();
    let Some((start, end)) = name.split_once('*') else { return vec![whole] };
    let folder = whole.parent();
    let names = rootfs.names_with(&folder, start.as_bytes());
    let mut names: Vec<&[u8]> = names.filter(|name| name.ends_with(end.as_bytes())).collect();
    names.sort_unstable();
    names.into_iter().map(|name| folder.join(name)).collect()
}
