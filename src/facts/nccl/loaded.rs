//! The NCCL that torch would run, and the symbols that torch imports from it.

use crate::model::{Fact, Gap, ImagePath, Site};
use crate::rootfs::RootFile;
use crate::rootfs::loader::{LoadedObject, Requester, elf};

use super::super::torch::{Import, TorchLibrary};
use super::super::words::Linkage;
use super::super::{Context, Draft, key};
use super::{SONAME, strings};

/// The NCCL that torch would run.
pub(super) struct Loaded<'a> {
    pub(super) path: ImagePath,
    pub(super) file: RootFile<'a>,
    pub(super) route: String,
}

impl Loaded<'_> {
    /// The fact for a library that contains neither a version string nor variables.
    pub(super) fn no_banner<T>(&self) -> Fact<T> {
        Fact::Unknown(Gap::new(format!("{} does not contain NCCL's version string", self.path)))
    }
}

/// Finds the NCCL that torch would load.
pub(super) fn loaded<'a>(context: &Context<'a>, facts: &Draft<'_>) -> Fact<Loaded<'a>> {
    let linkage = match facts.get(key::TORCH_NCCL_LINKAGE) {
        Fact::Seen { value, .. } => *value,
        Fact::Absent => return Fact::Absent,
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
    };
    context.torch_cuda().and_then(|libraries, _| match linkage {
        Linkage::Static => {
            let holder = libraries.into_iter().find(|library| strings(&library.file).is_some());
            holder.map_or(
                Fact::Unknown(Gap::new(
                    "NCCL is linked into torch, but no library of torch contains NCCL's version string",
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
        Linkage::Shared => context.loader.imports().as_ref().and_then(|imports, _| {
            let mut fact = Fact::Absent;
            for (index, import) in imports.iter().enumerate() {
                let loaded = in_process(context, &libraries, import);
                let path = |fact: &Fact<Loaded<'_>>| fact.value().map(|loaded| loaded.path.clone());
                if index > 0 && path(&fact) != path(&loaded) {
                    return Fact::Unknown(Gap::new("the NCCL that is loaded depends on the CPU level"));
                }
                fact = loaded;
            }
            fact
        }),
        Linkage::None => Fact::Absent,
    })
}

/// The NCCL of a process: the first object that defines its functions, in symbol lookup order. If the import fails
/// before it reaches NCCL, the one that torch's libraries would find.
fn in_process<'a>(context: &Context<'a>, libraries: &[TorchLibrary<'a>], import: &Import<'a>) -> Fact<Loaded<'a>> {
    let is_nccl = |object: &&LoadedObject<'_>| match &object.elf.symbols {
        Ok(symbols) => symbols.iter().any(|symbol| symbol.defined && symbol.name == "ncclGetVersion"),
        Err(_) => object.elf.soname.as_deref() == Some(SONAME),
    };
    if import.failure.is_none() {
        return import.objects().find(is_nccl).map_or(Fact::Absent, |object| {
            let route = match object.asked {
                Requester::Preload => "LD_PRELOAD".to_owned(),
                Requester::PreloadFile => "/etc/ld.so.preload".to_owned(),
                Requester::Dlopen(_) => "torch/__init__.py loads it by its path".to_owned(),
                _ => object.route.to_string(),
            };
            at(context, &object.path, route)
        });
    }
    for library in libraries.iter().filter(|library| library.elf.needed.iter().any(|name| name == SONAME)) {
        match context.loader.find(SONAME, &library.path, library.elf) {
            Err(gap) => return Fact::Unknown(gap),
            Ok(None) => {}
            Ok(Some(bound)) => return at(context, &bound.path, bound.route.to_string()),
        }
    }
    Fact::Absent
}

fn at<'a>(context: &Context<'a>, path: &ImagePath, route: String) -> Fact<Loaded<'a>> {
    context.rootfs.open(path).map_or(Fact::Absent, |(path, file)| {
        let site = file.site(&path, None);
        Fact::seen(Loaded { path, file, route }, [site])
    })
}

/// Symbols of NCCL that torch's libraries import and the loaded copy does not define.
pub(super) fn missing_symbols(context: &Context<'_>, loaded: &Loaded<'_>) -> Fact<Vec<String>> {
    context.torch_cuda().and_then(|libraries, _| {
        let Some(Ok(given)) = elf(&loaded.file).map(|elf| &elf.symbols) else {
            return Fact::Unknown(Gap::new(format!("{}: its dynamic symbols could not be read", loaded.path)));
        };
        // Symbols may also come from another library of torch: 1.13 defines NCCL in one and imports it in another.
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
