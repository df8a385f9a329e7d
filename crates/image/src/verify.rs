//! Verification while reading: a blob that was read to its end has the expected size and digest.

use std::io::{self, Read};

use model::{BlobRef, Digest, Hasher, help_line, part};

/// Advice for a blob that is not what its name says.
const COPY_AGAIN: &str = "copy the image again";

/// A reader that counts and hashes its input, and returns an error instead of the end if size or digest differ from the
/// expected ones. Stopping before the end verifies nothing: drain it.
#[derive(Debug)]
pub(super) struct Verified<R> {
    inner: R,
    verification: Verification,
}

/// Push-style variant of [`Verified`].
#[derive(Debug)]
pub(super) struct Verification {
    expected: BlobRef,
    read: u64,
    hasher: Option<Hasher>,
}

/// The error of a blob of another size.
fn size_mismatch(blob: &BlobRef, found: &str) -> io::Error {
    let BlobRef { digest, size } = blob;
    mismatch(&format!("blob {} has {found} bytes, its descriptor says {size}", digest.brief()))
}

/// The error of a blob with another digest.
pub(super) fn digest_mismatch(expected: &Digest, found: &Digest, size: u64) -> io::Error {
    let expected = expected.brief();
    let found = found.brief();
    mismatch(&format!("blob {expected} is corrupt: its {size} bytes have the digest {found}"))
}

fn mismatch(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what}{}", help_line(Some(COPY_AGAIN))))
}

impl<R: Read> Verified<R> {
    /// Verifies `inner` against `expected`.
    pub(super) fn new(inner: R, expected: BlobRef) -> Self {
        Self { inner, verification: Verification::new(expected) }
    }
}

impl<R: Read> Read for Verified<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let count = self.inner.read(buffer)?;
        self.verification.see(part(buffer, ..count)?)?;
        Ok(count)
    }
}

impl Verification {
    /// Verifies the bytes given to [`Self::see`] against `expected`.
    pub(super) fn new(expected: BlobRef) -> Self {
        let hasher = Some(expected.digest.hasher());
        Self { expected, read: 0, hasher }
    }

    /// Takes the next bytes; an empty slice marks the end.
    ///
    /// # Errors
    /// A [`VerificationError`], as soon as a mismatch is known.
    pub(super) fn see(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.read = self.read.saturating_add(bytes.len() as u64);
        if self.read > self.expected.size {
            return Err(size_mismatch(&self.expected, &format!("more than {}", self.expected.size)));
        }
        if let (false, Some(hasher)) = (bytes.is_empty(), &mut self.hasher) {
            hasher.update(bytes);
            return Ok(());
        }
        if self.read < self.expected.size {
            return Err(size_mismatch(&self.expected, &self.read.to_string()));
        }
        if let Some(hasher) = self.hasher.take() {
            let found = hasher.finish();
            if found != self.expected.digest {
                return Err(digest_mismatch(&self.expected.digest, &found, self.read));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], expected: &BlobRef) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        #[expect(clippy::disallowed_methods, reason = "a few bytes of a test")]
        let result = Verified::new(bytes, expected.clone()).read_to_end(&mut out);
        result.map(|_| out).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_expected_bytes_pass() {
        let mut hasher = Hasher::sha256();
        hasher.update(b"layer");
        let expected = BlobRef { digest: hasher.finish(), size: 5 };
        assert_eq!(read(b"layer", &expected).unwrap(), b"layer");
        assert!(read(b"lay", &expected).unwrap_err().contains("has 3 bytes, its descriptor says 5"));
        assert!(read(b"layers", &expected).unwrap_err().contains("more than 5"));
        assert!(read(b"lawyr", &expected).unwrap_err().contains("is corrupt"));
    }
}
