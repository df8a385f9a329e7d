//! Whose GPUs torch is built for, and whose the image is made for.

use model::{Fact, ImagePath};

use super::super::{Context, Facts, key};

/// The library of each vendor, and the beginning of the local version of its builds.
const VENDORS: &[(&str, &[u8], &str)] =
    &[("ROCm (AMD)", b"libtorch_hip.so", "rocm"), ("XPU (Intel)", b"libtorch_xpu.so", "xpu")];

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
    facts.insert(key::TORCH_VENDOR, vendor);
    facts.insert(key::IMAGE_ROCM, rocm(context).into());
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
