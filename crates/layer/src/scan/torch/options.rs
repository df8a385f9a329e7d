//! `caffe2::GetBuildOptions()` (`caffe2/core/common.cc`) returns a map that its first call fills from literals: those
//! of `CAFFE2_BUILD_STRINGS` in `macros.h`, which most builds do not ship. The compiler scatters them over the
//! function: it stores short ones to the stack as numbers, and copies long ones. So the function is emulated.

use std::io;

use model::{BoundsError, BuildOptions, Entry, Found, Gap, Limits};

use super::super::extract::{Collect, Extractor};
use super::super::spool::{Spool, Spooled};
use emulate::{ElfImage, EmulationError, ReadAt, Returned, StringAbi, call};

pub(in super::super) const BUILD_OPTIONS: Extractor = Extractor {
    name: "build options",
    wants: |entry, head| head.starts_with(b"\x7fELF") && is_libtorch(entry.path.file_name()),
    start: |entry, limits| Box::new(OptionsCollector::new(entry, limits)),
};

/// `libtorch_cpu.so` has the function since PyTorch 1.4, before that `libtorch.so`. Debian's file name has a version.
fn is_libtorch(name: &[u8]) -> bool {
    [&b"libtorch_cpu.so"[..], b"libtorch.so"]
        .iter()
        .any(|library| name.strip_prefix(*library).is_some_and(|rest| rest.is_empty() || rest.starts_with(b".")))
}

/// The function's mangled names, which show the ABI of its strings.
const NAMES: &[(&str, StringAbi)] =
    &[("_ZN6caffe215GetBuildOptionsB5cxx11Ev", StringAbi::Cxx11), ("_ZN6caffe215GetBuildOptionsEv", StringAbi::Old)];

/// A part of the literal of one option, `CXX_FLAGS`: PyTorch's `CMakeLists.txt` sets it in every build.
const WORDS: &[u8] = b"-fvisibility-inlines-hidden";

impl ReadAt for Spooled {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        Self::read_at(self, offset, buffer)
    }
}

struct OptionsCollector {
    path: String,
    spool: Spool,
}

impl OptionsCollector {
    fn new(entry: &Entry, limits: &Limits) -> Self {
        let path = entry.path.to_string();
        Self { spool: Spool::new(path.clone(), entry.size, limits), path }
    }
}

impl Collect for OptionsCollector {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.spool.push(offset, bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let file = self.spool.finish()?;
        let found = build_options(&file).map_err(|why| Gap::new(format!("{}: {why}", self.path)));
        Ok(file.vouch(found)??.map(Found::BuildOptions))
    }
}

/// The result of the function in this library; `None` if the library does not have it.
pub(in super::super) fn build_options(file: &dyn ReadAt) -> Result<Option<BuildOptions>, String> {
    let image = ElfImage::open(file).map_err(|error| error.to_string())?;
    for (name, abi) in NAMES {
        if let Some(entry) = image.function(name).map_err(|error| error.to_string())? {
            let mut returned = run(&image, entry)?;
            return options(&mut returned, entry, *abi).map(Some);
        }
    }
    nameless(&image)
}

/// Emulates the function.
fn run<'a>(image: &'a ElfImage<'a>, entry: u64) -> Result<Returned<'a>, String> {
    call(image, entry).map_err(|EmulationError { address, cause }| {
        format!("caffe2::GetBuildOptions() cannot be emulated beyond {address:#x}: {cause}")
    })
}

/// The returned map.
fn options(returned: &mut Returned<'_>, entry: u64, abi: StringAbi) -> Result<BuildOptions, String> {
    let options = returned.map(abi).map_err(|why| format!("caffe2::GetBuildOptions() at {entry:#x}: {why}"))?;
    Ok(BuildOptions { options, cxx11_abi: abi == StringAbi::Cxx11 })
}

/// Finds the function in a library without symbols: it is the one that puts these flags into such a map.
fn nameless(image: &ElfImage<'_>) -> Result<Option<BuildOptions>, String> {
    let mut lost = None;
    for entry in image.functions_that_refer_to(WORDS).map_err(|error| error.to_string())? {
        let mut returned = run(image, entry);
        for (_, abi) in NAMES {
            match returned.as_mut().map_err(|why| why.clone()).and_then(|returned| options(returned, entry, *abi)) {
                Ok(found) if found.options.contains_key("CXX_FLAGS") => return Ok(Some(found)),
                Ok(_) => {}
                Err(why) => lost = lost.or(Some(format!("no symbol names the function; the candidate fails: {why}"))),
            }
        }
    }
    lost.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    fn fixtures() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/elf/build-options"))
    }

    /// The options that the libraries printed when they were built and run.
    fn expected() -> Vec<(String, String)> {
        let text = fs::read_to_string(fixtures().join("build_options.txt")).unwrap();
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.lines().filter_map(pair).collect()
    }

    #[test]
    fn the_code_of_every_compiler_is_emulated() {
        let mut seen = 0;
        for entry in fs::read_dir(fixtures()).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            if path.extension().is_none_or(|extension| extension != "so") {
                continue;
            }
            let bytes = fs::read(&path).unwrap();
            let found = build_options(&&*bytes).unwrap_or_else(|why| panic!("{name}: {why}")).unwrap();
            assert_eq!(found.options.into_iter().collect::<Vec<_>>(), expected(), "{name}");
            assert_eq!(found.cxx11_abi, name.contains("cxx11"), "{name}");
            seen += 1;
        }
        assert!(seen >= 11, "{seen} libraries");
    }

    #[test]
    fn a_function_without_a_symbol_is_found_by_its_literals() {
        for entry in fs::read_dir(fixtures()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "so") {
                continue;
            }
            let mut bytes = fs::read(&path).unwrap();
            erase(&mut bytes, b"GetBuildOptions");
            let found = build_options(&&*bytes).unwrap_or_else(|why| panic!("{}: {why}", path.display())).unwrap();
            assert_eq!(found.options.into_iter().collect::<Vec<_>>(), expected(), "{}", path.display());
        }
    }

    fn erase(bytes: &mut [u8], word: &[u8]) {
        while let Some(at) = memchr::memmem::find(bytes, word) {
            bytes[at..at + word.len()].make_ascii_uppercase();
        }
    }

    #[test]
    fn a_library_without_the_function_has_no_options() {
        let mut bytes = fs::read(fixtures().join("cxx11-O2.so")).unwrap();
        erase(&mut bytes, b"GetBuildOptions");
        erase(&mut bytes, b"-fvisibility-inlines-hidden");
        assert_eq!(build_options(&&*bytes), Ok(None));
    }

    #[test]
    fn damage_is_reported_with_its_address_or_is_irrelevant_and_never_panics() {
        let bytes = fs::read(fixtures().join("cxx11-O2.so")).unwrap();
        for length in (0..bytes.len()).step_by(97) {
            let _ = build_options(&&bytes[..length]);
        }
        let mut random = fastrand::Rng::with_seed(1);
        let mut lost = 0;
        for _ in 0..500 {
            let mut damaged = bytes.clone();
            for _ in 0..4 {
                let at = random.usize(..damaged.len());
                damaged[at] = random.u8(..);
            }
            lost +=
                usize::from(build_options(&&*damaged).is_err_and(|why| why.contains("cannot be emulated beyond 0x")));
        }
        assert!(lost > 20, "{lost}");
    }
}
