//! Forward compatibility: newer user-space driver libraries that an image ships for older kernel drivers (CUDA
//! Compatibility, "Forward Compatibility").

use model::{CompatNote, Fact, Found, ImagePath};
use rootfs::loader::Route;

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
    facts.insert(key::CUDA_LIBCUDA, libcuda(context));
}

/// The libcuda that the loader finds for torch before the host's, which is in a default directory.
fn libcuda(context: &Context<'_>) -> Fact<ImagePath> {
    context.torch_cuda().and_then(|libraries, _| {
        let Some(library) = libraries.first() else { return Fact::Absent };
        match context.loader.find("libcuda.so.1", &library.path, library.elf) {
            Err(gap) => Fact::Unknown(gap),
            Ok(Some(bound)) if !matches!(bound.route, Route::Cache | Route::Default(_)) => {
                context.rootfs.open(&bound.path).map_or(Fact::Absent, |(real, file)| {
                    let site = file.site(&real, Some(&bound.route.to_string()));
                    Fact::seen(real, [site])
                })
            }
            Ok(_) => Fact::Absent,
        }
    })
}
