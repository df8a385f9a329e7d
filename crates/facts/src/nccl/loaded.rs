//! The NCCL that torch would run, and the symbols that torch imports from it.

use model::{ElfInfo, Fact, Gap, ImagePath, Site};
use rootfs::RootFile;
use rootfs::loader::{LoadedObject, Requester, elf};

use super::super::packages::is_stored;
use super::super::subject::CheckSubject;
use super::super::torch::{Import, TorchLibrary};
use super::super::words::Linkage;
use super::super::{Context, Facts, key};
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

/// Finds the NCCL that torch would load, or the subject that is judged in its place.
pub(super) fn loaded<'a>(context: &Context<'a>, facts: &Facts) -> Fact<Loaded<'a>> {
    match &context.subject {
        None => of_torch(context, facts),
        Some(CheckSubject::Program(_)) => in_processes(context, &[]),
        Some(CheckSubject::Nccl) => alone(context),
    }
}

fn of_torch<'a>(context: &Context<'a>, facts: &Facts) -> Fact<Loaded<'a>> {
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
        Linkage::Shared => in_processes(context, &libraries),
        Linkage::None => Fact::Absent,
    })
}

/// The NCCL of the process, on which all CPU levels must agree.
fn in_processes<'a>(context: &Context<'a>, libraries: &[TorchLibrary<'a>]) -> Fact<Loaded<'a>> {
    context.loader.imports().as_ref().and_then(|imports, _| {
        let mut fact = Fact::Absent;
        for (index, import) in imports.iter().enumerate() {
            let loaded = in_process(context, libraries, import);
            let path = |fact: &Fact<Loaded<'_>>| fact.value().map(|loaded| loaded.path.clone());
            if index > 0 && path(&fact) != path(&loaded) {
                return Fact::Unknown(Gap::new("the NCCL that is loaded depends on the CPU level"));
            }
            fact = loaded;
        }
        fact
    })
}

/// The NCCL of an image that does not show what uses it: the one that the loader finds by its name, else the only one.
fn alone<'a>(context: &Context<'a>) -> Fact<Loaded<'a>> {
    let files =
        context.rootfs.read_files().filter(|(path, file)| strings(file).is_some() && !is_stored(context.rootfs, path));
    let copies: Vec<_> = files.map(|(path, file)| (path.clone(), file)).collect();
    let shared = copies.iter().find_map(|(_, file)| elf(file).filter(|elf| elf.soname.as_deref() == Some(SONAME)));
    // Any program asks for the name as one without a search path of its own.
    let program = shared.map(|elf| ElfInfo::bare(elf.bits, elf.endian, elf.machine));
    match program.map(|program| context.loader.find(SONAME, &ImagePath::root(), &program)) {
        Some(Err(gap)) => return Fact::Unknown(gap),
        Some(Ok(Some(bound))) => return at(context, &bound.path, bound.route.to_string()),
        Some(Ok(None)) | None => {}
    }
    match copies.as_slice() {
        [] => Fact::Absent,
        [(path, _)] => at(context, path, "the only copy in the image".to_owned()),
        several => Fact::Unknown(
            Gap::new(format!(
                "the loader finds none of the image's {} copies of NCCL by name, and what opens one by its path is unknown",
                several.len()
            ))
            .settled_by("start the program that uses NCCL directly, with ENTRYPOINT or CMD"),
        ),
    }
}

/// The NCCL of a process: the first object that defines its functions, in symbol lookup order. If the import fails
/// before it reaches NCCL, the one that torch's libraries would find.
fn in_process<'a>(context: &Context<'a>, libraries: &[TorchLibrary<'a>], import: &Import<'a>) -> Fact<Loaded<'a>> {
    let is_nccl = |object: &&LoadedObject<'_>| match &object.elf.symbols {
        Ok(symbols) => symbols.iter().any(|symbol| symbol.defined && symbol.name == "ncclGetVersion"),
        Err(_) => object.elf.soname.as_deref() == Some(SONAME),
    };
    let mut before = import.before();
    if let Some((object, by)) =
        before.find(|(object, _)| is_nccl(object) && object.elf.soname.as_deref() == Some(SONAME))
    {
        let route = match by {
            Some(by) => format!("{by} needs it, which the program imports before torch"),
            None => "the program opens it before it imports torch".to_owned(),
        };
        return at(context, &object.path, route);
    }
    if import.failure.is_none() {
        // A program that NCCL is linked into does not export its functions.
        let has_strings = |object: &&LoadedObject<'_>| object.file.as_ref().is_some_and(|file| strings(file).is_some());
        let object = import.objects().find(is_nccl).or_else(|| import.objects().find(has_strings));
        return object.map_or(Fact::Absent, |object| {
            let route = match object.asked {
                Requester::Program => "linked into the program".to_owned(),
                Requester::Preload => "LD_PRELOAD".to_owned(),
                Requester::PreloadFile => "/etc/ld.so.preload".to_owned(),
                Requester::Dlopen(_) => "torch/__init__.py loads it by its path".to_owned(),
                _ => object.route.to_string(),
            };
            at(context, &object.path, route)
        });
    }
    let mapped = import.process.objects().iter().map(|object| (&object.path, object.elf));
    let objects = libraries.iter().map(|library| (&library.path, library.elf)).chain(mapped);
    for (path, elf) in objects.filter(|(_, elf)| elf.needed.iter().any(|name| name == SONAME)) {
        match context.loader.find(SONAME, path, elf) {
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
                Err(gap) => return Fact::Unknown(gap.clone()),
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
