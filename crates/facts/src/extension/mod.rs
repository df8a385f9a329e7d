//! Libraries of Python packages beside torch that link to torch, CUDA, NCCL or an RDMA stack: which of them the loader
//! refuses in the process that has imported torch, and whether the program imports them.

mod absent;
mod bitsandbytes;
pub(crate) mod compiler;
pub(crate) mod missing;
mod nvshmem;
pub(crate) mod opened;
mod owner;
pub(crate) mod pinned;
mod walk;

use std::collections::BTreeSet;

use model::{ElfInfo, Fact, Gap, ImagePath, ImportCondition, Site, Version};
use rootfs::loader::elf;

use super::python::{Python, imports};
use super::torch::Import;
use super::{Context, Facts, culprit, key};
use absent::RequiredModule;
use bitsandbytes::BitsandbytesLibrary;
use compiler::Compiler;
use nvshmem::NvshmemMismatch;
pub(crate) use walk::ImportWalk;
use walk::Refused;

/// Beginnings of the names of libraries that such a package needs.
const CONCERNS: &[&str] = &[
    "libc10",
    "libtorch",
    "libshm.so",
    "libcud",
    "libcublas",
    "libcufft",
    "libcurand",
    "libcusolver",
    "libcusparse",
    "libcufile",
    "libnvrtc",
    "libnvJitLink",
    "libnvToolsExt",
    "libnccl",
    "libnvshmem",
    "libnvinfer",
    "libfabric",
    "libucp",
    "libuct",
    "libucs",
    "libucm",
    "libucc",
    "libnixl",
    "libibverbs",
    "libmlx5",
];

/// Most modules of all walks of an image. One of vLLM's has some hundred.
const MOST_MODULES: usize = 200_000;

/// What is wrong in the packages of a process.
#[derive(Clone, Debug, Default, PartialEq)]
struct ExtensionFaults {
    loaded: Vec<(ImagePath, Site)>,
    refused: Vec<Refused>,
    mismatched: Vec<NvshmemMismatch>,
    /// Why there may be more.
    gap: Option<Gap>,
}

/// The faults of what the program imports, and of the other packages.
#[derive(Clone, Debug, PartialEq)]
struct AllFaults {
    imported: ExtensionFaults,
    unused: ExtensionFaults,
    /// Modules that the program imports and that compile code, without what they need for it.
    no_compiler: Fact<Vec<String>>,
    no_nvcc: Fact<Vec<String>>,
    /// Modules that the program imports and its Python does not find.
    absent: Fact<Vec<RequiredModule>>,
    /// The library that bitsandbytes lacks, where the program imports it.
    no_bitsandbytes: Fact<ImagePath>,
}

/// Returns true for the name of such a library.
fn is_of_concern(name: &str) -> bool {
    CONCERNS.iter().any(|beginning| name.starts_with(beginning))
}

