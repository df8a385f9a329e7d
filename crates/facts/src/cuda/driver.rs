//! Driver libraries that do not belong in an image.

use model::{Fact, ImagePath};
use rootfs::loader::elf;

use super::super::packages::is_stored;
use super::super::{Context, Facts, key};

/// Libraries that NVIDIA's container runtime mounts from the host.
const OF_THE_DRIVER: [&str; 3] = ["libcuda.so", "libnvidia-ml.so", "libnvidia-ptxjitcompiler.so"];

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let libraries = context.rootfs.read_files().filter(|(path, file)| {
        let name = String::from_utf8_lossy(path.file_name());
        OF_THE_DRIVER.iter().any(|prefix| name.starts_with(prefix))
            && !is_meant(path)
            && !is_stored(context.rootfs, path)
            && elf(file).is_some()
    });
    let (paths, at): (Vec<_>, Vec<_>) = libraries.map(|(path, file)| (path.to_string(), file.site(path, None))).unzip();
    facts.insert(
        key::CUDA_DRIVER_LIBRARIES,
        if paths.is_empty() { Fact::Absent } else { Fact::Seen { value: paths, at } },
    );
}

/// Returns true for link-time stubs and forward-compatibility libraries.
fn is_meant(path: &ImagePath) -> bool {
    path.components().any(|part| part == b"stubs" || part.ends_with(b"compat"))
}
