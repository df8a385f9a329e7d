//! GPU code in libraries.

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Arch, Fact, Found, Gap, GpuCode, ImagePath};
use crate::rootfs::RootFile;

use super::super::value::CodeLists;
use super::super::{Context, Draft, key};
use super::toolkit;

/// Directories of CUDA's tools.
const TOOLS: [&str; 2] = ["opt/nvidia", "usr/local"];

pub(super) fn produce(context: &Context<'_>, facts: &mut Draft<'_>) {
    let mut groups = BTreeMap::new();
    let mut versions = BTreeMap::new();
    let mut at = (Vec::new(), Vec::new());
    let all = context.rootfs.read_files().filter_map(|(path, file)| Some((path, code(&file)?, file)));
    for (path, code, file) in all.filter(|(path, _, file)| !is_of_cuda(path, file)) {
        match code {
            Err(gap) => {
                facts.insert(key::CUDA_FATBIN, Fact::Unknown(gap.clone()));
                facts.insert(key::CUDA_PTX, Fact::Unknown(gap.clone()));
                facts.insert(key::CUDA_NOT_IN_NCCL, Fact::Unknown(gap.clone()));
                return;
            }
            Ok(code) => {
                groups.insert(path.to_string(), lists(code));
                at.0.push(file.site(path, None));
                if let Some((major, minor)) = code.ptx.values().max() {
                    versions.insert(path.to_string(), format!("{major}.{minor}"));
                    at.1.push(file.site(path, None));
                }
            }
        }
    }
    let is_absent = groups.is_empty();
    facts.insert(key::CUDA_FATBIN, if is_absent { Fact::Absent } else { Fact::Seen { value: groups, at: at.0 } });
    let is_absent = versions.is_empty();
    facts.insert(key::CUDA_PTX, if is_absent { Fact::Absent } else { Fact::Seen { value: versions, at: at.1 } });
    let not_in_nccl = not_in_nccl(context, facts);
    facts.insert(key::CUDA_NOT_IN_NCCL, not_in_nccl);
}

/// Architectures that torch supports and for which NCCL has no code.
fn not_in_nccl(context: &Context<'_>, facts: &Draft<'_>) -> Fact<Vec<String>> {
    let nccl = facts.get(key::NCCL_LOADED_PATH).clone().and_then(|path, _| {
        match context.rootfs.open(&path).ok().map(|(path, file)| (code(&file), file.site(&path, None))) {
            Some((Some(Ok(code)), site)) => Fact::seen(code, [site]),
            _ => Fact::Unknown(Gap::new(format!("no GPU code was seen in {path}"))),
        }
    });
    nccl.and_then(|nccl, mut at| {
        context.torch_cuda().and_then(|libraries, _| {
            let mut missing = BTreeSet::new();
            for library in &libraries {
                let Some(Ok(torch)) = code(&library.file) else { continue };
                let archs = torch.cubin.iter().filter(|arch| arch.is_plain() && !serves(nccl, **arch));
                missing.extend(archs.map(|arch| format!("sm_{arch}")));
                at.push(library.site(None));
            }
            let missing: Vec<_> = missing.into_iter().collect();
            if missing.is_empty() { Fact::Absent } else { Fact::Seen { value: missing, at } }
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