/// Returns true for a library that needs one.
fn concerns(elf: &ElfInfo) -> bool {
    elf.needed.iter().any(|name| is_of_concern(name))
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let cuda = facts.get(key::TORCH_CUDA_VERSION).value().cloned();
    let python = context.python.as_ref().zip(cuda.as_ref());
    let bitsandbytes = python.and_then(|(python, cuda)| BitsandbytesLibrary::of(context, python, cuda));
    let found = match facts.get(key::TORCH_IMPORT_ERROR) {
        // Nothing is imported after torch.
        Fact::Seen { .. } => Fact::Absent,
        Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
        Fact::Absent => context.loader.agreed(|import| search(context, import, bitsandbytes.as_ref())),
    };
    if let Some(first) = found.value().and_then(|faults| faults.imported.refused.first()) {
        culprit::insert(&culprit::find(context, &first.message), facts);
    }
    let all = |faults: &AllFaults| [faults.imported.clone(), faults.unused.clone()];
    let missing = found.as_ref().and_then(|faults, _| {
        let refused = all(faults).into_iter().flat_map(|faults| faults.refused);
        let names: BTreeSet<_> = refused
            .filter_map(|refused| Some(missing::with_source(context.rootfs, missing::library(&refused.message)?)))
            .collect();
        listed(names.into_iter().map(|name| (name, None)))
    });
    let other_cuda = found.as_ref().and_then(|faults, _| {
        let refused = all(faults).into_iter().flat_map(|faults| faults.refused);
        let mut releases = refused.filter_map(|refused| missing::cuda_release(&refused.message).map(ToOwned::to_owned));
        Fact::from(releases.find(|release| cuda.as_ref().is_some_and(|cuda| !is_major(cuda, release))))
    });
    let fitting = found.as_ref().and_then(|faults, _| {
        let mut mismatched = all(faults).into_iter().flat_map(|faults| faults.mismatched);
        Fact::from(mismatched.find_map(|mismatch| mismatch.fitting(context)))
    });
    let texts = |select: fn(&AllFaults) -> &ExtensionFaults, of: fn(&ExtensionFaults) -> Vec<(ImagePath, String)>| {
        found.as_ref().and_then(|faults, _| {
            let faults = select(faults);
            let texts = listed(of(faults).into_iter().map(|(path, text)| {
                let site = context.rootfs.open(&path).ok().map(|(real, file)| file.site(&real, None));
                let package = owner::package(context, &path).map(|package| package + ": ").unwrap_or_default();
                (package + &text, site)
            }));
            texts.or_else(|| faults.gap.clone().map_or(Fact::Absent, Fact::Unknown))
        })
    };
    let refused = |faults: &ExtensionFaults| -> Vec<(ImagePath, String)> {
        faults.refused.iter().map(|refused| (refused.path.clone(), refused.text())).collect()
    };
    let mismatched = |faults: &ExtensionFaults| -> Vec<(ImagePath, String)> {
        faults.mismatched.iter().map(|mismatch| (mismatch.path.clone(), mismatch.text())).collect()
    };
    let imported = texts(|faults| &faults.imported, refused);
    let unused = texts(|faults| &faults.unused, refused);
    let loaded = found.as_ref().and_then(|faults, _| {
        listed(faults.imported.loaded.iter().map(|(path, site)| (path.to_string(), Some(site.clone()))))
    });
    let other_torch = facts.get(key::TORCH_VERSION).clone().and_then(|torch, _| {
        let broken: Vec<_> = imported.value().into_iter().chain(unused.value()).flatten().cloned().collect();
        let loaded = loaded.value().map(Vec::as_slice).unwrap_or_default();
        let python = context.python.as_ref();
        Fact::from(python.map(|python| pinned::of_other_torch(context, python, &torch, &broken, loaded)))
    });
    facts.insert(key::EXTENSION_CRASHES, other_torch.as_ref().and_then(|found, _| found.crashing.clone()));
    facts.insert(key::EXTENSION_OTHER_TORCH, other_torch.and_then(|found, _| found.other));
    facts.insert(key::EXTENSION_LOADED, loaded);
    facts.insert(key::EXTENSION_NO_BITSANDBYTES, found.as_ref().and_then(|faults, _| faults.no_bitsandbytes.clone()));
    let chosen = match &bitsandbytes {
        Some(BitsandbytesLibrary::Missing(_, chosen)) => chosen.clone(),
        Some(BitsandbytesLibrary::There(_)) | None => None,
    };
    facts.insert(key::EXTENSION_BITSANDBYTES_CHOICE, chosen.into());
    absent::produce(context, &found.as_ref().and_then(|faults, _| faults.absent.clone()), facts);
    let failing = match context.python.as_ref().map(|python| (python, &python.program)) {
        Some((_, Err(gap))) => Fact::Unknown(gap.clone()),
        Some((python, Ok(_))) => {
            listed(compiler::failing(context, python).into_iter().map(|(call, lacked)| match call.at {
                (Some(file), line) => {
                    let within = format!("line {line}");
                    let site = context.rootfs.open(&file).ok().map(|(real, file)| file.site(&real, Some(&within)));
                    (format!("{} ({file}, {within}): {lacked}", call.name), site)
                }
                (None, _) => (format!("{} (the code behind -c): {lacked}", call.name), None),
            }))
        }
        None => Fact::Absent,
    };
    facts.insert(key::EXTENSION_BUILD_FAILS, failing);
    facts.insert(key::EXTENSION_NO_COMPILER, found.as_ref().and_then(|faults, _| faults.no_compiler.clone()));
    facts.insert(key::EXTENSION_NO_NVCC, found.as_ref().and_then(|faults, _| faults.no_nvcc.clone()));
    facts.insert(key::EXTENSION_BROKEN, imported);
    facts.insert(key::EXTENSION_BROKEN_UNUSED, unused);
    facts.insert(key::EXTENSION_MISSING, missing);
    facts.insert(key::EXTENSION_OTHER_CUDA, other_cuda);
    facts.insert(key::NVSHMEM_MISMATCH, texts(|faults| &faults.imported, mismatched));
    facts.insert(key::NVSHMEM_MISMATCH_UNUSED, texts(|faults| &faults.unused, mismatched));
    facts.insert(key::NVSHMEM_FITTING, fitting);
}

/// Returns true if a version has this major number.
fn is_major(version: &Version, major: &str) -> bool {
    version.as_str().split('.').next() == Some(major)
}

/// A fact of texts with their sites; absent if there are none.
fn listed(texts: impl Iterator<Item = (String, Option<Site>)>) -> Fact<Vec<String>> {
    let (texts, at): (Vec<_>, Vec<_>) = texts.unzip();
    if texts.is_empty() { Fact::Absent } else { Fact::Seen { value: texts, at: at.into_iter().flatten().collect() } }
}

