//! GPU code in libraries.

use std::collections::{BTreeMap, BTreeSet};

use model::{Arch, Fact, Found, Gap, GpuCode, ImagePath, Site};
use rootfs::RootFile;

use super::super::packages::is_stored;
use super::super::value::CodeLists;
use super::super::{Context, Facts, key};
use super::toolkit;

/// Directories of CUDA's tools.
const TOOLS: [&str; 2] = ["opt/nvidia", "usr/local"];

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let read = LibraryCode::read(context);
    // Without a single library that could be read, nothing is known about GPU code.
    let unread = read.unread.values().next().filter(|_| read.lists.is_empty()).cloned();
    let lists = unread.clone().map_or_else(|| listed(read.lists, read.at), Fact::Unknown);
    facts.insert(key::CUDA_FATBIN, lists);
    facts.insert(key::CUDA_PTX, unread.map_or_else(|| listed(read.ptx, read.of_ptx), Fact::Unknown));
    let reasons = read.unread.into_iter().map(|(path, gap)| (path, gap.to_string())).collect();
    facts.insert(key::CUDA_UNREAD_CODE, listed(reasons, read.of_unread));
    let not_in_nccl = not_in_nccl(context, facts);
    facts.insert(key::CUDA_NOT_IN_NCCL, not_in_nccl);
}

/// What the libraries contain, by path.
#[derive(Default)]
struct LibraryCode {
    lists: BTreeMap<String, CodeLists>,
    at: Vec<Site>,
    /// The newest PTX version.
    ptx: BTreeMap<String, String>,
    of_ptx: Vec<Site>,
    /// Why a library's code could not be read.
    unread: BTreeMap<String, Gap>,
    of_unread: Vec<Site>,
}

impl LibraryCode {
    fn read(context: &Context<'_>) -> Self {
        let mut read = Self::default();
        let all = context.rootfs.read_files().filter_map(|(path, file)| Some((path, code(&file)?, file)));
        for (path, code, file) in
            all.filter(|(path, _, file)| !is_of_cuda(path, file) && !is_stored(context.rootfs, path))
        {
            let site = || file.site(path, None);
            match code {
                Err(gap) => {
                    read.unread.insert(path.to_string(), gap.clone());
                    read.of_unread.push(site());
                }
                Ok(code) => {
                    read.lists.insert(path.to_string(), lists(code));
                    read.at.push(site());
                    if let Some((major, minor)) = code.ptx.values().max() {
                        read.ptx.insert(path.to_string(), format!("{major}.{minor}"));
                        read.of_ptx.push(site());
                    }
                }
            }
        }
        read
    }
}

fn listed<T>(value: BTreeMap<String, T>, at: Vec<Site>) -> Fact<BTreeMap<String, T>> {
    if value.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
}

/// Architectures that torch supports and for which NCCL has no code.
fn not_in_nccl(context: &Context<'_>, facts: &Facts) -> Fact<Vec<String>> {
    let nccl = facts.get(key::NCCL_LOADED_PATH).clone().and_then(|path, _| {
        match context.rootfs.open(&path).ok().map(|(path, file)| (code(&file), file.site(&path, None))) {
            Some((Some(Ok(code)), site)) => Fact::seen(code, [site]),
            Some((Some(Err(gap)), _)) => Fact::Unknown(gap.clone()),
            _ => Fact::Unknown(Gap::new(format!("no GPU code was seen in {path}"))),
        }
    });
    nccl.and_then(|nccl, mut at| {
        context.torch_cuda().and_then(|libraries, _| {
            let mut missing = BTreeSet::new();
            let mut unread = None;
            for library in &libraries {
                match code(&library.file) {
                    None => {}
                    Some(Err(gap)) => unread = unread.or(Some(gap)),
                    Some(Ok(torch)) => {
                        let archs = torch.cubin.iter().filter(|arch| arch.is_plain() && !serves(nccl, **arch));
                        missing.extend(archs.map(|arch| format!("sm_{arch}")));
                        at.push(library.site(None));
                    }
                }
            }
            let missing: Vec<_> = missing.into_iter().collect();
            match unread {
                _ if !missing.is_empty() => Fact::Seen { value: missing, at },
                Some(gap) => Fact::Unknown(gap.clone()),
                None => Fact::Absent,
            }
        })
    })
}

fn serves(code: &GpuCode, gpu: Arch) -> bool {
    code.cubin.iter().any(|arch| arch.runs_on(gpu)) || code.ptx.keys().any(|arch| arch.compiles_for(gpu))
}

fn code<'a>(file: &RootFile<'a>) -> Option<&'a Result<GpuCode, Gap>> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::GpuCode(code)) => Some(code),
        _ => None,
    })
}

fn is_of_cuda(path: &ImagePath, file: &RootFile<'_>) -> bool {
    if file.found.iter().any(|found| matches!(found, Ok(Found::Nccl(_)))) {
        return false;
    }
    let name = String::from_utf8_lossy(path.file_name());
    let in_tools = TOOLS.iter().any(|folder| path.starts_with(&(*folder).into()))
        && path.components().nth(2).is_some_and(|part| part.starts_with(b"nsight") || part.starts_with(b"cuda"));
    // NVIDIA's wheels install here.
    let is_wheel = path
        .components()
        .zip(path.components().skip(1))
        .any(|(folder, part)| part == b"nvidia" && matches!(folder, b"site-packages" | b"dist-packages"));
    in_tools || is_wheel || toolkit::libraries().iter().any(|prefix| name.starts_with(prefix))
}

fn lists(code: &GpuCode) -> CodeLists {
    CodeLists { cubin: code.cubin.iter().copied().collect(), ptx: code.ptx.keys().copied().collect() }
}
