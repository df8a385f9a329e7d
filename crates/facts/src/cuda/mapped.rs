//! The CUDA libraries that `import torch` maps, and the major version of CUDA that each belongs to. DT_NEEDED does not
//! show it: `torch/__init__.py` opens libraries by path, from the wheels of another CUDA where those come first.

use std::collections::BTreeSet;

use model::{Fact, ImagePath, Site, Version};
use rootfs::loader::Requester;

use super::super::torch::Import;
use super::super::{Context, Facts, key, pattern};

// A directory of wheels (nvidia/cu13), or of a toolkit (/usr/local/cuda-12.8).
pattern!(FOLDER, r"(?:^|/)(?:nvidia/cu|cuda-)(\d+)(?:\.\d+)?/");
// nvidia-cudnn-cu12 9.10.2.21 (wheel)
pattern!(WHEEL, r"^nvidia-[a-z0-9-]+-cu(\d+) ");
// libcudart.so.12, and what tools that repair wheels make of it: libcudart-e409450e.so.11.0
pattern!(NUMBERED, r"^lib(?:cudart|cublas|cublasLt|nvrtc|nvJitLink|nvblas|cupti)(?:-[0-9a-f]{8})?\.so\.(\d+)");

/// Libraries in these directories that belong to the driver, and NCCL, which has rules of its own.
const OTHERS: [&[u8]; 3] = [b"libcuda.so", b"libnvidia-", b"libnccl"];

/// A CUDA library in a process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct MappedCuda {
    major: u64,
    path: ImagePath,
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let mapped = context.loader.agreed(|import| mapped(context, import));
    let sites = |mapped: &[MappedCuda]| -> Vec<Site> {
        let files = mapped.iter().filter_map(|library| context.rootfs.open(&library.path).ok());
        files.map(|(path, file)| file.site(&path, None)).collect()
    };
    facts.insert(
        key::CUDA_LOADED_MAJORS,
        mapped.clone().and_then(|mapped, _| {
            let majors: BTreeSet<_> = mapped.iter().filter_map(|library| i64::try_from(library.major).ok()).collect();
            let at = sites(&mapped);
            if majors.is_empty() { Fact::Absent } else { Fact::Seen { value: majors.into_iter().collect(), at } }
        }),
    );
    let foreign = mapped.and_then(|mapped, _| foreign(facts.get(key::TORCH_CUDA_VERSION), mapped));
    facts.insert(
        key::CUDA_OF_ANOTHER_MAJOR,
        foreign.and_then(|foreign, _| {
            let text = |library: &MappedCuda| format!("{} (CUDA {})", library.path, library.major);
            let value = foreign.iter().map(text).collect::<Vec<_>>();
            let at = sites(&foreign);
            if value.is_empty() { Fact::Absent } else { Fact::Seen { value, at } }
        }),
    );
}