/// What does not work in the process of an import: the packages that the program imports, each with the first library that
/// is refused, and those whose own import fails.
fn search<'a>(context: &Context<'a>, import: &Import<'a>, bitsandbytes: Option<&BitsandbytesLibrary>) -> AllFaults {
    let Some(python) = context.python.as_ref().filter(|python| python.program.is_ok()) else {
        let [imported, unused] = [ExtensionFaults::default(), ExtensionFaults::default()];
        let [no_compiler, no_nvcc] = [Fact::Absent, Fact::Absent];
        return AllFaults {
            imported,
            unused,
            no_compiler,
            no_nvcc,
            absent: Fact::Absent,
            no_bitsandbytes: Fact::Absent,
        };
    };
    let library = match bitsandbytes {
        Some(BitsandbytesLibrary::There(path)) => Some(path),
        Some(BitsandbytesLibrary::Missing(..)) | None => None,
    };
    let mut program = ImportWalk::new(context.rootfs, python, import).with_bitsandbytes(library);
    program.program();
    let is_imported = |module: &str| program.modules.get(module).is_some_and(Option::is_some);
    let [no_compiler, no_nvcc] =
        [Compiler::C, Compiler::Nvcc].map(|compiler| compiler.missing(context, python, is_imported));
    let [imported, unused] = [ExtensionFaults::default(), ExtensionFaults::default()];
    let no_bitsandbytes = match bitsandbytes {
        Some(BitsandbytesLibrary::Missing(path, _)) if is_imported("bitsandbytes") => Fact::known(path.clone()),
        _ => Fact::Absent,
    };
    let absent = absent::absent(context, python, &program);
    let mut faults = AllFaults { imported, unused, no_compiler, no_nvcc, absent, no_bitsandbytes };
    let mut known = BTreeSet::new();
    program.refused.retain(|refused| known.insert(refused.package.clone()));
    let mut modules = program.modules.len();
    faults.imported = ExtensionFaults {
        loaded: program.loaded,
        refused: program.refused,
        mismatched: program.mismatched,
        gap: program.gap,
    };
    for package in packages(context, python) {
        let mut walk = ImportWalk::new(context.rootfs, python, import).with_bitsandbytes(library);
        walk.import(&package);
        modules += walk.modules.len();
        if modules > MOST_MODULES {
            let why = format!("the imports of the installed packages lead to more than {MOST_MODULES} modules");
            faults.unused.gap.get_or_insert(Gap::new(why));
            break;
        }
        faults.unused.gap = faults.unused.gap.or(walk.gap);
        let first = walk.refused.into_iter().next();
        faults.unused.refused.extend(first.filter(|refused| known.insert(refused.package.clone())));
        let is_new = |mismatch: &NvshmemMismatch| {
            ![&faults.imported, &faults.unused].iter().any(|faults| faults.mismatched.contains(mismatch))
        };
        let mismatched: Vec<_> = walk.mismatched.into_iter().filter(is_new).collect();
        faults.unused.mismatched.extend(mismatched);
    }
    faults
}

/// The modules whose import may load a library that concerns: packages with one, those that import one which is a module
/// of its own, and those that open one by its path.
fn packages(context: &Context<'_>, python: &Python) -> BTreeSet<String> {
    let torch = context.torch.imported_as.as_ref();
    let mut packages = BTreeSet::new();
    let mut modules = BTreeSet::new();
    let mut readers = Vec::new();
    for (path, file) in context.rootfs.read_files() {
        let Some(folder) = python.site_packages.iter().find(|folder| path.starts_with(folder)) else { continue };
        if torch.is_some_and(|torch| path.starts_with(torch)) {
            continue;
        }
        let below = path.components().skip(folder.components().count());
        let below = String::from_utf8_lossy(&below.collect::<Vec<_>>().join(&b'/')).into_owned();
        let (first, is_module) = below.split_once('/').map_or((below.as_str(), true), |(first, _)| (first, false));
        if let Some(imports) = imports(&file) {
            readers.push((first.trim_end_matches(".py").to_owned(), imports));
        } else if elf(&file).is_some_and(concerns) {
            let name = first.split('.').next().unwrap_or(first).to_owned();
            if is_module {
                modules.insert(name)
            } else {
                packages.insert(name)
            };
            packages.extend(opened::by(&below).map(ToOwned::to_owned));
        }
    }
    if !modules.is_empty() {
        for (reader, imports) in readers {
            let has = imports
                .iter()
                .any(|import| import.condition != ImportCondition::IsProgram && modules.contains(import.module));
            if has {
                packages.insert(reader);
            }
        }
    }
    packages.remove("nvidia");
    packages
}

#[cfg(test)]
mod tests;
