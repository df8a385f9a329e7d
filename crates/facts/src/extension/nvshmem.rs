//! NVSHMEM: device code, which is part of the library that uses it, and the host library of the process.

use model::{Found, ImagePath, Version};
use rootfs::RootFile;
use rootfs::loader::{LoadedObject, Process};

use super::super::Context;

/// The beginning of the host library's name.
const HOST: &str = "libnvshmem_host.so";

/// The first release with another layout of the queue pairs that DeepEP's kernels read
/// (<https://github.com/deepseek-ai/DeepEP/pull/696>).
const OTHER_QUEUES: &str = "3.5.19";

/// A library whose device code does not fit the host library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NvshmemMismatch {
    pub(super) path: ImagePath,
    device: String,
    host: String,
    /// The host library, and the rule by which the loader finds it.
    library: String,
}

impl NvshmemMismatch {
    /// The mismatch, behind the name of the package.
    pub(super) fn text(&self) -> String {
        let Self { path, device, host, library } = self;
        format!("{path} has the device code of NVSHMEM {device}, and the host library is {host}: {library}")
    }

    /// A host library of the image that fits.
    pub(super) fn fitting(&self, context: &Context<'_>) -> Option<ImagePath> {
        let mut files = context.rootfs.read_files();
        let fits = |file: &RootFile<'_>| version(file).is_some_and(|version| version == self.device);
        files
            .find(|(path, file)| path.file_name().starts_with(HOST.as_bytes()) && fits(file))
            .map(|(path, _)| path.clone())
    }
}

/// The mismatches of the objects of a process from `first` on.
pub(super) fn mismatches(process: &Process<'_>, first: usize) -> Vec<NvshmemMismatch> {
    let is_host = |object: &&LoadedObject<'_>| object.elf.soname.as_deref().is_some_and(|name| name.starts_with(HOST));
    let of = |object: &LoadedObject<'_>| Some((object.path.clone(), version(object.file.as_ref()?)?.to_owned()));
    let host = process.objects().iter().find(is_host);
    let Some((host, (library, loaded))) = host.and_then(|host| Some((host, of(host)?))) else { return Vec::new() };
    let users = process.objects().iter().skip(first).filter(|object| !is_host(object)).filter_map(of);
    let unfit = users.filter(|(path, device)| !fit(path, device, &loaded));
    unfit
        .map(|(path, device)| NvshmemMismatch {
            path,
            device,
            host: loaded.clone(),
            library: format!("{library} ({})", host.route),
        })
        .collect()
}

/// Returns true if NVSHMEM accepts the host library for this device code (`nvshmemi_is_version_compatible`), and what reads
/// its queue pairs finds them.
fn fit(path: &ImagePath, device: &str, host: &str) -> bool {
    let numbers = |version: &str| -> Vec<u32> { version.split('.').filter_map(|part| part.parse().ok()).collect() };
    let device_numbers = numbers(device);
    let host_numbers = numbers(host);
    let is_accepted = device_numbers.first() == host_numbers.first() && device_numbers.get(1) <= host_numbers.get(1);
    let has_other_queues = |version: &str| Version::parse(version) >= Version::parse(OTHER_QUEUES);
    let reads_queues = path.file_name().starts_with(b"deep_ep");
    is_accepted && !(reads_queues && has_other_queues(device) != has_other_queues(host))
}

fn version<'a>(file: &RootFile<'a>) -> Option<&'a str> {
    file.found.iter().find_map(|found| match found {
        Ok(Found::Nvshmem(version)) => Some(version.as_str()),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_library_fits_device_code_that_is_not_newer() {
        for (name, device, host, fits) in [
            ("libx.so", "3.4.5", "3.4.5", true),
            ("libx.so", "3.4.5", "3.6.5", true),
            ("libx.so", "3.4.9", "3.4.5", true),
            ("libx.so", "3.6.5", "3.4.5", false),
            ("libx.so", "2.11.0", "3.4.5", false),
            ("deep_ep_cpp.so", "3.4.5", "3.6.5", false),
            ("deep_ep_cpp.so", "3.6.5", "3.7.2", true),
            ("deep_ep_cpp.so", "3.3.9", "3.4.5", true),
        ] {
            assert_eq!(fit(&name.into(), device, host), fits, "{name}: {device} with {host}");
        }
    }
}
