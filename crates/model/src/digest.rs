//! Content digests: `algorithm:hex`, as in descriptors (OCI image-spec, `descriptor.md`).

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256, Sha512};

/// A digest of stored bytes, such as `sha256:ab12…`. Only registered algorithms that ncclcheck can verify are accepted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(inline)]
pub struct Digest {
    text: String,
    algorithm: Algorithm,
}

/// The fields of a descriptor that are needed to fetch and verify a blob (OCI image-spec, `descriptor.md`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BlobRef {
    /// Digest of the stored bytes.
    pub digest: Digest,
    /// Number of stored bytes.
    pub size: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Algorithm {
    Sha256,
    Sha512,
}

impl Algorithm {
    const ALL: [Self; 2] = [Self::Sha256, Self::Sha512];

    const fn name(self) -> &'static str {
        match self {
            Self::Sha256 => "sha256",
            Self::Sha512 => "sha512",
        }
    }

    const fn hex_len(self) -> usize {
        match self {
            Self::Sha256 => 64,
            Self::Sha512 => 128,
        }
    }
}

/// An invalid digest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a digest: expected sha256: and 64, or sha512: and 128, lower-case hexadecimal digits")]
pub struct DigestError(String);

impl Digest {
    /// Returns the whole digest, `sha256:ab12…`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns `sha256` or `sha512`.
    pub const fn algorithm(&self) -> &'static str {
        self.algorithm.name()
    }

    /// Returns the hexadecimal digits after the colon.
    pub fn hex(&self) -> &str {
        self.text.split_once(':').map_or("", |(_, hex)| hex)
    }

    /// Returns the first twelve digits, enough for a reader to distinguish two digests.
    pub fn short(&self) -> &str {
        self.hex().get(..12).unwrap_or_default()
    }

    /// Returns the algorithm and the first twelve digits, for messages: `sha256:0123456789ab`.
    pub fn brief(&self) -> String {
        format!("{}:{}", self.algorithm(), self.short())
    }

    /// Returns true if this is the digest of `bytes`.
    pub fn is_of(&self, bytes: &[u8]) -> bool {
        let mut hasher = self.hasher();
        hasher.update(bytes);
        hasher.finish() == *self
    }

    /// Creates a hasher of this digest's algorithm.
    pub fn hasher(&self) -> Hasher {
        Hasher::of(self.algorithm)
    }
}

impl FromStr for Digest {
    type Err = DigestError;

    fn from_str(text: &str) -> Result<Self, DigestError> {
        let error = || DigestError(text.to_owned());
        let (name, hex) = text.split_once(':').ok_or_else(error)?;
        let algorithm = Algorithm::ALL.into_iter().find(|a| a.name() == name).ok_or_else(error)?;
        let digits = hex.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        if !digits || hex.len() != algorithm.hex_len() {
            return Err(error());
        }
        Ok(Self { text: text.to_owned(), algorithm })
    }
}

impl TryFrom<String> for Digest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        text.parse()
    }
}

impl From<Digest> for String {
    fn from(digest: Digest) -> Self {
        digest.text
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Computes a digest incrementally.
#[derive(Clone, Debug)]
pub struct Hasher(HasherState);

#[derive(Clone, Debug)]
enum HasherState {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Hasher {
    /// Creates a SHA-256 hasher, the default algorithm.
    pub fn sha256() -> Self {
        Self::of(Algorithm::Sha256)
    }

    fn of(algorithm: Algorithm) -> Self {
        Self(match algorithm {
            Algorithm::Sha256 => HasherState::Sha256(Sha256::new()),
            Algorithm::Sha512 => HasherState::Sha512(Sha512::new()),
        })
    }

    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            HasherState::Sha256(h) => h.update(bytes),
            HasherState::Sha512(h) => h.update(bytes),
        }
    }

    /// Returns the digest of all bytes added.
    pub fn finish(self) -> Digest {
        let (algorithm, hex) = match self.0 {
            HasherState::Sha256(h) => (Algorithm::Sha256, hex(&h.finalize())),
            HasherState::Sha512(h) => (Algorithm::Sha512, hex(&h.finalize())),
        };
        Digest { text: format!("{}:{hex}", algorithm.name()), algorithm }
    }
}

/// Formats `bytes` as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_digests_are_rejected() {
        let empty = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        let digest: Digest = empty.parse().unwrap();
        assert_eq!(digest.short(), "e3b0c44298fc");
        assert_eq!(Hasher::sha256().finish(), digest);
        for bad in ["", "sha256:", "md5:00", &empty.to_uppercase(), empty.get(..70).unwrap()] {
            assert!(bad.parse::<Digest>().is_err(), "{bad} was accepted");
        }
    }
}
