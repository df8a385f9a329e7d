//! Architectures of GPU code.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A GPU architecture as the CUDA toolkit numbers it: ten times the major plus the minor number of the compute
/// capability, and a suffix (CUDA Programming Guide, "Compute Capabilities"). Architectures are ordered by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "(u32, Variant)", into = "(u32, Variant)")]
pub struct Arch {
    number: u16,
    variant: Variant,
}

/// Feature set of code for an architecture, which determines the GPUs that it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Variant {
    /// Without suffix: only features that later architectures also have.
    Plain,
    /// Suffix `a`: architecture-specific features.
    Specific,
    /// Suffix `f`: family-specific features, which later architectures of the same major number also have.
    Family,
}

impl Arch {
    /// Creates an architecture from its number; `None` if the number is out of range.
    pub fn new(number: u32, variant: Variant) -> Option<Self> {
        let number = u16::try_from(number).ok().filter(|number| (10..1000).contains(number))?;
        Some(Self { number, variant })
    }

    /// Returns true without a suffix. GPUs never have one, code may.
    pub const fn is_plain(self) -> bool {
        matches!(self.variant, Variant::Plain)
    }

    /// Returns the compute capability, major and minor.
    pub const fn capability(self) -> (u16, u16) {
        (self.number / 10, self.number % 10)
    }

    /// Returns true if machine code for this architecture runs on `gpu`: the major numbers are equal, and the minor
    /// number of `gpu` is not smaller. Architecture-specific code requires an equal minor number too.
    pub fn runs_on(self, gpu: Self) -> bool {
        match self.variant {
            Variant::Specific => self.number == gpu.number,
            Variant::Plain | Variant::Family => self.number / 10 == gpu.number / 10 && self.number <= gpu.number,
        }
    }

    /// Returns true if the driver can compile PTX of this architecture for `gpu`. Plain PTX compiles for every later
    /// architecture.
    pub fn compiles_for(self, gpu: Self) -> bool {
        match self.variant {
            Variant::Plain => self.number <= gpu.number,
            Variant::Specific | Variant::Family => self.runs_on(gpu),
        }
    }
}

impl From<Arch> for (u32, Variant) {
    fn from(arch: Arch) -> Self {
        (arch.number.into(), arch.variant)
    }
}

impl TryFrom<(u32, Variant)> for Arch {
    type Error = String;

    fn try_from((number, variant): (u32, Variant)) -> Result<Self, String> {
        Self::new(number, variant).ok_or_else(|| invalid_arch(&number.to_string()))
    }
}

/// Writes the number and suffix without `sm_` or `compute_`: `90a`.
impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.variant {
            Variant::Plain => "",
            Variant::Specific => "a",
            Variant::Family => "f",
        };
        write!(f, "{}{suffix}", self.number)
    }
}

/// Parses `sm_90a`.
impl FromStr for Arch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let arch = text.strip_prefix("sm_").and_then(|name| {
            let (number, variant) = match name.as_bytes().last()? {
                b'a' => (name.strip_suffix('a')?, Variant::Specific),
                b'f' => (name.strip_suffix('f')?, Variant::Family),
                _ => (name, Variant::Plain),
            };
            Self::new(number.parse().ok()?, variant)
        });
        arch.ok_or_else(|| invalid_arch(text))
    }
}

fn invalid_arch(text: &str) -> String {
    format!("invalid GPU architecture '{text}': expected one such as sm_90 or sm_90a")
}

/// GPU code in one file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GpuCode {
    /// Architectures with machine code (cubins).
    pub cubin: BTreeSet<Arch>,
    /// Architectures with PTX, each with the newest version of the PTX language in use. The driver compiles only
    /// versions that it supports (PTX ISA, "Release Notes").
    pub ptx: BTreeMap<Arch, PtxVersion>,
}

impl GpuCode {
    /// Adds PTX of one architecture.
    pub fn add_ptx(&mut self, arch: Arch, version: PtxVersion) {
        let newest = self.ptx.entry(arch).or_insert(version);
        *newest = version.max(*newest);
    }

    /// Adds all code of `other`.
    pub fn add(&mut self, other: &Self) {
        self.cubin.extend(&other.cubin);
        for (arch, version) in &other.ptx {
            self.add_ptx(*arch, *version);
        }
    }
}

/// Version of the PTX language, major and minor.
pub type PtxVersion = (u16, u16);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_runs_and_compiles_for_compatible_gpus() {
        let arch = |text: &str| text.parse::<Arch>().unwrap();
        for (code, gpu, runs, compiles) in [
            ("sm_80", "sm_80", true, true),
            ("sm_80", "sm_86", true, true),
            ("sm_86", "sm_80", false, false),
            ("sm_80", "sm_90", false, true),
            ("sm_90a", "sm_90", true, true),
            ("sm_90a", "sm_100", false, false),
            ("sm_100a", "sm_103", false, false),
            ("sm_100f", "sm_103", true, true),
            ("sm_103f", "sm_100", false, false),
            ("sm_100f", "sm_120", false, false),
        ] {
            assert_eq!(arch(code).runs_on(arch(gpu)), runs, "{code} on {gpu}");
            assert_eq!(arch(code).compiles_for(arch(gpu)), compiles, "PTX for {code} on {gpu}");
        }
        for text in ["90", "sm_", "sm_a", "sm_5", "sm_90b", "sm_1000", "compute_90", "sm_-9"] {
            assert!(text.parse::<Arch>().is_err(), "{text} was accepted");
        }
    }

    #[test]
    fn architectures_are_ordered_by_number() {
        let names = ["sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_120"];
        let mut sorted: Vec<Arch> = names.iter().rev().map(|name| name.parse().unwrap()).collect();
        sorted.sort();
        assert_eq!(sorted.iter().map(|arch| format!("sm_{arch}")).collect::<Vec<_>>(), names);
    }
}
