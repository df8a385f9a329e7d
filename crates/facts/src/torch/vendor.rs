//! Whose GPUs torch is built for, and whose the image is made for.

use model::{Fact, ImagePath, Site, is_among};

use super::super::{Context, Facts, key};

/// The library of each vendor, and the beginning of the local version of its builds.
const VENDORS: &[(&str, &[u8], &str)] =
    &[("ROCm (AMD)", b"libtorch_hip.so", "rocm"), ("XPU (Intel)", b"libtorch_xpu.so", "xpu")];

/// The beginning of PyTorch's indexes, each of which has the builds for one kind of GPU.
const INDEX: &str = "https://download.pytorch.org/whl/";

/// The index whose builds of torch are for CUDA.
const PYPI: &str = "https://pypi.org/simple";

/// Variables that only ROCm reads.
const OF_ROCM: &[&str] = &["ROCM_PATH", "ROCM_HOME", "HIP_PATH", "HIP_VISIBLE_DEVICES", "HSA_OVERRIDE_GFX_VERSION"];

/// Inserts the facts; those about torch before are there.
pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let package = context.torch.chosen.clone();
    let vendor = package.and_then(|package, at| {
        let libraries = package.join(b"lib");
        let version = facts.get(key::TORCH_VERSION).value().map(ToString::to_string).unwrap_or_default();
        let local = version.split_once('+').map(|(_, local)| local.to_owned()).unwrap_or_default();
        let is_own = |library: &[u8], start: &str| {
            local.starts_with(start) || context.rootfs.open(&libraries.join(library)).is_ok()
        };
        let vendor = VENDORS.iter().find(|(_, library, start)| is_own(library, start));
        vendor.map_or(Fact::Absent, |(name, ..)| Fact::Seen { value: (*name).to_owned(), at })
    });
    let is_cuda = facts.get(key::TORCH_CUDA_VERSION).value().is_some() && !matches!(vendor, Fact::Seen { .. });
    facts.insert(key::TORCH_VENDOR, vendor);
    let argument = if is_cuda { None } else { build_argument(context) };
    let platform = context.config.and_then(|config| config.platform.as_ref());
    // PyPI's builds for other processors than x86-64 are without CUDA.
    let has_cuda = platform.is_some_and(|platform| platform.architecture == "amd64");
    let index = argument.as_ref().filter(|(_, value)| has_cuda && value.starts_with(INDEX)).map(|_| PYPI.to_owned());
    facts.insert(key::TORCH_BUILD_ARGUMENT, argument.map(|(name, value)| format!("{name}={value}")).into());
    facts.insert(key::TORCH_BUILD_INDEX, index.into());
    facts.insert(key::IMAGE_ROCM, rocm(context).into());
}

/// The build argument that chose a build without CUDA, in the step that installed torch.
fn build_argument(context: &Context<'_>) -> Option<(String, String)> {
    let Fact::Seen { at, .. } = &context.torch.chosen else { return None };
    let Some(Site::File { layer, .. }) = at.first() else { return None };
    let arguments = context.config?.build_arguments.get(*layer)?;
    let words =
        |value: &str| value.split(|c: char| !c.is_ascii_alphabetic()).map(str::to_lowercase).collect::<Vec<_>>();
    let is_meant = |value: &str| words(value).iter().any(|word| is_among(word, "cpu cpuonly rocm xpu"));
    arguments.iter().find(|(_, value)| is_meant(value)).map(|(name, value)| (name.clone(), value.clone()))
}

/// What shows that the image is made for ROCm.
fn rocm(context: &Context<'_>) -> Option<String> {
    let folder = ImagePath::from("/opt/rocm");
    if context.rootfs.is_directory(&folder) {
        return Some(folder.to_string());
    }
    let variables = context.config.map(|config| &config.environment)?;
    OF_ROCM.iter().find(|name| variables.contains_key(**name)).map(|name| format!("ENV {name}"))
}
