//! NCCL: every copy, and the one that torch would load.

mod faults;
mod loaded;
mod plugins;
mod users;

use std::collections::BTreeMap;

use crate::model::{Fact, Found, Gap, ImagePath, NcclStrings, Site, Value, Version};
use crate::rootfs::File;
use crate::rootfs::loader::elf;

use super::{Context, Facts, key};

pub(super) use plugins::produce as produce_plugins;
#[cfg(test)]
pub(super) use users::other_users;

use loaded::{Loaded, loaded, missing_symbols};

/// The name by which everything links to a shared NCCL.
const SONAME: &str = "libnccl.so.2";

fn strings<'a>(file: &File<'a>) -> Option<&'a NcclStrings> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Nccl(strings)) => Some(strings),
        _ => None,
    })
}

/// What the NCCL that torch would load holds, once [`produce`] has found it.
pub(super) fn loaded_strings<'a>(context: &Context<'a>, facts: &Facts) -> Fact<&'a NcclStrings> {
    facts.get(key::NCCL_LOADED_PATH.name).clone().and_then(|path, at| {
        let path = ImagePath::from(path.to_string().as_str());
        match context.rootfs.open(&path).ok().and_then(|(_, file)| strings(&file)) {
            Some(value) => Fact::Seen { value, at },
            None => Fact::Unknown(Gap::new(format!("{path} holds no literal with NCCL's version"))),
        }
    })
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
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
    let about = |what: &dyn Fn(&Loaded<'_>) -> Fact| match &loaded {
        Fact::Seen { value, .. } => what(value),
        Fact::Absent => Fact::Absent,
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
    };
    facts.insert(key::NCCL_LOADED_PATH, about(&|loaded| Fact::seen((&loaded.path).into(), site(loaded))));
    facts.insert(key::NCCL_LOADED_ROUTE, about(&|loaded| Fact::seen(loaded.route.as_str().into(), site(loaded))));
    facts.insert(
        key::NCCL_LOADED_VERSION,
        about(&|loaded| {
            let version = strings(&loaded.file).and_then(|strings| Version::parse(&strings.version));
            version.map_or_else(|| loaded.no_banner(), |version| Fact::seen(version.into(), site(loaded)))
        }),
    );
    facts.insert(
        key::NCCL_NOT_LOADED,
        about(&|loaded| {
            let others = copies.iter().filter(|(_, file, _)| !file.is_same(&loaded.file));
            let others =
                others.filter(|(_, file, _)| elf(file).is_some_and(|elf| elf.soname.as_deref() == Some(SONAME)));
            let (names, at): (Vec<_>, Vec<_>) = others
                .map(|(path, file, strings)| (format!("{path} ({})", strings.version), file.site(path, None)))
                .unzip();
            if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names.into(), at } }
        }),
    );
    facts.insert(
        key::NCCL_LOADED_CUDA,
        about(&|loaded| {
            let cuda = strings(&loaded.file).and_then(|strings| Version::parse(&strings.cuda));
            cuda.map_or_else(|| loaded.no_banner(), |cuda| Fact::seen(cuda.into(), site(loaded)))
        }),
    );
    facts.insert(key::NCCL_MISSING_SYMBOLS, about(&|loaded| missing_symbols(context, loaded).map(Value::from)));
    users::produce(context, facts);
    faults::produce(context, facts);
}

fn record(context: &Context<'_>, path: &ImagePath, file: &File<'_>, strings: &NcclStrings) -> Value {
    let mut record = BTreeMap::from([
        ("path".to_owned(), path.to_string()),
        ("version".to_owned(), strings.version.clone()),
        ("cuda".to_owned(), strings.cuda.clone()),
    ]);
    if let Some(soname) = elf(file).and_then(|elf| elf.soname.clone()) {
        record.insert("soname".to_owned(), soname);
    }
    if let Some(owner) = context.packages.owner(path) {
        record.insert("owner".to_owned(), owner);
    }
    record.into()
}
