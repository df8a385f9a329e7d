//! Libraries of the driver, which the container runtime mounts into every container with GPUs, so an image need not
//! contain them (nvidia-container-toolkit, `libnvidia-container`, `src/nvc_info.c`).

use model::ElfInfo;

/// Beginning of a library's soname, and of the symbols that it defines. Empty if any symbol may come from it.
const LIBRARIES: &[(&str, &str)] = &[
    ("libcuda.so", "cu"),
    ("libcudadebugger.so", ""),
    ("libnvcuvid.so", "cuvid"),
    ("libnvoptix.so", "optix"),
    ("libnvidia-ml.so", "nvml"),
    ("libnvidia-encode.so", "NvEnc"),
    ("libnvidia-", ""),
];

/// Returns true for a library of the driver.
pub(super) fn owns(soname: &[u8]) -> bool {
    symbols(soname).is_some()
}

/// Returns true if an object is or needs a library of the driver that may define this symbol.
pub(super) fn gives(object: &ElfInfo, symbol: &[u8]) -> bool {
    let names = object.needed.iter().chain(&object.soname);
    names.filter_map(|name| symbols(name.as_bytes())).any(|prefix| symbol.starts_with(prefix.as_bytes()))
}

fn symbols(soname: &[u8]) -> Option<&'static str> {
    LIBRARIES.iter().find(|(library, _)| soname.starts_with(library.as_bytes())).map(|(_, symbols)| *symbols)
}
