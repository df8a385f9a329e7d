//! Which libraries have GPU code for a host's GPU: machine code, or PTX that its driver compiles when it is loaded (CUDA C++
//! Programming Guide, "Application Compatibility").

use std::collections::BTreeMap;

use crate::model::{Arch, Fact, Gap, Gpu, Host, ImagePath, Site, Value, Version};

use super::super::cuda::toolkit::release_for_ptx;
use super::super::{Facts, key};
use super::version;

/// What a library has for a GPU, from worst to best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Has {
    Nothing,
    /// PTX that the driver is too old to compile.
    NewPtx,
    Ptx,
    Cubin,
}

impl Has {
    const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "none",
            Self::NewPtx => "new-ptx",
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
        }
    }
}

/// Libraries of torch that hold most of its kernels. 1.13 came with them split in two.
const OF_TORCH: [&str; 3] = ["libtorch_cuda.so", "libtorch_cuda_cu.so", "libtorch_cuda_cpp.so"];

pub(super) fn produce(host: &Host, facts: &mut Facts) {
    let answers = facts.get(key::CUDA_FATBIN.name).clone().and_then(|libraries, at| match (&host.gpu, libraries) {
        (Some(gpu), Value::Map(libraries)) => Fact::Seen { value: Libraries::new(libraries, gpu, host, facts), at },
        _ => Fact::Absent,
    });
    let torch = answers.clone().and_then(|libraries, at| libraries.torch(facts, &at));
    let nccl = answers.clone().and_then(|libraries, at| libraries.nccl(facts, &at));
    let extensions = answers.and_then(|libraries, at| libraries.extensions_without(facts, &at));
    // A library that must have code and shows none was not read right.
    let none_seen = host.gpu.is_some() && matches!(facts.get(key::CUDA_FATBIN.name), Fact::Absent);
    let unread = |fact: Fact, what: &'static key::Key| match facts.get(what.name) {
        Fact::Seen { value, .. } if none_seen && *value != Value::Bool(false) => {
            Fact::Unknown(Gap::new("no library of the image was seen to have GPU code"))
        }
        _ => fact,
    };
    let (torch, nccl) = (unread(torch, key::TORCH_CUDA_BUILD), unread(nccl, key::NCCL_LOADED_PATH));
    facts.insert(key::HOST_TORCH_CODE, torch);
    facts.insert(key::HOST_NCCL_CODE, nccl);
    facts.insert(key::HOST_EXTENSIONS_WITHOUT_CODE, extensions);
}

/// A library's path, and what it has.
type Judged<'a> = (&'a String, &'a Result<Has, Gap>);

/// What the libraries of an image have for one GPU.
#[derive(Clone, Debug)]
struct Libraries(BTreeMap<String, Result<Has, Gap>>);

impl Libraries {
    fn new(libraries: BTreeMap<String, Value>, gpu: &Gpu, host: &Host, facts: &Facts) -> Self {
        let ptx = match facts.get(key::CUDA_PTX.name).value() {
            Some(Value::Map(versions)) => versions.clone(),
            _ => BTreeMap::new(),
        };
        let judge = |(path, lists): (String, Value)| {
            let has = has(&lists, gpu.arch).and_then(|has| match (has, ptx.get(&path)) {
                (Has::Ptx, Some(version)) => compiled(&path, &version.to_string(), host, facts),
                _ => Ok(has),
            });
            (path, has)
        };
        Self(libraries.into_iter().map(judge).collect())
    }

