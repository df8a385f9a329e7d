//! Platforms of images.

use std::fmt;
use std::str::FromStr;

/// A platform `os/arch[/variant]` with Go's names (OCI image-spec, `image-index.md`).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct Platform {
    /// Operating system, such as `linux`.
    pub os: String,
    /// CPU architecture, such as `amd64`.
    pub architecture: String,
    /// Variant of the architecture, such as `v8`.
    pub variant: Option<String>,
}

/// An invalid platform.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a platform: expected os/arch or os/arch/variant, such as linux/amd64 or linux/arm64/v8")]
pub struct PlatformError(String);

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

    /// Returns true if an image for `offered` satisfies a request for this platform. Without a requested variant any
    /// variant matches, and arm64 means arm64/v8 (as in containerd and Docker).
    pub fn is_served_by(&self, offered: &Self) -> bool {
        let variant = |platform: &Self| match (&*platform.architecture, platform.variant.as_deref()) {
            ("arm64", None) => Some("v8".to_owned()),
            (_, variant) => variant.map(ToOwned::to_owned),
        };
        self.os == offered.os
            && self.architecture == offered.architecture
            && (self.variant.is_none() || variant(self) == variant(offered))
    }
}

impl FromStr for Platform {
    type Err = PlatformError;

    fn from_str(text: &str) -> Result<Self, PlatformError> {
        let parts: Vec<_> = text.split('/').collect();
        match *parts.as_slice() {
            _ if parts.iter().any(|part| part.is_empty()) => Err(PlatformError(text.to_owned())),
            [os, architecture] => Ok(Self { os: os.into(), architecture: architecture.into(), variant: None }),
            [os, architecture, variant] => {
                Ok(Self { os: os.into(), architecture: architecture.into(), variant: Some(variant.into()) })
            }
            _ => Err(PlatformError(text.to_owned())),
        }
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
        assert!(platform("linux/arm64").is_served_by(&platform("linux/arm64/v8")));
        assert!(platform("linux/arm64/v8").is_served_by(&platform("linux/arm64")));
        assert!(!platform("linux/arm/v7").is_served_by(&platform("linux/arm/v6")));
        assert!(!platform("linux/amd64").is_served_by(&platform("windows/amd64")));
        for bad in ["", "linux", "linux/", "a/b/c/d"] {
            assert!(bad.parse::<Platform>().is_err(), "{bad} was accepted");
        }
    }
}