/// The CUDA libraries of a process, once each; none if the import fails, which ends it.
fn mapped(context: &Context<'_>, import: &Import<'_>) -> Vec<MappedCuda> {
    if import.failure.is_some() {
        return Vec::new();
    }
    let libraries = import.objects().filter(|object| object.asked != Requester::Program);
    let libraries = libraries.filter_map(|object| {
        let name = object.elf.soname.as_deref().unwrap_or_default().as_bytes();
        let major = major(&object.path, name, context.packages.owners(&object.path))?;
        Some(MappedCuda { major, path: object.path.clone() })
    });
    libraries.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The libraries of another major version than torch's; all of them if torch's is unknown and they disagree.
fn foreign(torch: &Fact<Version>, mapped: Vec<MappedCuda>) -> Fact<Vec<MappedCuda>> {
    let is_mixed = mapped.iter().zip(mapped.iter().skip(1)).any(|(one, other)| one.major != other.major);
    match torch {
        Fact::Seen { value, .. } => {
            Fact::seen(mapped.into_iter().filter(|library| library.major != value.major()).collect(), [])
        }
        _ if is_mixed => Fact::seen(mapped, []),
        Fact::Unknown(gap) if !mapped.is_empty() => Fact::Unknown(gap.clone()),
        _ => Fact::seen(Vec::new(), []),
    }
}

/// The major version of CUDA that a library belongs to: its soname shows it, or the wheel or the directory that it is
/// from. `None` if it is no CUDA library, or if nothing shows it.
fn major(path: &ImagePath, soname: &[u8], owners: &[String]) -> Option<u64> {
    let number =
        |captures: regex::bytes::Captures<'_>| std::str::from_utf8(captures.get(1)?.as_bytes()).ok()?.parse().ok();
    let name = if soname.is_empty() { path.file_name() } else { soname };
    if let Some(captures) = NUMBERED.captures(name) {
        return number(captures);
    }
    if OTHERS.iter().any(|prefix| name.starts_with(prefix)) {
        return None;
    }
    // A file of several wheels may be that of either.
    match owners {
        [] => {}
        [owner] => {
            if let Some(captures) = WHEEL.captures(owner.as_bytes()) {
                return number(captures);
            }
        }
        _ => return None,
    }
    number(FOLDER.captures(path.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn soname_wheel_or_directory_shows_the_major_version() {
        let of = |path: &str, soname: &str, owners: &[&str]| {
            let owners: Vec<_> = owners.iter().map(ToString::to_string).collect();
            major(&path.into(), soname.as_bytes(), &owners)
        };
        let site = "opt/site-packages/nvidia";
        assert_eq!(of("x/libcudart-e409450e.so.11.0", "libcudart-e409450e.so.11.0", &[]), Some(11));
        assert_eq!(of(&format!("{site}/cu13/lib/libcublasLt.so.13"), "libcublasLt.so.13", &[]), Some(13));
        assert_eq!(of("x/libnvrtc.so.12", "", &[]), Some(12));
        // CUDA 12 and 13 have the same soname.
        let cusparse =
            |folder: &str, owners: &[&str]| of(&format!("{folder}/libcusparse.so.12"), "libcusparse.so.12", owners);
        assert_eq!(cusparse(&format!("{site}/cusparse/lib"), &["nvidia-cusparse-cu12 12.5.8.93 (wheel)"]), Some(12));
        assert_eq!(cusparse(&format!("{site}/cu13/lib"), &["nvidia-cusparse 12.6.3.3 (wheel)"]), Some(13));
        assert_eq!(cusparse("usr/local/cuda-12.8/targets/x86_64-linux/lib", &[]), Some(12));
        assert_eq!(cusparse("opt/conda/lib", &[]), None);
        let both = ["nvidia-cudnn-cu12 9.1 (wheel)", "nvidia-cudnn-cu13 9.2 (wheel)"];
        assert_eq!(of(&format!("{site}/cudnn/lib/libcudnn.so.9"), "libcudnn.so.9", &both), None);
        assert_eq!(of(&format!("{site}/cudnn/lib/libcudnn.so.9"), "libcudnn.so.9", &both[..1]), Some(12));
        let nccl = ["nvidia-nccl-cu12 2.27.5 (wheel)"];
        assert_eq!(of(&format!("{site}/nccl/lib/libnccl.so.2"), "libnccl.so.2", &nccl), None);
        assert_eq!(of("usr/lib/libz.so.1", "libz.so.1", &[]), None);
    }

    #[test]
    fn libraries_that_do_not_fit_torch_are_foreign() {
        let library = |major| MappedCuda { major, path: "x".into() };
        let of = |torch: &Fact<Version>, majors: &[u64]| {
            foreign(torch, majors.iter().map(|major| library(*major)).collect())
                .map(|found| found.iter().map(|one| one.major).collect::<Vec<_>>())
        };
        let torch = Fact::known(Version::parse("13.0").unwrap());
        assert_eq!(of(&torch, &[12, 13]).value(), Some(&vec![12]));
        assert_eq!(of(&torch, &[13, 13]).value(), Some(&vec![]));
        assert_eq!(of(&Fact::Absent, &[12, 13]).value(), Some(&vec![12, 13]));
        assert_eq!(of(&Fact::Absent, &[12, 12]).value(), Some(&vec![]));
        assert_eq!(of(&Fact::unknown("x"), &[12, 13]).value(), Some(&vec![12, 13]));
        assert!(matches!(of(&Fact::unknown("x"), &[12]), Fact::Unknown(_)));
        assert_eq!(of(&Fact::unknown("x"), &[]).value(), Some(&vec![]));
    }
}