    /// The best of torch's libraries: which of them has the kernels differs between releases.
    fn torch(&self, facts: &Facts, at: &[Site]) -> Fact {
        if facts.get(key::TORCH_CUDA_BUILD.name).value() != Some(&Value::Bool(true)) {
            return facts.get(key::TORCH_CUDA_BUILD.name).clone().and_then(|_, _| Fact::Absent);
        }
        let named = |path: &str| {
            let name = path.rsplit('/').next().unwrap_or_default();
            OF_TORCH
                .iter()
                .any(|library| name.strip_prefix(library).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
        };
        let all: Vec<_> = self.0.iter().filter(|(path, _)| named(path)).collect();
        let package = facts.get(key::TORCH_PATH.name).value().map(ToString::to_string).unwrap_or_default();
        let own: Vec<_> = all.iter().filter(|(path, _)| path.starts_with(&format!("{package}/"))).copied().collect();
        // Packages of distributions keep them elsewhere.
        let libraries = if own.is_empty() { all } else { own };
        let mut best: Option<&Result<Has, Gap>> = None;
        for (_, has) in &libraries {
            best = match (best, has) {
                (None, _) | (Some(Err(_)), Ok(Has::Cubin)) => Some(has),
                (Some(Ok(known)), Ok(new)) if new > known => Some(has),
                (Some(Ok(known)), Err(_)) if *known != Has::Cubin => Some(has),
                _ => best,
            };
        }
        let at = sites(at, |path| libraries.iter().any(|(library, _)| *library == path));
        answer(best, "torch's CUDA library", at)
    }

    fn nccl(&self, facts: &Facts, at: &[Site]) -> Fact {
        facts.get(key::NCCL_LOADED_PATH.name).clone().and_then(|path, _| {
            let path = path.to_string();
            answer(self.0.get(&path), &path, sites(at, |site| site == path))
        })
    }

    /// Extensions of Python packages of which none has code. A package may have some for certain GPUs alone.
    fn extensions_without(&self, facts: &Facts, at: &[Site]) -> Fact {
        let torch = facts.get(key::TORCH_PATH.name).value().map(ToString::to_string).unwrap_or_default();
        let mut packages: BTreeMap<String, Vec<Judged<'_>>> = BTreeMap::new();
        for (path, has) in &self.0 {
            if let Some(package) = package(path).filter(|package| *package != torch && !package.ends_with("/nvidia")) {
                packages.entry(package).or_default().push((path, has));
            }
        }
        let mut without = Vec::new();
        for extensions in packages.values() {
            if extensions.iter().any(|(_, has)| matches!(has, Ok(Has::Cubin | Has::Ptx))) {
                continue;
            }
            if let Some(gap) = extensions.iter().find_map(|(_, has)| has.as_ref().err()) {
                return Fact::Unknown(gap.clone());
            }
            without.extend(extensions.iter().map(|(path, _)| (*path).clone()));
        }
        let at = sites(at, |path| without.iter().any(|extension| extension == path));
        if without.is_empty() { Fact::Absent } else { Fact::Seen { value: without.into(), at } }
    }
}

fn answer(has: Option<&Result<Has, Gap>>, what: &str, at: Vec<Site>) -> Fact {
    match has {
        None => Fact::Unknown(Gap::new(format!("no GPU code was seen in {what}"))),
        Some(Err(gap)) => Fact::Unknown(gap.clone()),
        Some(Ok(has)) => Fact::Seen { value: has.name().into(), at },
    }
}

/// The folder or the file below the folder of Python packages that a path lies in.
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

/// The best that lists of architectures have for a GPU.
fn has(lists: &Value, gpu: Arch) -> Result<Has, Gap> {
    let Value::Map(lists) = lists else { return Ok(Has::Nothing) };
    let any = |kind: &str, prefix: &str, suits: fn(Arch, Arch) -> bool| -> Result<bool, Gap> {
        let Some(Value::List(names)) = lists.get(kind) else { return Ok(false) };
        for name in names {
            let name = name.to_string();
            let arch = name.strip_prefix(prefix).and_then(|number| format!("sm_{number}").parse::<Arch>().ok());
            if suits(arch.ok_or_else(|| Gap::new(format!("'{name}' is no architecture")))?, gpu) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    Ok(if any("cubin", "sm_", Arch::runs_on)? {
        Has::Cubin
    } else if any("ptx", "compute_", Arch::compiles_for)? {
        Has::Ptx
    } else {
        Has::Nothing
    })
}

/// Whether the host's driver is new enough to compile PTX.
fn compiled(path: &str, ptx: &str, host: &Host, facts: &Facts) -> Result<Has, Gap> {
    let cuda: Option<Version> = match facts.get(key::HOST_CUDA.name) {
        Fact::Unknown(gap) => return Err(gap.clone()),
        // Nothing was said of the driver: what it could not do is not asked.
        Fact::Absent => return Ok(Has::Ptx),
        fact @ Fact::Seen { .. } => version(fact),
    };
    let needed = release_for_ptx(ptx).ok_or_else(|| {
        Gap::new(format!("{path}: which CUDA release compiles PTX {ptx} on {host} is not known here"))
    })?;
    Ok(if cuda.is_some_and(|cuda| cuda < needed) { Has::NewPtx } else { Has::Ptx })
}
