//! Forward compatibility: newer user-space driver libraries that an image ships for older kernel drivers (CUDA
//! Compatibility, "Forward Compatibility").

use model::{CompatNote, Fact, Found, ImagePath};
use rootfs::loader::{ConfiguredDirectory, Route, configured_directories};

use super::super::records::CompatPackage;
use super::super::{Context, Facts, key};

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let mut packages = Vec::new();
    let mut at = Vec::new();
    for (path, file) in context.rootfs.files_named(|name| name.starts_with(b"libcuda.so.")) {
        let name = String::from_utf8_lossy(path.file_name()).into_owned();
        let Some(driver) = name.strip_prefix("libcuda.so.").filter(|driver| driver.contains('.')) else { continue };
        let note = file.found.iter().find_map(|found| match found {
            Ok(Found::Compat(note)) => Some(note),
            _ => None,
        });
        let in_folder = path.components().any(|part| part.ends_with(b"compat"));
        if note.is_none() && !in_folder {
            continue;
        }
        let branches = |note: &CompatNote| note.branches.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        packages.push(CompatPackage {
            path: Some(path.to_string()),
            driver: Some(driver.to_owned()),
            cuda: note.map(|note| note.cuda.clone()),
            branches: note.map(branches),
        });
        at.push(file.site(&path, None));
    }
    facts.insert(key::CUDA_COMPAT, if packages.is_empty() { Fact::Absent } else { Fact::Seen { value: packages, at } });
    let bound = bound(context);
    let configured = if matches!(bound, Fact::Absent) { configured(context) } else { Fact::Absent };
    facts.insert(key::CUDA_LIBCUDA_FOLDER, configured.clone().map(|(_, directory)| directory.path));
    facts.insert(
        key::CUDA_LIBCUDA_FILE,
        configured.clone().and_then(|(_, directory), _| {
            let site = context.rootfs.open(&directory.file).ok().map(|(path, file)| file.site(&path, None));
            Fact::seen(directory.file, site)
        }),
    );
    facts.insert(key::CUDA_LIBCUDA, bound.or_else(|| configured.map(|(library, _)| library)));
}

/// Directories in which engines put the host's libcuda, so that ldconfig finds it there when they run it in the container.
const OF_DRIVER: [&str; 3] = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64"];

/// The libcuda that ldconfig finds in the image before it comes to the host's, and its directory.
///
/// NVIDIA's runtime runs ldconfig when a container starts. Directories that `/etc/ld.so.conf` does not name come last.
fn configured(context: &Context<'_>) -> Fact<(ImagePath, ConfiguredDirectory)> {
    if context.torch_cuda().value().is_none_or(Vec::is_empty) {
        return Fact::Absent;
    }
    let directories = match configured_directories(context.rootfs) {
        Ok(directories) => directories,
        Err(gap) => return Fact::Unknown(gap),
    };
    let real = |path: &ImagePath| context.rootfs.real_directory(path).unwrap_or_else(|| path.clone());
    let is_of_driver = |path: &ImagePath| OF_DRIVER.map(ImagePath::from).iter().any(|own| real(path) == real(own));
    let before = directories.into_iter().take_while(|directory| !is_of_driver(&directory.path));
    let mut found = before.filter_map(|directory| {
        let (library, file) = context.rootfs.open(&directory.path.join(b"libcuda.so.1")).ok()?;
        let site = file.site(&library, None);
        Some(Fact::seen((library, directory), [site]))
    });
    found.next().unwrap_or(Fact::Absent)
}

/// The libcuda that variables or search paths give torch before the host's, which is in the cache or in a default directory.
fn bound(context: &Context<'_>) -> Fact<ImagePath> {
    context.torch_cuda().and_then(|libraries, _| {
        let Some(library) = libraries.first() else { return Fact::Absent };
        match context.loader.find("libcuda.so.1", &library.path, library.elf) {
            Err(gap) => Fact::Unknown(gap),
            Ok(Some(bound)) if !matches!(bound.route, Route::Cache | Route::Configured(_) | Route::Default(_)) => {
                context.rootfs.open(&bound.path).map_or(Fact::Absent, |(real, file)| {
                    let site = file.site(&real, Some(&bound.route.to_string()));
                    Fact::seen(real, [site])
                })
            }
            Ok(_) => Fact::Absent,
        }
    })
}
