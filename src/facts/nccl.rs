//! NCCL: every copy, the one that torch would load, and the variables that this one reads.

use std::collections::BTreeMap;

use crate::model::{Fact, Found, Gap, ImagePath, NcclStrings, Site, Value, Version};
use crate::rootfs::File;
use crate::rootfs::loader::elf;

use super::{Context, Facts, key};

/// The name by which everything links to a shared NCCL.
const SONAME: &str = "libnccl.so.2";

/// Names that begin like NCCL's variables and are others': notes of packagers and build systems, PyTorch's own
/// (`ProcessGroupNCCL.hpp`; newer releases write `TORCH_NCCL_`), and programs that only use NCCL.
const OTHERS: &[&str] = &[
    "NCCL_VERSION",
    "NCCL_HOME",
    "NCCL_ROOT",
    "NCCL_ROOT_DIR",
    "NCCL_DIR",
    "NCCL_INCLUDE_DIR",
    "NCCL_INCLUDE_DIRS",
    "NCCL_LIB_DIR",
    "NCCL_LIBRARY",
    "NCCL_BLOCKING_WAIT",
    "NCCL_ASYNC_ERROR_HANDLING",
    "NCCL_DESYNC_DEBUG",
    "NCCL_ENABLE_TIMING",
    "NCCL_USE_TENSOR_REGISTER_ALLOCATOR_HOOK",
    "NCCL_TRACE_BUFFER_SIZE",
];

/// Families of network plugins and of nccl-tests: only their own libraries know these names.
const OTHER_FAMILIES: &[&str] =
    &["NCCL_FASTRAK_", "NCCL_GPUDIRECTTCPX_", "NCCL_SHARP_", "NCCL_UCX_", "NCCL_TESTS_", "NCCL_PLUGIN_"];

fn strings<'a>(file: &File<'a>) -> Option<&'a NcclStrings> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Nccl(strings)) => Some(strings),
        _ => None,
    })
}

/// The NCCL that torch would run.
struct Loaded<'a> {
    path: ImagePath,
    file: File<'a>,
    route: String,
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let copies: Vec<_> =
        context.rootfs.files().filter_map(|(path, file)| strings(&file).map(|strings| (path, file, strings))).collect();
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
    let no_banner =
        |loaded: &Loaded<'_>| Fact::Unknown(Gap::new(format!("{} holds no literal with NCCL's version", loaded.path)));
    facts.insert(
        key::NCCL_LOADED_VERSION,
        about(&|loaded| {
            let version = strings(&loaded.file).and_then(|strings| Version::parse(&strings.version));
            version.map_or_else(|| no_banner(loaded), |version| Fact::seen(version.into(), site(loaded)))
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
    facts.insert(key::NCCL_MISSING_SYMBOLS, about(&|loaded| missing_symbols(context, loaded).map(Value::from)));
    facts.insert(
        key::NCCL_UNKNOWN_VARIABLES,
        match context.config {
            None => Fact::Unknown(
                Gap::new("an unpacked root file system has no image configuration")
                    .settled_by("check the image itself"),
            ),
            Some(config) => about(&|loaded| {
                let Some(known) =
                    strings(&loaded.file).map(|strings| &strings.variables).filter(|known| !known.is_empty())
                else {
                    return no_banner(loaded);
                };
                let (names, at): (Vec<_>, Vec<_>) = config
                    .environment
                    .keys()
                    .filter(|name| name.starts_with("NCCL_") && !known.contains(*name) && !is_of_others(name))
                    .map(|name| (name.clone(), Site::Config(format!("Env {name}"))))
                    .unzip();
                if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names.into(), at } }
            }),
        },
    );
}

/// What the libraries of torch import of NCCL, and the copy that they would be bound to does not define.
fn missing_symbols(context: &Context<'_>, loaded: &Loaded<'_>) -> Fact<Vec<String>> {
    context.torch_cuda().and_then(|libraries, _| {
        let Some(Ok(given)) = elf(&loaded.file).map(|elf| &elf.symbols) else {
            return Fact::Unknown(Gap::new(format!("{}: its dynamic symbols could not be read", loaded.path)));
        };
        // Between libraries of torch: 1.13 defines NCCL in one and imports it in another.
        let mut inside = Vec::new();
        let mut wanted = Vec::new();
        for library in &libraries {
            match &library.elf.symbols {
                Ok(symbols) => {
                    inside.extend(symbols.iter().filter(|symbol| symbol.defined).map(|symbol| &symbol.name));
                    let imported = symbols.iter().filter(|symbol| !symbol.defined && symbol.name.starts_with("nccl"));
                    wanted.extend(imported.map(|symbol| (&symbol.name, library.site(Some("dynamic symbols")))));
                }
                Err(gap) => return Fact::Unknown(Gap::new(format!("{}: {}", library.path, gap.why))),
            }
        }
        let is_given =
            |name: &String| inside.contains(&name) || given.iter().any(|symbol| symbol.defined && symbol.name == *name);
        let (mut names, mut at): (Vec<String>, Vec<Site>) =
            wanted.into_iter().filter(|(name, _)| !is_given(name)).map(|(name, site)| (name.clone(), site)).unzip();
        names.sort();
        names.dedup();
        at.sort();
        at.dedup();
        if names.is_empty() { Fact::Absent } else { Fact::Seen { value: names, at } }
    })
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

/// Follows the way that torch goes to NCCL.
fn loaded<'a>(context: &Context<'a>, facts: &Facts) -> Fact<Loaded<'a>> {
    let linkage = match facts.get(key::TORCH_NCCL_LINKAGE.name) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    context.torch_cuda().and_then(|libraries, _| match linkage.as_str() {
        "static" => {
            let holder = libraries.into_iter().find(|library| strings(&library.file).is_some());
            holder.map_or(
                Fact::Unknown(Gap::new(
                    "NCCL is linked into torch, and none of its libraries holds the literal with its version",
                )),
                |library| {
                    let site = library.site(None);
                    Fact::seen(
                        Loaded { path: library.path, file: library.file, route: "linked into torch".to_owned() },
                        [site],
                    )
                },
            )
        }
        "shared" => {
            for library in libraries.iter().filter(|library| library.elf.needed.iter().any(|name| name == SONAME)) {
                match context.loader.find(SONAME, &library.path, library.elf) {
                    Err(gap) => return Fact::Unknown(gap),
                    Ok(None) => {}
                    Ok(Some(bound)) => {
                        let Ok((path, file)) = context.rootfs.open(&bound.path) else { continue };
                        let site = file.site(&path, None);
                        return Fact::seen(Loaded { path, file, route: bound.route.to_string() }, [site]);
                    }
                }
            }
            context.preloaded(b"nccl", SONAME).map_or(Fact::Absent, Fact::Unknown)
        }
        _ => Fact::Absent,
    })
}

fn is_of_others(name: &str) -> bool {
    OTHERS.contains(&name) || OTHER_FAMILIES.iter().any(|family| name.starts_with(family))
}
