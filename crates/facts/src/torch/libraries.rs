//! The libraries of a torch package.

use model::{DynamicSymbol, ElfInfo, Fact, Gap, ImagePath, Site};
use rootfs::RootFile;
use rootfs::loader::elf;

use super::super::{Context, text};

/// A library of torch, with its ELF information.
#[derive(Clone, Debug)]
pub(crate) struct TorchLibrary<'a> {
    pub(crate) path: ImagePath,
    pub(crate) file: RootFile<'a>,
    pub(crate) elf: &'a ElfInfo,
}

impl TorchLibrary<'_> {
    pub(crate) fn site(&self, within: Option<&str>) -> Site {
        self.file.site(&self.path, within)
    }

    /// Returns true when a dynamic symbol matches, or why the symbols are unknown.
    fn symbols(&self, wanted: impl Fn(&DynamicSymbol) -> bool) -> Result<bool, Gap> {
        match &self.elf.symbols {
            Ok(symbols) => Ok(symbols.iter().any(wanted)),
            Err(gap) => Err(gap.clone()),
        }
    }
}

impl<'a> Context<'a> {
    /// The content of a file of the torch package, by its path in the package.
    pub(super) fn in_torch(&self, name: &str) -> Fact<&'a [u8]> {
        self.torch.chosen.clone().and_then(|package, _| text(self.rootfs, &package.join(name.as_bytes())))
    }

    /// The libraries of torch with these names, wherever the packaging puts them: a wheel in the package's `lib`,
    /// conda-forge in the environment's, Debian in the system's. Unknown if one of them could not be read.
    pub(crate) fn torch_libraries(&self, names: impl Fn(&[u8]) -> bool) -> Fact<Vec<TorchLibrary<'a>>> {
        let package = match &self.torch.chosen {
            Fact::Seen { value, .. } => value,
            Fact::Absent => return Fact::Absent,
            Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
        };
        let rootfs = self.rootfs;
        let environment = package.parent().parent().parent();
        let multiarch = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"].map(ImagePath::from);
        let folders = [package.join(b"lib"), environment].into_iter().chain(multiarch);
        for folder in folders {
            let mut libraries: Vec<TorchLibrary<'a>> = Vec::new();
            for name in rootfs.names(&folder).filter(|name| names(name)) {
                let Ok((path, file)) = rootfs.open(&folder.join(name)) else {
                    continue;
                };
                let Some(elf) = elf(&file) else {
                    let why = file.found.iter().find_map(|found| found.as_ref().err());
                    return Fact::Unknown(
                        why.cloned().unwrap_or_else(|| Gap::new(format!("{path} is not an ELF file"))),
                    );
                };
                if !libraries.iter().any(|known| known.file.is_same(&file)) {
                    libraries.push(TorchLibrary { path, file, elf });
                }
            }
            if !libraries.is_empty() {
                let at = libraries.iter().map(|library| library.site(None)).collect();
                return Fact::Seen { value: libraries, at };
            }
        }
        Fact::Absent
    }

    /// The libraries that may contain or use NCCL; release 1.13 has its CUDA code split in two.
    pub(crate) fn torch_cuda(&self) -> Fact<Vec<TorchLibrary<'a>>> {
        self.torch_libraries(|name| is_library(name, b"libtorch_cuda") || is_library(name, b"libtorch_cuda_cpp"))
    }
}

/// `name.so` or `name.so.VERSION`.
pub(super) fn is_library(file: &[u8], name: &[u8]) -> bool {
    file.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(b".so"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

/// Searches the symbols of several libraries: true if one matches, unknown if none does and one cannot be read.
pub(super) fn any_symbol(
    libraries: &[TorchLibrary<'_>],
    within: &str,
    wanted: impl Fn(&DynamicSymbol) -> bool,
) -> Fact<bool> {
    let mut gap = None;
    for library in libraries {
        match library.symbols(&wanted) {
            Ok(true) => return Fact::seen(true, [library.site(Some(within))]),
            Ok(false) => {}
            Err(unread) => gap = gap.or(Some(unread)),
        }
    }
    gap.map_or_else(|| Fact::seen(false, libraries.iter().map(|library| library.site(Some(within)))), Fact::Unknown)
}
