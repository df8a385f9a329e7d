//! Constants in PyTorch's CUDA code, found in one pass: gigabytes lie between them and the symbols that would identify
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex::bytes::Regex;

use model::{BoundsError, Entry, Found, Gap, part};

use super::super::extract::{Collect, Extractor};
use super::super::fatbin::Outside;

/// `torch._C._cuda_getArchFlags()` (`torch/csrc/cuda/Module.cpp`) returns a literal, `sm_70 sm_75 compute_90`.
pub(in super::super) const ARCH_FLAGS: Extractor = Extractor {
    name: "arch flags",
    wants: |entry, head| is_elf_named(entry, head, b"libtorch_python"),
    start: |_, _| Box::new(Windows::new(LONGEST_FLAGS, ArchFlags(BTreeSet::new()))),
};

/// `torch::cuda::nccl::version()` (`torch/csrc/cuda/nccl.cpp`) returns the version in the `nccl.h` that it was compiled
/// with: major in bits 32 and up, minor in 16 and up, patch below.
pub(in super::super) const NCCL_VERSION: Extractor = Extractor {
    name: "NCCL version of torch",
    wants: |entry, head| is_elf_named(entry, head, b"libtorch_cuda"),
    start: |entry, _| {
        let windows = Windows::new(LONGEST_FUNCTION, Versions::default());
        Box::new(Outside::new(entry.path.to_string(), windows))
    },
};

fn is_elf_named(entry: &Entry, head: &[u8], name: &[u8]) -> bool {
    head.starts_with(b"\x7fELF") && entry.path.file_name().starts_with(name)
}

/// Searches every window of a file for a short pattern.
trait LiteralLook: Send {
    /// Searches the bytes at this offset of the file. Windows overlap, so every match lies whole in one of them.
    fn look(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError>;
    fn found(self) -> Option<Found>;
}

/// Cuts the chunks of a file into overlapping windows.
struct Windows<L> {
    look: L,
    /// Length of the longest match.
    overlap: usize,
    /// The end of the previous chunk.
    tail: Vec<u8>,
    end: u64,
}

impl<L> Windows<L> {
    const fn new(overlap: usize, look: L) -> Self {
        Self { look, overlap, tail: Vec::new(), end: 0 }
    }
}

impl<L: LiteralLook> Collect for Windows<L> {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if offset != self.end {
            self.tail.clear();
        }
        self.end = offset + bytes.len() as u64;
        let before = offset - self.tail.len() as u64;
        // Copies the seam only, not the bytes after it.
        let seam = bytes.get(..self.overlap).unwrap_or(bytes);
        self.tail.extend_from_slice(seam);
        self.look.look(before, &self.tail)?;
        if bytes.len() > self.overlap {
            self.look.look(offset, bytes)?;
            self.tail.clear();
            self.tail.extend_from_slice(part(bytes, bytes.len() - self.overlap..)?);
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(self.overlap));
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        Ok(self.look.found())
    }
}

/// Longer than any list: an architecture takes at most twelve bytes.
const LONGEST_FLAGS: usize = 512;

static FIRST_FLAG: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new(b"sm_"), Finder::new(b"compute_")]);
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static FLAGS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^((?:sm|compute)_\d+[a-z]?(?: (?:sm|compute)_\d+[a-z]?)*)\x00").expect("a valid pattern")
});

struct ArchFlags(BTreeSet<String>);

impl LiteralLook for ArchFlags {
    fn look(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        for at in FIRST_FLAG.iter().flat_map(|finder| finder.find_iter(bytes)) {
            // A literal follows another one, or, in sections of aligned literals (`.rodata.str1.8`), begins at a
            // multiple of eight, after any byte of the previous section.
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            let begins = match before {
                Some(0) => true,
                Some(b' ') | None => false,
                Some(_) => (offset + at as u64).is_multiple_of(8),
            };
            let rest = part(bytes, at..)?;
            let literal = rest.get(..LONGEST_FLAGS).unwrap_or(rest);
            if begins && let Some([flags]) = FLAGS.captures(literal).map(|captures| captures.extract().1) {
                self.0.insert(String::from_utf8_lossy(flags).into_owned());
            }
        }
        Ok(())
    }

    fn found(self) -> Option<Found> {
        (!self.0.is_empty()).then_some(Found::ArchFlags(self.0))
    }
}

/// Longer than either form of the function.
const LONGEST_FUNCTION: usize = 24;

/// A random match occurs once in gigabytes, so a file full of matches is not torch's.
const MOST_VERSIONS: usize = 1 << 16;

static RETURN_X86: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\0\0\0\xc3"));
static RETURN_ARM: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\xc0\x03\x5f\xd6"));

/// The instructions that return a constant, by machine.
#[derive(Clone, Copy)]
enum LiteralForm {
    X86,
    Arm,
}

impl LiteralForm {
    fn of(head: &[u8]) -> Option<Self> {
        match head.get(18..20)? {
            [62, 0] => Some(Self::X86),
            [183, 0] => Some(Self::Arm),
            _ => None,
        }
    }

    /// A finder for the ends of functions, and the number of bytes of its match that belong to the return.
    fn returns(self) -> (&'static Finder<'static>, usize) {
        match self {
            // The upper bytes of the number, which are zero, and `ret`.
            Self::X86 => (&RETURN_X86, 1),
            Self::Arm => (&RETURN_ARM, 4),
        }
    }

