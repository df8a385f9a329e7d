//! The library at fault where one cannot be loaded. The loader's message names the library that asks; this finds the one that
//! was removed, that comes before a better copy, or that asks for more than the image has.

use std::collections::BTreeSet;

use model::{ElfInfo, Fact, Gap, ImagePath, Site};
use rootfs::loader::{Bound, Route, configured_directories, elf};
use rootfs::{RootFile, RootFs};

use super::words::LibraryFault;
use super::{Context, Facts, key};

/// The most libraries among which one that another needs is looked for.
const MOST: usize = 256;

/// A library at fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Culprit {
    pub(crate) library: ImagePath,
    pub(crate) fault: LibraryFault,
    /// The copy that has what the other one lacks.
    pub(crate) instead: Option<ImagePath>,
    /// The loader's message.
    pub(crate) error: String,
    /// What puts the library first: a rule of the loader, or the file that names its folder.
    pub(crate) by: Option<String>,
    site: Site,
}

impl Culprit {
    fn of_file(library: ImagePath, file: &RootFile<'_>, fault: LibraryFault) -> Self {
        let site = file.site(&library, None);
        Self { library, fault, instead: None, error: String::new(), by: None, site }
    }
}

/// Inserts the facts about the library at fault.
pub(crate) fn insert(culprit: &Fact<Culprit>, facts: &mut Facts) {
    facts.insert(key::LIBRARY_CULPRIT, culprit.clone().map(|culprit| culprit.library));
    facts.insert(key::LIBRARY_CULPRIT_FAULT, culprit.clone().map(|culprit| culprit.fault));
    facts.insert(key::LIBRARY_CULPRIT_ERROR, culprit.clone().map(|culprit| culprit.error));
    facts.insert(key::LIBRARY_CULPRIT_INSTEAD, culprit.clone().and_then(|culprit, _| culprit.instead.into()));
    facts.insert(key::LIBRARY_CULPRIT_BY, culprit.clone().and_then(|culprit, _| culprit.by.into()));
}

/// The library at fault for a message of dlerror; absent where nothing shows it.
pub(crate) fn find(context: &Context<'_>, message: &str) -> Fact<Culprit> {
    let found = if let Some((name, _)) = message.split_once(": cannot open shared object file") {
        Ok(missing(context.rootfs, name))
    } else if let Some((asker, symbol)) = message.split_once(": undefined symbol: ") {
        let (symbol, version) = symbol.split_once(", version ").map_or((symbol, None), |(name, of)| (name, Some(of)));
        of_symbol(context, asker, symbol, version)
    } else {
        of_version(context, message)
    };
    match found {
        Ok(Some(culprit)) => {
            let site = culprit.site.clone();
            Fact::seen(Culprit { error: message.to_owned(), ..culprit }, [site])
        }
        Ok(None) => Fact::Absent,
        Err(gap) => Fact::Unknown(gap),
    }
}

/// A library that is not found, but was in the image. One that is elsewhere now may have been moved there.
fn missing(rootfs: &RootFs, name: &str) -> Option<Culprit> {
    let name = name.rsplit('/').next().unwrap_or_default().as_bytes();
    if rootfs.files_named(|own| own == name).next().is_some() {
        return None;
    }
    let (library, layer) = rootfs.removed_libraries().filter(|(path, _)| path.file_name() == name).last()?;
    let site = Site::File { layer, path: library.clone(), within: None };
    let library = library.clone();
    Some(Culprit { library, fault: LibraryFault::Removed, instead: None, error: String::new(), by: None, site })
}

/// The library that should define a symbol, where another copy of it does.
fn of_symbol(context: &Context<'_>, asker: &str, symbol: &str, version: Option<&str>) -> Result<Option<Culprit>, Gap> {
    let Ok((asker, file)) = context.rootfs.open(&ImagePath::from(asker)) else { return Ok(None) };
    let Some(links) = elf(&file).and_then(|elf| elf.links.as_ref().ok()) else { return Ok(None) };
    let is_wanted = |own: Option<&str>| version.is_none() || own == version;
    let import = links
        .imports
        .iter(false)
        .find(|import| import.name == symbol.as_bytes() && is_wanted(import.version.map(|version| &*version.name)));
    let Some(wanted) = import.map(|import| import.keys()) else { return Ok(None) };
    let defines = |elf: &ElfInfo| elf.links.as_ref().is_ok_and(|links| links.exports.fit(&wanted));
    shadowing(context, &asker, defines)
}

