//! NCCL: every copy, and the one that torch would load.

mod cupy;
pub(crate) mod faults;
mod loaded;
mod named;
pub(crate) mod plugins;
mod users;

use model::{Fact, Found, Gap, ImagePath, NcclStrings, Site, Version};
use rootfs::RootFile;
use rootfs::loader::elf;

use super::packages::is_stored;
use super::records::NcclCopy;
use super::{Context, Facts, key};

#[cfg(test)]
pub(super) use users::other_users;

use loaded::{Loaded, loaded, missing_symbols};

/// The soname of a shared NCCL.
const SONAME: &str = "libnccl.so.2";

fn strings<'a>(file: &RootFile<'a>) -> Option<&'a NcclStrings> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Nccl(strings)) => Some(strings),
        _ => None,
    })
}

/// Strings of the NCCL that torch would load, once [`produce`] has found it.
pub(super) fn loaded_strings<'a>(context: &Context<'a>, facts: &Facts) -> Fact<&'a NcclStrings> {
    facts.get(key::NCCL_LOADED_PATH).clone().and_then(|path, at| {
        match context.rootfs.open(&path).ok().and_then(|(_, file)| strings(&file)) {
            Some(value) => Fact::Seen { value, at },
            None => Fact::Unknown(Gap::new(format!("{path} does not contain NCCL's version string"))),
        }
    })
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    named::produce(context, facts);
    let with_strings = |(path, file)| strings(&file).map(|strings| (path, file, strings));
    let copies: Vec<_> = context.rootfs.read_files().filter_map(with_strings).collect();
    facts.insert(
        key::NCCL_COPIES,
        if copies.is_empty() {
            Fact::Absent
        } else {
            Fact::Seen {
                value: copies
                    .iter()
                    .map(|(path, file, strings)| record(context, path, file, strings))
                    .collect::<Vec<_>>(),
                at: copies.iter().map(|(path, file, _)| file.site(path, None)).collect(),
            }
        },
    );

    let loaded = loaded(context, facts);
    let site = |loaded: &Loaded<'_>| -> Vec<Site> { vec![loaded.file.site(&loaded.path, None)] };
    let loaded = loaded.as_ref();
    facts.insert(
        key::NCCL_LOADED_PATH,
        loaded.clone().and_then(|loaded, _| Fact::seen(loaded.path.clone(), site(loaded))),
    );
    facts.insert(
        key::NCCL_LOADED_ROUTE,
        loaded.clone().and_then(|loaded, _| Fact::seen(loaded.route.clone(), site(loaded))),
    );
    facts.insert(
        key::NCCL_LOADED_VERSION,
        loaded.clone().and_then(|loaded, _| {
            let version = strings(&loaded.file).and_then(|strings| Version::parse(&strings.version));
            version.map_or_else(|| loaded.no_banner(), |version| Fact::seen(version, site(loaded)))
        }),
    );
    facts.insert(
        key::NCCL_NOT_LOADED,
        loaded.clone().and_then(|loaded, _| {
            let others =
                copies.iter().filter(|(path, file, _)| !file.is_same(&loaded.file) && !is_stored(context.rootfs, path));
            let others =
                others.filter(|(_, file, _)| elf(file).is_some_and(|elf| elf.soname.as_deref() == Some(SONAME)));
            let (names, at): (Vec<_>, Vec<_>) = others
                .map(|(path, file, strings)| (format!("{path} ({})", strings.version), file.site(path, None)))
                .unzip();
            if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names, at } }
        }),
    );
    facts.insert(
        key::NCCL_LOADED_CUDA,
        loaded.clone().and_then(|loaded, _| {
            let cuda = strings(&loaded.file).and_then(|strings| Version::parse(&strings.cuda));
            cuda.map_or_else(|| loaded.no_banner(), |cuda| Fact::seen(cuda, site(loaded)))
        }),
    );
    facts.insert(key::NCCL_MISSING_SYMBOLS, loaded.and_then(|loaded, _| missing_symbols(context, loaded)));
    users::produce(context, facts);
    faults::produce(context, facts);
    plugins::produce(context, facts);
}

fn record(context: &Context<'_>, path: &ImagePath, file: &RootFile<'_>, strings: &NcclStrings) -> NcclCopy {
    NcclCopy {
        path: Some(path.to_string()),
        version: Some(strings.version.clone()),
        cuda: Some(strings.cuda.clone()),
        soname: elf(file).and_then(|elf| elf.soname.clone()),
        owner: context.packages.owner(path),
    }
}
