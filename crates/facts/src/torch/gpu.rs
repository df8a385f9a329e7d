//! Targets of torch's CUDA code: GPU architectures, and an NCCL version.

use model::{Fact, Found, Gap};

use super::super::{Context, Facts, key};
use super::libraries::is_library;

/// `torch::cuda::nccl::version()`, which `torch.cuda.nccl.version()` calls.
const NCCL_VERSION: &str = "_ZN5torch4cuda4nccl7versionEv";

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    facts.insert(key::TORCH_ARCH_LIST, arch_list(context, facts.get(key::TORCH_CUDA_BUILD)));
    facts.insert(key::NCCL_TORCH_VERSION, nccl_version(context));
}

fn arch_list(context: &Context<'_>, cuda_build: &Fact<bool>) -> Fact<Vec<String>> {
    match cuda_build {
        Fact::Seen { value: true, .. } => {}
        Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
        _ => return Fact::Absent,
    }
    context.torch_libraries(|name| is_library(name, b"libtorch_python")).and_then(|libraries, _| {
        let lists = libraries.iter().flat_map(|library| {
            let lists = library.file.found.iter().filter_map(|found| match found {
                Ok(Found::ArchFlags(lists)) => Some(lists),
                _ => None,
            });
            lists.flatten().map(|list| (list, library.site(Some("literal"))))
        });
        let lists: Vec<_> = lists.collect();
        match lists.as_slice() {
            [(list, site)] => Fact::seen(list.split(' ').map(ToOwned::to_owned).collect(), [site.clone()]),
            [] => Fact::Unknown(Gap::new("libtorch_python.so contains no list of GPU architectures")),
            several => Fact::Unknown(Gap::new(format!(
                "libtorch_python.so contains {} lists of GPU architectures: {}",
                several.len(),
                several.iter().map(|(list, _)| list.as_str()).collect::<Vec<_>>().join(", ")
            ))),
        }
    })
}

fn nccl_version(context: &Context<'_>) -> Fact<String> {
    context.torch_cuda().and_then(|libraries, _| {
        for library in &libraries {
            let symbols = match &library.elf.symbols {
                Ok(symbols) => symbols,
                Err(gap) => return Fact::Unknown(gap.clone()),
            };
            let Some(symbol) = symbols.iter().find(|symbol| symbol.defined && symbol.name == NCCL_VERSION) else {
                continue;
            };
            let versions = library.file.found.iter().find_map(|found| match found {
                Ok(Found::NcclVersions(versions)) => Some(versions),
                _ => None,
            });
            let version = symbol.offset.and_then(|offset| versions?.get(&offset));
            return match version {
                Some([major, minor, patch]) => {
                    Fact::seen(format!("{major}.{minor}.{patch}"), [library.site(Some("torch::cuda::nccl::version()"))])
                }
                None => Fact::Unknown(Gap::new(format!(
                    "{}: torch::cuda::nccl::version() does more than return a number",
                    library.path
                ))),
            };
        }
        Fact::Absent
    })
}
