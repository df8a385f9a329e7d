//! The NCCL that torch would run, and whether it has what torch imports of it.

use crate::model::{Fact, Gap, ImagePath, Site};
use crate::rootfs::File;
use crate::rootfs::loader::elf;

use super::super::{Context, Facts, key};
use super::{SONAME, strings};

/// The NCCL that torch would run.
pub(super) struct Loaded<'a> {
    pub(super) path: ImagePath,
    pub(super) file: File<'a>,
    pub(super) route: String,
}

impl Loaded<'_> {
    /// What is left to say of a library whose version and variables were wanted, and that does not hold them.
    pub(super) fn no_banner<T>(&self) -> Fact<T> {
        Fact::Unknown(Gap::new(format!("{} holds no literal with NCCL's version", self.path)))
    }
}

/// Follows the way that torch goes to NCCL.
pub(super) fn loaded<'a>(context: &Context<'a>, facts: &Facts) -> Fact<Loaded<'a>> {
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

/// What the libraries of torch import of NCCL, and the copy that they would be bound to does not define.
pub(super) fn missing_symbols(context: &Context<'_>, loaded: &Loaded<'_>) -> Fact<Vec<String>> {
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
