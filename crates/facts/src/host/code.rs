//! GPU code that libraries have for a host's GPU: machine code, or PTX that the driver compiles at load time (CUDA C++
//! Programming Guide, "Application Compatibility").

use std::collections::BTreeMap;

use crate::machine::{Gpu, Host};
use model::{Arch, Fact, Gap, ImagePath, Site, Version};

use super::super::cuda::toolkit::{is_in_table, release_for_ptx};
use super::super::value::CodeLists;
use super::super::words::GpuSupport;
use super::super::{Facts, key, pattern};

/// Libraries of torch that contain most of its kernels. Release 1.13 has them split in two.
const OF_TORCH: [&str; 3] = ["libtorch_cuda.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so"];

// nixl_ep_cpp_torch211.cpython-311-x86_64-linux-gnu.so
pattern!(BUILD, r"torch[_-]?([1-9])[._]?([0-9]{1,2})(?:[^0-9]|$)");

pub(super) fn produce(host: &Host, facts: &mut Facts) {
    let answers = facts.get(key::CUDA_FATBIN).as_ref().and_then(|libraries, at| match &host.gpu {
        Some(gpu) => Fact::Seen { value: Libraries::new(libraries, gpu, host, facts), at },
        None => Fact::Absent,
    });
    let torch = answers.clone().and_then(|libraries, at| libraries.torch(facts, &at));
    let nccl = answers.clone().and_then(|libraries, at| libraries.nccl(facts, &at));
    let [unused, imported] = [false, true].map(|is_imported| {
        answers.clone().and_then(|libraries, at| libraries.extensions_without(is_imported, facts, &at))
    });
    // A library that must have code and shows none was read incorrectly.
    let none_seen = host.gpu.is_some() && matches!(facts.get(key::CUDA_FATBIN), Fact::Absent);
    let unread = || Fact::unknown("no GPU code was seen in any library of the image");
    let has_cuda = facts.get(key::TORCH_CUDA_BUILD).value() == Some(&true);
    let torch = if none_seen && has_cuda { unread() } else { torch };
    let has_nccl = facts.get(key::NCCL_LOADED_PATH).value().is_some();
    let nccl = if none_seen && has_nccl { unread() } else { nccl };
    facts.insert(key::HOST_TORCH_CODE, torch);
    facts.insert(key::HOST_NCCL_CODE, nccl);
    facts.insert(key::HOST_EXTENSIONS_WITHOUT_CODE, unused);
    facts.insert(key::HOST_IMPORTED_WITHOUT_CODE, imported);
}

/// Path and GPU support of a library.
type Judged<'a> = (&'a String, &'a Result<GpuSupport, Gap>);

/// GPU support of an image's libraries for one GPU.
#[derive(Clone, Debug)]
struct Libraries(BTreeMap<String, Result<GpuSupport, Gap>>);

impl Libraries {
    fn new(libraries: &BTreeMap<String, CodeLists>, gpu: &Gpu, host: &Host, facts: &Facts) -> Self {
        let ptx = facts.get(key::CUDA_PTX).value();
        let judge = |(path, code): (&String, &CodeLists)| {
            let has = match (support(code, gpu.arch), ptx.and_then(|versions| versions.get(path))) {
                (GpuSupport::Ptx, Some(version)) => compiled(path, version, host, facts),
                (has, _) => Ok(has),
            };
            (path.clone(), has)
        };
        let unread = facts.get(key::CUDA_UNREAD_CODE).value().into_iter().flatten();
        let unread = unread.map(|(path, why)| (path.clone(), Err(Gap::new(why))));
        Self(libraries.iter().map(judge).chain(unread).collect())
    }

    /// The best support among torch's libraries: the library with the kernels differs between releases.
    fn torch(&self, facts: &Facts, at: &[Site]) -> Fact<GpuSupport> {
        match facts.get(key::TORCH_CUDA_BUILD) {
            Fact::Seen { value: true, .. } => {}
            Fact::Seen { value: false, .. } | Fact::Absent => return Fact::Absent,
            Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
        }
        let named = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            OF_TORCH
                .iter()
                .any(|library| name.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        };
        let all: Vec<_> = self.0.iter().filter(|(path, _)| named(path)).collect();
        let package = facts.get(key::TORCH_PATH).value().map(ToString::to_string).unwrap_or_default();
        let own: Vec<_> = all.iter().filter(|(path, _)| path.starts_with(&format!("{package}/"))).copied().collect();
        // Distribution packages install them outside the torch package.
        let libraries = if own.is_empty() { all } else { own };
        let mut best: Option<&Result<GpuSupport, Gap>> = None;
        for (_, has) in &libraries {
            best = match (best, has) {
                (None, _) | (Some(Err(_)), Ok(GpuSupport::Cubin)) => Some(has),
                (Some(Ok(known)), Ok(new)) if new > known => Some(has),
                (Some(Ok(known)), Err(_)) if *known != GpuSupport::Cubin => Some(has),
                _ => best,
            };
        }
        let at = sites(at, |path| libraries.iter().any(|(library, _)| *library == path));
        answer(best, "torch's CUDA library", at)
    }

    fn nccl(&self, facts: &Facts, at: &[Site]) -> Fact<GpuSupport> {
        facts.get(key::NCCL_LOADED_PATH).as_ref().and_then(|path, _| {
            let path = path.to_string();
            answer(self.0.get(&path), &path, sites(at, |site| site == path))
        })
    }

