//! CPU levels, which select one of several builds of a library (glibc 2.33, `sysdeps/x86_64/dl-hwcaps_subdirs.c`;
//! x86-64 psABI, "Micro-Architecture Levels").

use std::fmt;

/// A level of x86-64. CPUs below the third level lack AVX2; hosts of training GPUs have had it since 2013, so lower
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
