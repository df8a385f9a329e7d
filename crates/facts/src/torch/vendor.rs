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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use model::{ImageConfig, Platform};

    use super::*;
    use crate::tests::synthetic::{collect, rootfs, text_or_link};

    const PACKAGE: &str = "usr/lib/python3.11/site-packages/torch";

    fn facts(version: &str, cuda: &str, files: &[&str], argument: Option<(&str, &str)>) -> Facts {
        let version = format!("__version__ = '{version}'\ncuda = {cuda}\n");
        let own = [
            (format!("{PACKAGE}/__init__.py"), "#"),
            (format!("{PACKAGE}/version.py"), version.as_str()),
            ("usr/bin/python3.11".to_owned(), "elf"),
            ("usr/bin/python3".to_owned(), "-> python3.11"),
            ("usr/lib/python3.11/os.py".to_owned(), "#"),
        ];
        let all = own.iter().map(|(path, text)| (path.as_str(), *text)).chain(files.iter().map(|path| (*path, "#")));
        let rootfs = rootfs(all.map(|(path, text)| text_or_link(path, text)));
        let arguments: BTreeMap<_, _> =
            argument.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let platform = Platform { os: "linux".to_owned(), architecture: "amd64".to_owned(), variant: None };
        let config =
            ImageConfig { platform: Some(platform), build_arguments: vec![arguments], ..ImageConfig::default() };
        collect(&rootfs, &config)
    }

    #[test]
    fn the_vendor_is_that_of_the_version_or_of_the_libraries() {
        let hip = format!("{PACKAGE}/lib/libtorch_hip.so");
        for (version, files, expected) in [
            ("2.9.0+rocm6.4", &[][..], Some("ROCm (AMD)")),
            ("2.9.0+xpu", &[], Some("XPU (Intel)")),
            ("2.9.0", &[&*hip], Some("ROCm (AMD)")),
            ("2.9.0+cpu", &[], None),
            ("2.9.0+cu128", &[], None),
        ] {
            let facts = facts(version, "None", files, None);
            assert_eq!(facts.get(key::TORCH_VENDOR).value().map(String::as_str), expected, "{version}");
        }
        let facts = facts("2.9.0", "'12.8'", &["opt/rocm/lib/x"], None);
        assert_eq!(facts.get(key::IMAGE_ROCM).value().map(String::as_str), Some("/opt/rocm"));
    }

    #[test]
    fn the_build_argument_that_chose_a_build_without_cuda_is_named() {
        let url = "https://download.pytorch.org/whl/cpu";
        let own = "https://mirror/cpu";
        for (version, cuda, argument, expected, index) in [
            ("2.9.0+cpu", "None", Some(("URL", url)), Some(format!("URL={url}")), Some(PYPI)),
            ("2.9.0+cpu", "None", Some(("URL", own)), Some(format!("URL={own}")), None),
            ("2.9.0+cpu", "None", Some(("URL", "https://mirror/cu128")), None, None),
            ("2.9.0+cu128", "'12.8'", Some(("URL", url)), None, None),
            ("2.9.0+cpu", "None", None, None, None),
        ] {
            let facts = facts(version, cuda, &[], argument);
            assert_eq!(facts.get(key::TORCH_BUILD_ARGUMENT).value().cloned(), expected, "{version} {argument:?}");
            assert_eq!(facts.get(key::TORCH_BUILD_INDEX).value().map(String::as_str), index, "{version} {argument:?}");
        }
    }
}
