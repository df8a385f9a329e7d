//! Facts about an image, from its merged file system and its configuration. Each module answers for one area; what it may
//! answer, and in which type, is the contract of [`key`].

mod cuda;
mod environment;
pub mod explain;
mod host;
mod image;
pub mod key;
mod linker;
mod nccl;
mod packages;
mod python;
mod rdma;
mod torch;

pub use image::is_shown;

use std::collections::BTreeMap;

use crate::launch::Setting;
use crate::model::{Fact, Gap, ImageConfig, ImagePath, Value};
use crate::rootfs::RootFs;

use key::Key;

/// The build options in the text of PyTorch's `macros.h`. Here for fuzzing: otherwise it is a part of the facts.
#[doc(hidden)]
pub fn header_options(header: &[u8]) -> Result<BTreeMap<String, String>, String> {
    torch::header_options(header)
}

/// All that facts are made from.
#[derive(Debug)]
pub struct World<'a> {
    /// The merged file system.
    pub rootfs: &'a RootFs,
    /// The image's configuration; `None` for an unpacked root file system, which has none.
    pub config: Option<&'a ImageConfig>,
    /// Variables that the job sets, in the order of their files; the configuration already has those whose value is known.
    pub launch: &'a [Setting],
}

/// The answers, by the name of the question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts(BTreeMap<&'static str, Fact>);

impl Facts {
    /// Answers every question of [`key::KEYS`] about an image. What only a run of it tells is absent.
    pub fn collect(world: &World<'_>) -> Self {
        let mut facts = Self::default();
        let context = Context::new(world);
        for produce in [
            image::produce,
            python::produce,
            torch::produce,
            nccl::produce,
            environment::produce,
            nccl::produce_plugins,
            cuda::produce,
            rdma::produce,
        ] {
            produce(&context, &mut facts);
        }
        host::produce(&mut facts);
        for key in key::KEYS.iter().filter(|key| !key.is_of_run()) {
            facts
                .0
                .entry(key.name)
                .or_insert_with(|| Fact::Unknown(Gap::new("nobody answered: this is a defect of ncclcheck")));
        }
        facts
    }

    /// The answer to one question. One that nobody asked is absent.
    pub fn get(&self, name: &str) -> &Fact {
        self.0.get(name).unwrap_or(&Fact::Absent)
    }

    /// All answers, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Fact)> {
        self.0.iter().map(|(name, fact)| (*name, fact))
    }

    /// Writes down an answer.
    pub fn insert<T: Into<Value>>(&mut self, key: &'static Key, fact: Fact<T>) {
        let fact = fact.map(Into::into);
        debug_assert!(fact.value().is_none_or(|value| key.kind.admits(value)), "{} is not a {:?}", key.name, key.kind);
        self.0.insert(key.name, fact);
    }
}

/// What several areas need, worked out once.
struct Context<'a> {
    rootfs: &'a RootFs,
    config: Option<&'a ImageConfig>,
    launch: &'a [Setting],
    loader: linker::Linker<'a>,
    packages: packages::Packages,
    python: Option<python::Python>,
    torch: torch::Installation,
}

impl<'a> Context<'a> {
    fn new(world: &World<'a>) -> Self {
        let rootfs = world.rootfs;
        let python = python::Python::find(rootfs, world.config);
        let torch = torch::Installation::find(rootfs, python.as_ref());
        Self {
            rootfs,
            config: world.config,
            launch: world.launch,
            loader: linker::Linker::new(rootfs, world.config, python.as_ref(), &torch),
            packages: packages::Packages::read(rootfs),
            torch,
            python,
        }
    }
}

impl Context<'_> {
    /// The gap that is left when the loader finds nothing, and torch may: on a failure `torch/__init__.py` loads the
    /// libraries of NVIDIA's wheels by path from wherever Python imports (`_preload_cuda_deps`), differently in each release.
    fn preloaded(&self, wheel: &[u8], soname: &str) -> Option<Gap> {
        let copies = self
            .python
            .iter()
            .flat_map(|python| &python.site_packages)
            .map(|folder| folder.join(b"nvidia").join(wheel).join(b"lib").join(soname.as_bytes()));
        let copy = copies.into_iter().find(|path| self.rootfs.open(path).is_ok())?;
        Some(Gap::new(format!(
            "the loader does not find {soname}; torch may preload {copy} by itself, which some releases do"
        )))
    }
}

/// The text of a file that extractors read whole: absent when the path leads to no file, unknown when it was not read.
fn text<'a>(rootfs: &'a RootFs, path: &ImagePath) -> Fact<&'a [u8]> {
    use crate::model::Found;
    let Ok((real, file)) = rootfs.open(path) else {
        return Fact::Absent;
    };
    for found in file.found {
        match found {
            Ok(Found::Text(bytes)) => return Fact::seen(&**bytes, [file.site(&real, None)]),
            Ok(_) => {}
            Err(gap) => return Fact::Unknown(gap.clone()),
        }
    }
    if file.size == 0 {
        return Fact::seen(&[][..], [file.site(&real, None)]);
    }
    // A link under a name that is wanted may lead to a file whose own name is not.
    Fact::Unknown(Gap::new(format!("{path} leads to {real}, whose content was not read")))
}

/// A constant pattern.
macro_rules! pattern {
    ($visible:vis $name:ident, $text:literal) => {
        $visible static $name: std::sync::LazyLock<regex::bytes::Regex> =
            std::sync::LazyLock::new(|| regex::bytes::Regex::new($text).expect("a valid pattern"));
    };
}
use pattern;

#[cfg(test)]
mod tests;
