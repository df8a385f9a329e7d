//! The CUDA runtime library: every copy, and the ones that torch's libraries need.

use std::collections::{BTreeMap, BTreeSet};

use model::{Fact, Site};
use rootfs::loader::elf;

use super::super::records::LibraryFile;
use super::super::{Context, Facts, key};

/// Matches `libcudart.so.12` and the names that wheel-repair tools give, such as `libcudart-e409450e.so.11.0`.
fn is_cudart(name: &str) -> bool {
    name.starts_with("libcudart.so") || (name.starts_with("libcudart-") && name.contains(".so."))
}

/// Major version in a soname: `libcudart.so.11.0` serves all of CUDA 11.
fn major(soname: &str) -> Option<i64> {
    soname.rsplit_once(".so.")?.1.split('.').next()?.parse().ok()
}

/// Runtime libraries that torch's libraries need, by soname: the libraries that need each, and true when at least one
/// of them finds it.
type Needed = BTreeMap<String, (Vec<Site>, bool)>;

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let mut copies = Vec::new();
    let mut at = Vec::new();
    for (path, file) in context.rootfs.read_files() {
        let Some(elf) = elf(&file) else { continue };
        if is_cudart(&String::from_utf8_lossy(path.file_name())) {
            let soname = elf.soname.clone();
            let owner = context.packages.owner(path);
            copies.push(LibraryFile { path: Some(path.to_string()), soname, owner });
            at.push(file.site(path, None));
        }
    }
    facts.insert(key::CUDA_CUDART, seen(copies, at));

    // A loaded library satisfies all others that need its soname.
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
    let sites = |needed: &Needed| needed.values().flat_map(|(at, _)| at.clone()).collect();
    facts.insert(
        key::TORCH_CUDART_NEEDED,
        needed.clone().and_then(|needed, _| seen(needed.keys().cloned().collect(), sites(&needed))),
    );
    facts.insert(
        key::CUDA_CUDART_MAJORS,
        needed.clone().and_then(|needed, _| {
            let majors: BTreeSet<_> = needed.keys().filter_map(|soname| major(soname)).collect();
            seen(majors.into_iter().collect(), sites(&needed))
        }),
    );
    facts.insert(
        key::CUDA_CUDART_MISSING,
        needed.and_then(|needed, _| {
            let missing = needed.into_iter().filter(|(_, (_, served))| !served);
            let (names, at): (Vec<_>, Vec<_>) = missing.map(|(soname, (at, _))| (soname, at)).unzip();
            seen(names, at.into_iter().flatten().collect())
        }),
    );
}

/// A list fact; absent when there are no sites.
fn seen<T>(value: Vec<T>, at: Vec<Site>) -> Fact<Vec<T>> {
    if at.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
}
