//! The NCCL that CuPy opens by its path, whatever the loader would find: since 13.5.1, that of NVIDIA's wheel for the CUDA
//! that CuPy is built for (`_get_nccl_from_wheel` in `cupy/_environment.py` of CuPy's wheels).

use crate::pattern;
use model::{ImagePath, Version};
use rootfs::RootFs;

/// The first release that opens the wheel's copy.
const SINCE: &str = "13.5.1";
/// The oldest NCCL that it opens (`min_pypi_version` in `cupy/.data/_wheel.json`).
const OLDEST_NCCL: &str = "2.16.5";

// The binary distribution format names these folders NAME-VERSION.dist-info, with `_` for `-`.
pattern!(CUPY, r"^cupy_cuda(\d+)x-([^-]+)\.dist-info$");
pattern!(NCCL, r"^nvidia_nccl_cu(\d+)-([^-]+)\.dist-info$");

/// The library that CuPy opens before it imports a module; `None` where the module is not CuPy's or the loader decides.
/// `folders` are those of packages, in the order of `sys.path`.
pub(super) fn opened(rootfs: &RootFs, module: &ImagePath, folders: &[ImagePath]) -> Option<ImagePath> {
    let own = folders.iter().find(|folder| module.starts_with(&folder.join(b"cupy_backends")))?;
    let installed = |folder: &ImagePath, pattern: &regex::bytes::Regex| {
        rootfs.names(folder).find_map(|name| {
            let parts = pattern.captures(name)?;
            let text = |part: usize| parts.get(part).map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
            Some((text(1)?, Version::parse(&text(2)?)?))
        })
    };
    let (cuda, cupy) = installed(own, &CUPY)?;
    let is_at_least = |version: &Version, bound: &str| Version::parse(bound).is_some_and(|bound| *version >= bound);
    if !is_at_least(&cupy, SINCE) {
        return None;
    }
    // As importlib.metadata does, the first folder that has the distribution.
    let wheels = folders.iter().filter_map(|folder| Some((folder, installed(folder, &NCCL)?)));
    let (folder, (_, nccl)) = { wheels }.find(|(_, (of, _))| *of == cuda)?;
    let path = folder.join(b"nvidia/nccl/lib/libnccl.so.2");
    (is_at_least(&nccl, OLDEST_NCCL) && rootfs.open(&path).is_ok()).then_some(path)
}
