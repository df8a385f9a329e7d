//! Platforms of images.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A platform `os/arch[/variant]` with Go's names (OCI image-spec, `image-index.md`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct Platform {
    /// Operating system, such as `linux`.
    pub os: String,
    /// CPU architecture, such as `amd64`.
    pub architecture: String,
    /// Variant of the architecture, such as `v8`.
    pub variant: Option<String>,
}

impl Platform {
    /// Returns the platform of images that run on this machine: containers run Linux on every host.
    pub fn host() -> Self {
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            "x86" => "386",
            "powerpc64" => "ppc64le",
            other => other,
        };
        Self { os: "linux".to_owned(), architecture: architecture.to_owned(), variant: None }
    }

    /// Returns true if an image for `offered` satisfies a request for this platform.
    pub fn is_served_by(&self, offered: &Self) -> bool {
        self.distance_to(offered).is_some()
    }

    /// How well an image for `offered` satisfies a request for this platform: 0 for the same platform, more for each
    /// older variant, `None` if it does not. As in containerd's matcher (`containerd/platforms`, `compare.go`), an
    /// image may require less than the request allows, never more: a request for amd64 excludes amd64/v3.
    ///
    /// Images for another architecture that the processor runs too (386 on amd64, arm on arm64) are not considered.
    pub fn distance_to(&self, offered: &Self) -> Option<u32> {
        if (&self.os, &self.architecture) != (&offered.os, &offered.architecture) {
            return None;
        }
        let Some((asked, level)) = self.level().zip(offered.level()) else {
            return (self.variant == offered.variant).then_some(0);
        };
        match (asked, level) {
            ((major, minor), (least, below)) if major == least => minor.checked_sub(below),
            // Armv9.0 diverged from Armv8.5, so v9.x includes v8.(x + 5).
            ((9, minor), (8, below)) if self.architecture == "arm64" => {
                Some(minor + 1 + (minor + 5).checked_sub(below)?)
            }
            ((major, 0), (least, 0)) if self.architecture != "arm64" => major.checked_sub(least),
            _ => None,
        }
    }

    /// The variant as a level, major and minor, of an architecture whose higher levels include the lower ones; its
    /// default if it is missing (`containerd/platforms`, `database.go`).
    fn level(&self) -> Option<(u32, u32)> {
        let (default, lowest) = match &*self.architecture {
            "amd64" => ("v1", 1),
            "arm64" => ("v8", 8),
            "arm" => ("v7", 5),
            _ => return None,
        };
        let variant = self.variant.as_deref().unwrap_or(default);
        let digits = variant.strip_prefix('v').unwrap_or(variant);
        let (major, minor) = digits.split_once('.').unwrap_or((digits, "0"));
        let number = |text: &str| text.parse::<u8>().ok().map(u32::from);
        let level = (number(major)?, number(minor)?);
        (level.0 >= lowest).then_some(level)
    }
}

impl FromStr for Platform {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts: Vec<_> = text.split('/').collect();
        let is_whole = parts.iter().all(|part| !part.is_empty());
        match *parts.as_slice() {
            [os, architecture] if is_whole => {
                Ok(Self { os: os.into(), architecture: architecture.into(), variant: None })
            }
            [os, architecture, variant] if is_whole => {
                Ok(Self { os: os.into(), architecture: architecture.into(), variant: Some(variant.into()) })
            }
            _ => Err(format!(
                "'{text}' is not a platform: expected os/arch or os/arch/variant, such as linux/amd64 or linux/arm64/v8"
            )),
        }
    }
}

impl TryFrom<String> for Platform {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Platform> for String {
    fn from(platform: Platform) -> Self {
        platform.to_string()
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.as_ref().map_or(Ok(()), |variant| write!(f, "/{variant}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn platforms_are_matched_by_variant() {
        let platform = |text: &str| text.parse::<Platform>().unwrap();
        for (asked, offered, distance) in [
            ("linux/arm64", "linux/arm64/v8", Some(0)),
            ("linux/arm64/v8", "linux/arm64", Some(0)),
            ("linux/arm64", "linux/arm64/v9", None),
            ("linux/arm64/v8.2", "linux/arm64/v8", Some(2)),
            ("linux/arm64/v9", "linux/arm64/v8.5", Some(1)),
            ("linux/arm64/v9", "linux/arm64/v8", Some(6)),
            ("linux/arm64/v9", "linux/arm64/v8.6", None),
            ("linux/arm64/v9.1", "linux/arm64/v9", Some(1)),
            ("linux/arm64/v9.1", "linux/arm64/v8.6", Some(2)),
            ("linux/arm", "linux/arm/v7", Some(0)),
            ("linux/arm/v7", "linux/arm/v6", Some(1)),
            ("linux/arm/v6", "linux/arm/v7", None),
            ("linux/arm/v7", "linux/arm/v4", None),
            ("linux/amd64", "linux/amd64/v1", Some(0)),
            ("linux/amd64", "linux/amd64/v3", None),
            ("linux/amd64/v3", "linux/amd64", Some(2)),
            ("linux/amd64/v3", "linux/amd64/v4", None),
            ("linux/amd64", "windows/amd64", None),
            ("linux/amd64", "linux/386", None),
            ("linux/riscv64", "linux/riscv64/rva23", None),
            ("linux/riscv64/rva23", "linux/riscv64/rva23", Some(0)),
        ] {
            assert_eq!(platform(asked).distance_to(&platform(offered)), distance, "{offered} for {asked}");
        }
    }

    #[test]
    fn malformed_platforms_are_refused() {
        for bad in ["", "linux", "linux/", "a/b/c/d"] {
            assert!(bad.parse::<Platform>().is_err(), "{bad} was accepted");
        }
    }
}