    /// The number returned by the code at the end of `before`, and the size of that code.
    fn constant(self, before: &[u8]) -> Option<(u64, usize)> {
        match self {
            // movabs rax, imm64
            Self::X86 => {
                let (code, number) = before.split_last_chunk()?;
                code.ends_with(&[0x48, 0xb8])
                    .then(|| with_pad(u64::from_le_bytes(*number), 10, before, [0xf3, 0x0f, 0x1e, 0xfa]))
            }
            // movz x0, then movk x0
            Self::Arm => {
                let mut number = 0_u64;
                let mut known = 0_u64;
                for (index, chunk) in before.rchunks_exact(4).take(4).enumerate() {
                    let word = u32::from_le_bytes(*chunk.first_chunk()?);
                    let shift = (word >> 21 & 3) * 16;
                    let part = u64::from(word >> 5 & 0xffff) << shift;
                    let mask = 0xffff_u64 << shift & !known;
                    match word & 0xff80_001f {
                        0xf280_0000 => {
                            number |= part & mask;
                            known |= mask;
                        }
                        0xd280_0000 => {
                            let length = (index + 1) * 4;
                            return Some(with_pad(number | part & !known, length, before, [0x5f, 0x24, 0x03, 0xd5]));
                        }
                        _ => return None,
                    }
                }
                None
            }
        }
    }
}

/// Adds the landing pad with which a function begins when indirect calls are guarded.
fn with_pad(number: u64, length: usize, before: &[u8], pad: [u8; 4]) -> (u64, usize) {
    let start = before.len() - length.min(before.len());
    let has_pad = before.get(..start).is_some_and(|rest| rest.ends_with(&pad));
    (number, if has_pad { length + 4 } else { length })
}

#[derive(Default)]
struct Versions {
    /// The form for the file's machine, from its first bytes.
    form: Option<LiteralForm>,
    seen: BTreeMap<u64, [u32; 3]>,
}

impl LiteralLook for Versions {
    fn look(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if offset == 0 && self.form.is_none() {
            self.form = LiteralForm::of(bytes);
        }
        let Some(form) = self.form else { return Ok(()) };
        let (finder, length) = form.returns();
        for found in finder.find_iter(bytes) {
            let end = found + finder.needle().len() - length;
            let before = part(bytes, end.saturating_sub(LONGEST_FUNCTION)..end)?;
            if let Some((number, length)) = form.constant(before)
                && let Some(version) = version(number)
                && self.seen.len() < MOST_VERSIONS
            {
                self.seen.insert(offset + (end - length) as u64, version);
            }
        }
        Ok(())
    }

    fn found(self) -> Option<Found> {
        (!self.seen.is_empty()).then_some(Found::NcclVersions(self.seen))
    }
}

/// The major, minor and patch numbers, if the value can be a version.
fn version(number: u64) -> Option<[u32; 3]> {
    let major = u32::try_from(number >> 32).ok()?;
    let [minor, patch] = [number >> 16 & 0xffff, number & 0xffff].map(u32::try_from);
    Some([major, minor.ok()?, patch.ok()?]).filter(|_| (1..256).contains(&major))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(look: impl LiteralLook, overlap: usize, bytes: &[u8], size: usize) -> Option<Found> {
        let mut windows = Box::new(Windows::new(overlap, look));
        let mut at = 0;
        for chunk in bytes.chunks(size) {
            windows.push(at, chunk).unwrap();
            at += chunk.len() as u64;
        }
        windows.finish().unwrap()
    }

    #[test]
    fn the_list_of_architectures_is_a_whole_literal() {
        let list = Found::ArchFlags(["sm_70 sm_75 compute_90".to_owned()].into());
        for (bytes, is_there) in [
            (&b"xsm_1\0sm_70 sm_75 compute_90\0sm_80 and more\0sm_\0 sm_60\0sm_61"[..], true),
            (b"........td::string ipc_hsm_70 sm_75 compute_90\0", true),
            (b"........std::string ipc_hsm_70 sm_75 compute_90\0", false),
        ] {
            for size in 1..bytes.len() {
                let flags = found(ArchFlags(BTreeSet::new()), LONGEST_FLAGS, bytes, size);
                assert_eq!(flags.as_ref(), is_there.then_some(&list), "{size}");
            }
        }
    }

    #[test]
    fn functions_that_return_a_version_are_found_for_any_chunking() {
        // torch 2.9.0 for x86-64, with and without a landing pad; then for AArch64, in two instruction orders.
        let x86 =
            b"\xc3\x48\xb8\x05\0\x1b\0\x02\0\0\0\xc3\x90\xf3\x0f\x1e\xfa\x48\xb8\x01\0\x1c\0\x02\0\0\0\xc3\0\0\0\xc3";
        let words = [
            0xd65f_03c0_u32,
            0xd280_00a0,
            0xf2a0_0360,
            0xf2c0_0040,
            0xd65f_03c0,
            0xd503_245f,
            0xd2a0_0380,
            0xf2c0_0040,
            0xd65f_03c0,
            0xf2c0_0040,
            0xd65f_03c0,
        ];
        let arm: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        for (form, bytes, expected) in [
            (LiteralForm::X86, &x86[..], [(1, [2, 27, 5]), (13, [2, 28, 1])]),
            (LiteralForm::Arm, &arm, [(4, [2, 27, 5]), (20, [2, 28, 0])]),
        ] {
            for size in 1..bytes.len() {
                let versions =
                    found(Versions { form: Some(form), seen: BTreeMap::new() }, LONGEST_FUNCTION, bytes, size);
                assert_eq!(versions, Some(Found::NcclVersions(expected.into())), "{size}");
            }
        }
    }
}
