//! Archives compressed with xz or bzip2, as `docker load`, `podman load` and skopeo read them. Layers have no such
//! compression.

use std::io::{self, Cursor, ErrorKind, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bzip2::read::MultiBzDecoder;
use lzma_rust2::XzReader;

use model::{Limits, OverLimit};

/// Memory for the dictionary of an xz block, in KiB. xz(1) creates dictionaries of up to 64 MiB with its presets.
const XZ_MEMORY: u32 = 160 << 10;

/// Unpacked bytes from which the expansion is limited: small archives may consist of zeros.
const SMALL: u64 = 64 << 20;

/// The first bytes of each format.
const XZ: &[u8] = b"\xfd7zXZ\0";
const BZIP2: &[u8] = b"BZh";
const SQUASHFS: &[u8] = b"hsqs";
/// The magic text of a SIF image follows its launcher, which has 32 bytes.
const SIF: (std::ops::Range<usize>, &[u8]) = (32..42, b"SIF_MAGIC\0");

/// Returns true if an archive that begins with these bytes is compressed with xz or bzip2.
pub(super) fn is_packed(head: &[u8]) -> bool {
    head.starts_with(XZ) || head.starts_with(BZIP2)
}

/// Reads the first bytes, by which the forms are recognised. A short stream has fewer.
pub(super) fn head(bytes: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut head = Vec::with_capacity(SIF.0.end);
    io::copy(&mut bytes.take(SIF.0.end as u64), &mut head)?;
    Ok(head)
}

/// The name of a form that a stream cannot have, because its parts are read by ranges.
fn ranged_form(head: &[u8]) -> Option<&'static str> {
    match head {
        _ if head.starts_with(SQUASHFS) => Some("squashfs"),
        _ if head.get(SIF.0) == Some(SIF.1) => Some("SIF"),
        _ => None,
    }
}

/// The content of a stream that may be compressed with xz or bzip2. Nothing is read before the first call.
pub(super) struct Packed {
    state: PackedState,
    /// Bytes read from the stream.
    stored: Arc<AtomicU64>,
    unpacked: u64,
    /// Unpacked bytes allowed per stored byte.
    expansion: u64,
}

enum PackedState {
    Unread(Box<dyn Read + Send>),
    Plain(Box<dyn Read + Send>),
    Xz(Box<dyn Read + Send>),
    Bzip2(Box<dyn Read + Send>),
    /// Reading the first bytes failed.
    Failed,
}

impl Packed {
    pub(super) fn new(bytes: Box<dyn Read + Send>, limits: &Limits) -> Self {
        let stored = Arc::default();
        Self { state: PackedState::Unread(bytes), stored, unpacked: 0, expansion: limits.expansion }
    }

    /// Chooses the decoder by the first bytes.
    fn begin(&mut self) -> io::Result<()> {
        let PackedState::Unread(mut bytes) = std::mem::replace(&mut self.state, PackedState::Failed) else {
            return Ok(());
        };
        let head = head(&mut bytes)?;
        if let Some(form) = ranged_form(&head) {
            let what =
                format!("it is a {form} image, which a stream cannot be: write it to a file, and check that file");
            return Err(io::Error::new(ErrorKind::InvalidData, what));
        }
        let is_xz = head.starts_with(XZ);
        let is_bzip2 = head.starts_with(BZIP2);
        let bytes = Counted { inner: Cursor::new(head).chain(bytes), count: Arc::clone(&self.stored) };
        self.state = if is_xz {
            PackedState::Xz(Box::new(XzReader::new_mem_limit(bytes, true, XZ_MEMORY)))
        } else if is_bzip2 {
            PackedState::Bzip2(Box::new(MultiBzDecoder::new(bytes)))
        } else {
            PackedState::Plain(Box::new(bytes))
        };
        Ok(())
    }

    /// Refuses a decompression bomb long before it fills anything.
    fn check(&self) -> io::Result<()> {
        let stored = self.stored.load(Ordering::Relaxed);
        if self.unpacked <= SMALL || self.unpacked / self.expansion.max(1) <= stored {
            return Ok(());
        }
        let what = format!("the archive expands {}-fold from {stored} bytes", self.unpacked / stored.max(1));
        Err(io::Error::other(OverLimit::new(what, "expansion", self.expansion).advice()))
    }
}

impl Read for Packed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if matches!(self.state, PackedState::Unread(_)) {
            self.begin()?;
        }
        let count = match &mut self.state {
            PackedState::Plain(bytes) => return bytes.read(buffer),
            PackedState::Xz(decoder) => decoder.read(buffer).map_err(|error| damaged("xz", error))?,
            PackedState::Bzip2(decoder) => decoder.read(buffer).map_err(|error| damaged("bzip2", error))?,
            PackedState::Unread(_) | PackedState::Failed => 0,
        };
        self.unpacked = self.unpacked.saturating_add(count as u64);
        self.check()?;
        Ok(count)
    }
}

