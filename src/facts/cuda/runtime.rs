//! The CUDA runtime library: every copy, and those that torch's libraries need.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Fact, Site, Value};
use crate::rootfs::loader::elf;

use super::super::{Context, Facts, key};

/// `libcudart.so.12`, and the names that tools which repair wheels give, such as `libcudart-e409450e.so.11.0`.
fn is_cudart(name: &str) -> bool {
    name.starts_with("libcudart.so") || (name.starts_with("libcudart-") && name.contains(".so."))
}

/// The major version in a soname: `libcudart.so.11.0` is that of all of CUDA 11.
fn major(soname: &str) -> Option<i64> {
    soname.rsplit_once(".so.")?.1.split('.').next()?.parse().ok()
}

/// Runtime libraries that torch's libraries need, by soname: who needs each, and whether anyone would find it.
type Needed = BTreeMap<String, (Vec<Site>, bool)>;

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let mut copies = Vec::new();
    let mut at = Vec::new();
    for (path, file) in context.rootfs.read_files() {
        let Some(elf) = elf(&file) else { continue };
        if is_cudart(&String::from_utf8_lossy(path.file_name())) {
            let mut record = BTreeMap::from([("path".to_owned(), path.to_string())]);
            record.extend(elf.soname.clone().map(|soname| ("soname".to_owned(), soname)));
            record.extend(context.packages.owner(path).map(|owner| ("owner".to_owned(), owner)));
            copies.push(Value::from(record));
            at.push(file.site(path, None));
        }
    }
    let seen = |value: Value, at: Vec<Site>| {
        if at.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
    };
    facts.insert(key::CUDA_CUDART, seen(Value::List(copies), at));

    // Once loaded, a library serves all others that need its soname.
    let libraries = context.torch_libraries(|name| name.windows(3).any(|part| part == b".so"));
    let needed = libraries.and_then(|libraries, _| {
        let mut needed = Needed::new();
        for library in &libraries {
            for soname in library.elf.needed.iter().filter(|name| is_cudart(name)) {
                let found = match context.loader.find(soname, &library.path, library.elf) {
                    Ok(found) => found.is_some(),
                    Err(gap) => return Fact::Unknown(gap),
                };
                let (sites, served) = needed.entry(soname.clone()).or_default();
                sites.push(library.site(Some(&format!("DT_NEEDED {soname}"))));
                *served |= found;
            }
        }
        let mut missing = needed.iter().filter(|(_, (_, served))| !served);
        if let Some(gap) = missing.find_map(|(soname, _)| context.preloaded(b"cuda_runtime", soname)) {
            return Fact::Unknown(gap);
        }
        if needed.is_empty() { Fact::Absent } else { Fact::seen(needed, []) }
    });
    let about = |choose: &dyn Fn(&Needed) -> (Value, Vec<Site>)| {
        needed.clone().and_then(|needed, _| {
            let (value, at) = choose(&needed);
            seen(value, at)
        })
    };
    let sites = |needed: &Needed| needed.values().flat_map(|(at, _)| at.clone()).collect();
    facts.insert(
        key::TORCH_CUDART_NEEDED,
        about(&|needed| (needed.keys().cloned().collect::<Vec<_>>().into(), sites(needed))),
    );
    facts.insert(
        key::CUDA_CUDART_MAJORS,
        about(&|needed| {
            let majors: BTreeSet<_> = needed.keys().filter_map(|soname| major(soname)).collect();
            (Value::List(majors.into_iter().map(Value::Int).collect()), sites(needed))
        }),
    );
    facts.insert(
        key::CUDA_CUDART_MISSING,
        about(&|needed| {
            let missing = needed.iter().filter(|(_, (_, served))| !served);
            let (names, at): (Vec<_>, Vec<_>) = missing.map(|(soname, (at, _))| (soname.clone(), at.clone())).unzip();
            (names.into(), at.into_iter().flatten().collect())
        }),
    );
}