/// The library that lacks a version, if another copy has it; otherwise the one that asks for it.
fn of_version(context: &Context<'_>, message: &str) -> Result<Option<Culprit>, Gap> {
    let parts = || {
        let (lacking, rest) = message.split_once(": version `")?;
        let (version, rest) = rest.split_once("' not found (required by ")?;
        Some((lacking, version, rest.strip_suffix(')')?))
    };
    let Some((lacking, version, asker)) = parts() else { return Ok(None) };
    let Ok((asker, file)) = context.rootfs.open(&ImagePath::from(asker)) else { return Ok(None) };
    let gives = |elf: &ElfInfo| elf.version_gives.iter().any(|own| own == version);
    let found = shadowing(context, &asker, gives)?.or_else(|| by_program(context, lacking, gives));
    Ok(found.or_else(|| Some(Culprit::of_file(asker, &file, LibraryFault::AsksTooMuch))))
}

/// A library that lacks something, and that the program's `DT_RPATH` put first, as that of conda's Python does.
fn by_program(context: &Context<'_>, lacking: &str, has_it: impl Fn(&ElfInfo) -> bool) -> Option<Culprit> {
    let program = &context.loader.imports().value()?.first()?.process.objects().first()?.path;
    // `$ORIGIN` in the path stays as the program's folder.
    lacking.strip_prefix(&program.parent().to_string())?.strip_prefix("/../")?;
    let (library, file) = context.rootfs.open(&lacking.into()).ok()?;
    let better = other_copy(context.rootfs, elf(&file)?.soname.as_deref()?, &file, has_it)?;
    let culprit = Culprit::of_file(library, &file, LibraryFault::Shadows);
    Some(Culprit { instead: Some(better), by: Some(format!("DT_RPATH of {program}")), ..culprit })
}

/// A library that `asker` needs, directly or not, and that lacks something which another copy of it has.
fn shadowing(
    context: &Context<'_>,
    asker: &ImagePath,
    has_it: impl Fn(&ElfInfo) -> bool,
) -> Result<Option<Culprit>, Gap> {
    let mut seen = BTreeSet::new();
    let mut waiting = vec![asker.clone()];
    while let Some(path) = waiting.pop() {
        let Ok((_, file)) = context.rootfs.open(&path) else { continue };
        let Some(object) = elf(&file) else { continue };
        for name in &object.needed {
            let Some(bound) = context.loader.find(name, &path, object)? else { continue };
            if seen.len() >= MOST || !seen.insert(bound.path.clone()) {
                continue;
            }
            waiting.push(bound.path.clone());
            let Ok((library, file)) = context.rootfs.open(&bound.path) else { continue };
            let route = first_route(context, bound);
            // A library beside the one that asks was meant, also where it is another release.
            let is_of_system =
                matches!(route, Route::LibraryPath(_) | Route::Cache | Route::Configured(_) | Route::Default(_));
            if !is_of_system || elf(&file).is_none_or(&has_it) {
                continue;
            }
            let Some(better) = other_copy(context.rootfs, name, &file, &has_it) else { continue };
            let by = match &route {
                Route::Cache => named_by(context.rootfs, &library)?,
                Route::Configured(file) => Some(file.to_string()),
                _ => None,
            };
            let by = by.unwrap_or_else(|| route.to_string());
            let culprit = Culprit::of_file(library, &file, LibraryFault::Shadows);
            return Ok(Some(Culprit { instead: Some(better), by: Some(by), ..culprit }));
        }
    }
    Ok(None)
}

/// The rule by which a library was found, when it was mapped.
fn first_route(context: &Context<'_>, bound: Bound) -> Route {
    let imports = context.loader.imports().value().into_iter().flatten();
    let mut mapped = imports.flat_map(|import| import.process.objects()).filter(|object| object.path == bound.path);
    match bound.route {
        Route::Loaded => mapped.next().map_or(Route::Loaded, |object| object.route.clone()),
        route => route,
    }
}

/// Another file with this soname, for the same machine, that has what is wanted.
fn other_copy(
    rootfs: &RootFs,
    soname: &str,
    file: &RootFile<'_>,
    has_it: impl Fn(&ElfInfo) -> bool,
) -> Option<ImagePath> {
    let machine = elf(file).map(|elf| elf.machine);
    let is_copy = |other: &RootFile<'_>| {
        elf(other)
            .is_some_and(|elf| elf.soname.as_deref() == Some(soname) && Some(elf.machine) == machine && has_it(elf))
    };
    let mut files = rootfs.read_files();
    files.find(|(_, other)| !other.is_same(file) && is_copy(other)).map(|(path, _)| path.clone())
}

/// The file of `/etc/ld.so.conf` that names the folder of a library.
fn named_by(rootfs: &RootFs, library: &ImagePath) -> Result<Option<String>, Gap> {
    let folder = library.parent();
    let is_it = |path: &ImagePath| rootfs.real_directory(path).as_ref() == Some(&folder);
    let mut directories = configured_directories(rootfs)?.into_iter();
    Ok(directories.find(|directory| is_it(&directory.path)).map(|directory| directory.file.to_string()))
}