/// The error of a decoder in words; that of the system below unchanged.
fn damaged(format: &str, error: io::Error) -> io::Error {
    if error.raw_os_error().is_some() {
        return error;
    }
    let text = match error.kind() {
        ErrorKind::OutOfMemory => {
            format!("its {format} dictionary needs more than {} MiB: compress it with a preset of xz", XZ_MEMORY >> 10)
        }
        ErrorKind::UnexpectedEof => format!("its {format} data end too early: copy the archive again"),
        _ => format!("its {format} data are damaged ({error})"),
    };
    io::Error::new(error.kind(), text)
}

/// Counts the bytes read.
struct Counted<R> {
    inner: R,
    count: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.count.fetch_add(count as u64, Ordering::Relaxed);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;

    /// What a command of this machine makes of some bytes.
    #[expect(clippy::disallowed_methods, reason = "the compressors of this machine")]
    fn piped(command: &[&str], bytes: &[u8]) -> Vec<u8> {
        let mut child =
            Command::new(command[0]).args(&command[1..]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let bytes = bytes.to_owned();
        let writer = std::thread::spawn(move || input.write_all(&bytes));
        let output = child.wait_with_output().unwrap();
        writer.join().unwrap().unwrap();
        output.stdout
    }

    fn unpacked(bytes: Vec<u8>, limits: &Limits) -> Result<Vec<u8>, String> {
        let mut found = Vec::new();
        let copied = io::copy(&mut Packed::new(Box::new(Cursor::new(bytes)), limits).take(1 << 30), &mut found);
        copied.map(|_| found).map_err(|error| error.to_string())
    }

    fn data() -> Vec<u8> {
        (0..300_000_u32).flat_map(|number| (number / 7).to_le_bytes()).collect()
    }

    #[test]
    fn images_that_are_read_by_ranges_are_named() {
        let sif = [&b"#!/usr/bin/env run-singularity\n\0"[..], b"SIF_MAGIC\0", &[0; 100]].concat();
        for (bytes, form) in [(b"hsqs\x01\0\0\0".to_vec(), "squashfs"), (sif, "SIF")] {
            let error = unpacked(bytes, &Limits::default()).unwrap_err();
            assert!(error.starts_with(&format!("it is a {form} image,")), "{error}");
        }
        assert!(unpacked(b"hsq".to_vec(), &Limits::default()).is_ok());
    }

    #[test]
    fn archives_of_the_usual_programs_are_unpacked() {
        let limits = Limits::default();
        assert_eq!(unpacked(data(), &limits).unwrap(), data());
        assert_eq!(unpacked(b"x".to_vec(), &limits).unwrap(), b"x");
        assert_eq!(unpacked(Vec::new(), &limits).unwrap(), b"");
        for command in [
            &["xz", "-1", "-c"][..],
            &["xz", "-9e", "-c", "--check=sha256"],
            &["xz", "-c", "-T2", "--block-size=100000", "--check=crc32"],
            &["bzip2", "-c"],
        ] {
            let packed = piped(command, &data());
            assert!(is_packed(&packed), "{command:?}");
            assert_eq!(unpacked(packed.clone(), &limits).unwrap(), data(), "{command:?}");
            // Several members, as of pxz and pbzip2.
            assert_eq!(
                unpacked([&*packed, &packed].concat(), &limits).unwrap(),
                [data(), data()].concat(),
                "{command:?}"
            );
            let format = command[0];
            let cut = unpacked(packed[..packed.len() / 2].to_vec(), &limits).unwrap_err();
            assert!(cut.starts_with(&format!("its {format} data ")), "{cut}");
            let mut flipped = packed;
            let middle = flipped.len() / 2;
            flipped[middle] ^= 0x55;
            let error = unpacked(flipped, &limits).unwrap_err();
            assert!(error.starts_with(&format!("its {format} data ")), "{error}");
        }
    }

    #[test]
    fn bombs_and_large_dictionaries_are_refused() {
        let bomb = piped(&["sh", "-c", "head -c 200000000 /dev/zero | xz -1 -c"], b"");
        let error = unpacked(bomb, &Limits::default()).unwrap_err();
        assert!(error.contains("the archive expands ") && error.ends_with("--limit expansion=N"), "{error}");
        let large = piped(&["xz", "-c", "--lzma2=preset=0,dict=256MiB"], b"x");
        let error = unpacked(large, &Limits::default()).unwrap_err();
        assert!(error.starts_with("its xz dictionary needs more than 160 MiB"), "{error}");
    }
}
