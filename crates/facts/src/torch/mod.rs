//! PyTorch: the package that is imported, its build, and its linkage to NCCL.

mod build;
mod contradictions;
mod cudnn;
mod extension;
mod gpu;
mod import;
mod installation;
mod installer;
mod interpreter;
mod libraries;
mod loaded;
mod macros;
mod marker;
mod musl;
mod own_modules;
mod preload;
mod requirements;
mod shadowed_modules;
mod vendor;
mod version;

use model::{DynamicSymbol, Fact};

use super::words::Linkage;
use super::{Context, Facts, key, pattern, text};

pub(super) use import::{Import, import};
pub(super) use installation::Installation;
pub(super) use libraries::TorchLibrary;
use libraries::{any_symbol, is_library};
pub(super) use macros::options as header_options;

// Core metadata 2.0 encloses the specifier in parentheses.
pattern!(NCCL_PIN, r"(?m)^Requires-Dist: *(nvidia-nccl-cu\d+) *\(?(==[0-9.]+)");

fn is_process_group(symbol: &DynamicSymbol) -> bool {
    symbol.name.contains("16ProcessGroupNCCL")
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let installation = &context.torch;
    let installs = match installation.all.as_slice() {
        [] => Fact::Absent,
        all => Fact::Seen {
            value: all.iter().map(|(package, _)| package.to_string()).collect::<Vec<_>>(),
            at: all.iter().map(|(_, site)| site.clone()).collect(),
        },
    };
    facts.insert(key::TORCH_INSTALLS, installs);
    facts.insert(key::TORCH_PATH, installation.chosen.clone());
    installation.produce(facts);
    shadowed_modules::produce(context, facts);

    version::produce(context, facts);
    vendor::produce(context, facts);
    let build = build::produce(context, facts);
    loaded::produce(context, facts);
    cudnn::produce(context, facts);

    let cuda = context.torch_cuda();
    facts.insert(
        key::TORCH_CUDA_BUILD,
        match (&installation.chosen, &cuda) {
            (Fact::Seen { at, .. }, Fact::Absent) => Fact::Seen { value: false, at: at.clone() },
            (_, other) => other.clone().map(|_| true),
        },
    );
    facts.insert(key::TORCH_NCCL_LINKAGE, linkage(&cuda));
    facts.insert(
        key::TORCH_PROCESS_GROUP_NCCL,
        cuda.and_then(|libraries, _| {
            any_symbol(&libraries, "dynamic symbols", |symbol| symbol.defined && is_process_group(symbol))
        }),
    );
    gpu::produce(context, facts);
    contradictions::produce(&build, facts);
    let binding = context.torch_libraries(|name| is_library(name, b"libtorch_python"));
    facts.insert(
        key::NCCL_AVAILABLE,
        binding.and_then(|libraries, _| any_symbol(&libraries, "dynamic symbols", is_process_group)),
    );

    let version = facts.get(key::TORCH_VERSION).clone();
    // A file of the wheel's metadata.
    let info = |file: &str| {
        let package = installation.chosen.clone();
        package.and_then(|package, _| {
            version.clone().and_then(|version, _| {
                let version = version.as_str();
                // The directory is named after the wheel's version, which has no +cuNNN on the default index.
                let names = [version, version.split('+').next().unwrap_or_default()];
                let found = names.iter().map(|version| {
                    let path = package.parent().join(format!("torch-{version}.dist-info/{file}").as_bytes());
                    text(context.rootfs, &path)
                });
                found.into_iter().find(|fact| !matches!(fact, Fact::Absent)).unwrap_or(Fact::Absent)
            })
        })
    };
    let metadata = info("METADATA");
    facts.insert(key::TORCH_INSTALLER, installer::installer(context, &info("RECORD")));
    facts.insert(
        key::TORCH_NCCL_PIN,
        metadata.clone().and_then(|bytes, at| {
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            let pin = NCCL_PIN.captures(bytes).map(|captures| text(&captures[1]) + &text(&captures[2]));
            pin.map_or(Fact::Absent, |value| Fact::Seen { value, at })
        }),
    );
    requirements::produce(context, metadata, facts);
}

/// Linkage of NCCL in torch: defined inside, imported, or absent.
fn linkage(cuda: &Fact<Vec<TorchLibrary<'_>>>) -> Fact<Linkage> {
    cuda.clone().and_then(|libraries, _| {
        let within = "dynamic symbols";
        let inside = any_symbol(&libraries, within, |symbol| symbol.defined && symbol.name == "ncclGetVersion");
        let imported = any_symbol(&libraries, within, |symbol| !symbol.defined && symbol.name.starts_with("nccl"));
        match (inside, imported) {
            (Fact::Seen { value: true, at }, _) => Fact::Seen { value: Linkage::Static, at },
            (_, Fact::Seen { value: true, at }) => Fact::Seen { value: Linkage::Shared, at },
            (Fact::Unknown(gap), _) | (_, Fact::Unknown(gap)) => Fact::Unknown(gap),
            (Fact::Seen { at, .. }, _) => Fact::Seen { value: Linkage::None, at },
            (Fact::Absent, _) => Fact::Absent,
        }
    })
}

#[cfg(test)]
mod tests;