    /// The Python packages in which no extension supports the GPU, each by its only extension or with their number: those
    /// that the program imports, or the others. A package may have some extensions for certain GPUs only.
    fn extensions_without(&self, is_imported: bool, facts: &Facts, at: &[Site]) -> Fact<Vec<String>> {
        let torch = facts.get(key::TORCH_PATH).value().map(ToString::to_string).unwrap_or_default();
        let mut packages: BTreeMap<String, Vec<Judged<'_>>> = BTreeMap::new();
        for (path, has) in &self.0 {
            if let Some(package) = package(path).filter(|package| *package != torch && !package.ends_with("/nvidia")) {
                packages.entry(package).or_default().push((path, has));
            }
        }
        let version = facts.get(key::TORCH_VERSION).value();
        let loaded = facts.get(key::EXTENSION_LOADED).value().map(Vec::as_slice).unwrap_or_default();
        let mut without = Vec::new();
        let mut texts = Vec::new();
        let mut unread = None;
        for (package, extensions) in &mut packages {
            if extensions.iter().any(|(path, _)| loaded.contains(path)) != is_imported {
                continue;
            }
            keep_builds_for(version.map(Version::as_str), extensions);
            if extensions.iter().any(|(_, has)| matches!(has, Ok(GpuSupport::Cubin | GpuSupport::Ptx))) {
                continue;
            }
            if let Some(gap) = extensions.iter().find_map(|(_, has)| has.as_ref().err()) {
                unread = unread.or(Some(gap));
                continue;
            }
            texts.push(match extensions.as_slice() {
                [(path, _)] => (*path).clone(),
                several => format!("{package} ({} libraries)", several.len()),
            });
            without.extend(extensions.iter().map(|(path, _)| *path));
        }
        let at = sites(at, |path| without.iter().any(|extension| *extension == path));
        match unread {
            // What is known to lack code lacks it, whatever the others have.
            _ if !texts.is_empty() => Fact::Seen { value: texts, at },
            Some(gap) => Fact::Unknown(gap.clone()),
            None => Fact::Absent,
        }
    }
}

/// Removes the builds for other releases of torch from a package that has one for this release: only that one can be
/// imported.
fn keep_builds_for(torch: Option<&str>, extensions: &mut Vec<Judged<'_>>) {
    let release = |path: &str| {
        let captures = BUILD.captures(path.rsplit('/').next().unwrap_or_default().as_bytes())?;
        let [major, minor] =
            [1, 2].map(|group| captures.get(group).and_then(|text| std::str::from_utf8(text.as_bytes()).ok()));
        Some(format!("{}.{}", major?, minor?))
    };
    let this = torch.map(|version| version.split('.').take(2).collect::<Vec<_>>().join("."));
    if extensions.iter().any(|(path, _)| this.is_some() && release(path) == this) {
        extensions.retain(|(path, _)| release(path).is_none_or(|release| Some(release) == this));
    }
}

fn answer(has: Option<&Result<GpuSupport, Gap>>, what: &str, at: Vec<Site>) -> Fact<GpuSupport> {
    match has {
        None => Fact::Unknown(Gap::new(format!("no GPU code was seen in {what}"))),
        Some(Err(gap)) => Fact::Unknown(gap.clone()),
        Some(Ok(has)) => Fact::Seen { value: *has, at },
    }
}

/// The file or directory directly below site-packages that a path belongs to.
fn package(path: &str) -> Option<String> {
    let (folder, marker) =
        ["/site-packages/", "/dist-packages/"].iter().find_map(|marker| Some((path.rfind(marker)?, marker)))?;
    let (folder, inside) = path.split_at_checked(folder + marker.len())?;
    Some(format!("{folder}{}", inside.split('/').next().unwrap_or_default()))
}

fn sites(at: &[Site], wanted: impl Fn(&str) -> bool) -> Vec<Site> {
    let is_wanted = |site: &&Site| matches!(site, Site::File { path, .. } if wanted(&ImagePath::to_string(path)));
    at.iter().filter(is_wanted).cloned().collect()
}

/// The best support that a library's code has for a GPU, assuming the driver compiles any PTX.
fn support(code: &CodeLists, gpu: Arch) -> GpuSupport {
    if code.cubin.iter().any(|arch| arch.runs_on(gpu)) {
        GpuSupport::Cubin
    } else if code.ptx.iter().any(|arch| arch.compiles_for(gpu)) {
        GpuSupport::Ptx
    } else {
        GpuSupport::None
    }
}

/// Returns `Ptx` when the host's driver is new enough to compile the PTX, else `NewPtx`.
fn compiled(path: &str, ptx: &str, host: &Host, facts: &Facts) -> Result<GpuSupport, Gap> {
    let needed = release_for_ptx(ptx);
    let at_least = facts.get(key::HOST_CUDA_MIN).value();
    if needed.as_ref().zip(at_least).is_some_and(|(needed, at_least)| at_least >= needed) {
        return Ok(GpuSupport::Ptx);
    }
    match facts.get(key::HOST_CUDA) {
        Fact::Unknown(gap) => Err(gap.clone()),
        // The host description has no driver: assume that it compiles the PTX.
        Fact::Absent => Ok(GpuSupport::Ptx),
        // PTX that is newer than the table needs a newer driver than any in it.
        Fact::Seen { value, .. } if needed.is_some() || is_in_table(value) => Ok(GpuSupport::NewPtx),
        Fact::Seen { .. } => {
            Err(Gap::new(format!("{path}: the CUDA release that {host} needs to compile PTX {ptx} is unknown")))
        }
    }
}
