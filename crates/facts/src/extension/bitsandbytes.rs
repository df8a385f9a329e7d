//! The library that bitsandbytes opens: its name has the release of CUDA that torch is built for (`bitsandbytes/cextension.py`).

use model::{ImagePath, Version};

use super::super::Context;
use super::super::python::{Importable, Python};
use super::owner;

/// The first release that takes another library of the same major release of CUDA in place of one that it lacks.
const CHOOSES: (u32, u32) = (0, 50);

/// What `import bitsandbytes` opens on a host with a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum BitsandbytesLibrary {
    There(ImagePath),
    /// The package does not have it, and its functions for GPUs fail; with the value of the variable that asks for it.
    Missing(ImagePath, Option<String>),
}

impl BitsandbytesLibrary {
    /// The library for this release of CUDA; `None` where the package is not installed or the name is not known.
    pub(super) fn of(context: &Context<'_>, python: &Python, cuda: &Version) -> Option<Self> {
        let rootfs = context.rootfs;
        let Some(Importable::Package(folder, init)) = python.import(rootfs, "bitsandbytes").ok()?.found else {
            return None;
        };
        let own = python.changed.values.get("BNB_CUDA_VERSION").map(|(value, _)| value.clone());
        let given = python.call.state.variables.get("BNB_CUDA_VERSION").cloned().map(|value| value.map(Some));
        let chosen = own.or(given).transpose().ok()?.flatten().filter(|value| !value.is_empty());
        let mut numbers = cuda.as_str().split('.').map_while(|number| number.parse::<u32>().ok());
        let major = numbers.next()?;
        let minor = numbers.next()?;
        let path = |release: &str| folder.join(format!("libbitsandbytes_cuda{release}.so").as_bytes());
        let exact = path(chosen.as_deref().unwrap_or(&format!("{major}{minor}")));
        if rootfs.open(&exact).is_ok() {
            return Some(Self::There(exact));
        }
        let package = owner::package(context, &init)?;
        let mut release = package.rsplit(' ').next()?.split('.').map(str::parse);
        let release: (u32, u32) = (release.next()?.ok()?, release.next()?.ok()?);
        if chosen.is_some() || release < CHOOSES {
            return Some(Self::Missing(exact, chosen));
        }
        let has = |minor: &u32| rootfs.open(&path(&format!("{major}{minor}"))).is_ok();
        let other = (0..minor).rev().find(has).or_else(|| (minor..=20).find(has));
        Some(other.map_or(Self::Missing(exact, None), |minor| Self::There(path(&format!("{major}{minor}")))))
    }
}
