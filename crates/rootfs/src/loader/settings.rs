//! How the loader of a process and a library are opened.

use std::fmt;

use crate::Credentials;
use model::ImagePath;

/// Loader settings from the environment of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoaderSettings {
    /// `LD_LIBRARY_PATH`.
    pub library_path: Option<String>,
    /// `LD_PRELOAD`.
    pub preload: Option<String>,
    /// `LD_BIND_NOW`, if it is not empty: all functions are bound when their file is loaded.
    pub bind_now: bool,
    /// The value of an empty search path element; `None` if unknown.
    pub working_directory: Option<ImagePath>,
    /// The user and groups of the process; without them no permission is checked.
    pub credentials: Option<Credentials>,
    /// True if ldconfig runs as the container starts, as NVIDIA's runtime does it.
    pub runs_ldconfig: bool,
}

/// Flags of dlopen(3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DlopenMode {
    /// `RTLD_GLOBAL`: objects that are opened later find the symbols too.
    pub is_global: bool,
    /// `RTLD_LAZY`: functions are bound when they are first called.
    pub is_lazy: bool,
}

impl DlopenMode {
    /// `RTLD_NOW | RTLD_LOCAL`, as Python opens extension modules and NCCL its plugins.
    pub const NOW: Self = Self { is_global: false, is_lazy: false };
    /// `RTLD_NOW | RTLD_GLOBAL`.
    pub const GLOBAL: Self = Self { is_global: true, ..Self::NOW };
    /// `RTLD_LAZY | RTLD_LOCAL`.
    pub const LAZY: Self = Self { is_lazy: true, ..Self::NOW };
}

/// A level of x86-64, which selects one of several builds of a library (glibc 2.33, `sysdeps/x86_64/dl-hwcaps_subdirs.c`;
/// x86-64 psABI, "Micro-Architecture Levels"). CPUs below the third level lack AVX2; hosts of training GPUs have had it since 2013, so lower
/// levels are not considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CpuLevel {
    /// x86-64-v3: with AVX2.
    V3,
    /// x86-64-v4: with AVX-512.
    V4,
}

impl CpuLevel {
    /// All levels.
    pub const ALL: [Self; 2] = [Self::V3, Self::V4];

    /// Directories below `glibc-hwcaps` that a processor of this level uses, best first.
    pub const fn folders(self) -> &'static [&'static str] {
        match self {
            Self::V3 => &["x86-64-v3", "x86-64-v2"],
            Self::V4 => &["x86-64-v4", "x86-64-v3", "x86-64-v2"],
        }
    }
}

impl fmt::Display for CpuLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V3 => "x86-64-v3",
            Self::V4 => "x86-64-v4",
        })
    }
}
