//! Searches every ELF file, outside of GPU code, for NCCL's own literals: this finds a copy whatever its name, also
//! when it is linked into another library (as in PyTorch 1.13).
//!
//! `NCCL version 2.27.5+cuda12.9` is one NUL-terminated literal of `src/init.cc`; other strings begin the same way. The
//! names of the variables come from `NCCL_PARAM` (`src/include/param.h`), which prepends `NCCL_` to each. The symbols
//! of plugins (`src/plugin`, before 2.27 `src/net.cc` and `src/misc/tuner.cc`) and the versions of RDMA functions
//! (`src/misc/ibvsymbols.cc`, `src/misc/mlx5dvsymbols.cc`) are looked up by name, so they are literals too.
//!
//! The same search finds NVSHMEM's version: `NVSHMEM v3.4.5` is one literal (`NVSHMEM_VENDOR_STRING`) of its host library, and
//! of its device code, which is linked into the libraries that use it.

use std::ops::Range;
use std::sync::LazyLock;

use regex::bytes::Regex;

use model::{BoundsError, Found, Gap, NcclStrings, part};

use super::extract::{Collect, Extractor};
use super::fatbin::Outside;
use super::sections::ElfSections;

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "NCCL",
    wants: |entry, head| head.starts_with(b"\x7fELF") && entry.size >= SMALLEST,
    start: |entry, _| Box::new(Outside::new(entry.path.to_string(), StringSearch::default())),
};

/// A smaller file has no room for a library with a literal.
const SMALLEST: u64 = 1024;

/// Longest literal that is matched, and the overlap of two chunks.
const LONGEST: usize = 96;

/// The beginnings of all literals, in one pattern: it is matched against gigabytes.
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static BEGINNING: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"(?-u)NCCL|NVSHMEM v|\x00nccl|\x00IBVERBS_1\.|\x00MLX5_1\.").expect("a valid pattern")
});
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^NCCL version (\d+\.\d+\.\d+[0-9A-Za-z.~_-]*)\+cuda(\d+\.\d+)\x00").expect("a valid pattern")
});
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static NVSHMEM: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^NVSHMEM v(\d{1,3}\.\d{1,3}\.\d{1,3})\x00").expect("a valid pattern"));
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static PLUGIN: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^\x00(nccl(?:(?:Net|CollNet|Tuner|Env|Gin|Rma)Plugin|Profiler)_v\d{1,3})\x00")
        .expect("a valid pattern")
});
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static SYMBOL_VERSION: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\x00((?:IBVERBS|MLX5)_1\.\d{1,3})\x00").expect("a valid pattern"));

#[derive(Default)]
struct StringSearch {
    found: NcclStrings,
    /// NVSHMEM's version.
    nvshmem: Option<String>,
    /// The end of the previous chunk, where a literal may begin.
    tail: Vec<u8>,
    end: u64,
    /// Ranges of machine code, ascending, if they are known beforehand: literals lie elsewhere.
    code: Vec<Range<u64>>,
}

impl StringSearch {
    fn look(&mut self, bytes: &[u8]) -> Result<(), BoundsError> {
        for found in BEGINNING.find_iter(bytes) {
            let at = found.start();
            let rest = part(bytes, at..)?;
            let literal = rest.get(..LONGEST).unwrap_or(rest);
            let matched = |pattern: &Regex| pattern.captures(literal).map(|captures| text(&captures[1]));
            match found.as_bytes() {
                b"NCCL" => match bytes.get(found.end()) {
                    Some(b' ') => self.banner(literal),
                    // The byte before the first one is unknown; the next search of this seam sees it.
                    Some(b'_') if at > 0 => self.name(bytes.get(at - 1) == Some(&0), literal),
                    _ => {}
                },
                b"NVSHMEM v" => self.nvshmem = self.nvshmem.take().or(matched(&NVSHMEM)),
                b"\0nccl" => self.found.interfaces.extend(matched(&PLUGIN)),
                _ => self.found.symbol_versions.extend(matched(&SYMBOL_VERSION)),
            }
        }
        Ok(())
    }

    fn banner(&mut self, literal: &[u8]) {
        if let Some([version, cuda]) = VERSION.captures(literal).map(|captures| captures.extract().1)
            && self.found.version.is_empty()
        {
            self.found.version = text(version);
            self.found.cuda = text(cuda);
        }
    }

    fn name(&mut self, begins_here: bool, literal: &[u8]) {
        let length = literal.iter().take_while(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_')).count();
        if let (Some(name), Some(0)) = (literal.get(..length), literal.get(length)) {
            let set = if begins_here { &mut self.found.variables } else { &mut self.found.joined };
            set.insert(text(name));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

impl Collect for StringSearch {
    fn sections(&mut self, sections: &ElfSections) {
        self.code = sections.code().unwrap_or_default();
    }

    fn next(&self, at: u64) -> Option<u64> {
        Some(self.code.iter().fold(at, |at, code| if code.contains(&at) { code.end } else { at }))
    }

    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        if offset != self.end {
            self.tail.clear();
        }
        self.end = offset + bytes.len() as u64;
        let mut tail = std::mem::take(&mut self.tail);
        if let (Some(first), Some(last)) = (bytes.first_chunk::<LONGEST>(), bytes.last_chunk::<LONGEST>()) {
            // A literal across two chunks is searched for in the seam only, which avoids large copies.
            if !tail.is_empty() {
                tail.extend_from_slice(first);
                self.look(&tail)?;
            }
            self.look(bytes)?;
            tail.clear();
            tail.extend_from_slice(last);
        } else {
            tail.extend_from_slice(bytes);
            self.look(&tail)?;
            tail.drain(..tail.len().saturating_sub(LONGEST));
        }
        self.tail = tail;
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        if self.found.version.is_empty() {
            return Ok(self.nvshmem.map(Found::Nvshmem));
        }
        Ok(Some(Found::Nccl(self.found)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &[u8] = b"..\0NCCL version mismatch with remote peer\0NCCL version 2.27.5 compiled with CUDA 12.9\0\
        NCCL version 2.27.5+cuda12.9\0NCCL_IB_DISABLE\0NCCL_ALGO is unset\0NCCL_P2P_LEVEL\0/dev/shm/nccl-XXNCCL_NET_PLUGIN\0\
        \0ncclNetPlugin_v10\0ncclNetPlugin_vX\0ncclProfiler_v4\0ncclCommInitAll\0IBVERBS_1.12\0IBVERBS_1.1\0MLX5_1.25\0\0";

    #[test]
    fn the_version_of_nvshmem_is_found_where_nccl_is_not() {
        for (bytes, version) in [
            (&b"..\0NVSHMEM v3.4.5\0.."[..], Some("3.4.5")),
            (b"..\0NVSHMEM version\0NVSHMEM v3\0..", None),
            (b"..\0NVSHMEM v3.4.5\0NCCL version 2.27.5+cuda12.9\0..", None),
        ] {
            let mut search = StringSearch::default();
            search.push(0, bytes).unwrap();
            let found = match Box::new(search).finish() {
                Ok(Some(Found::Nvshmem(version))) => Some(version),
                _ => None,
            };
            assert_eq!(found.as_deref(), version);
        }
    }

    #[test]
    fn literals_are_found_wherever_chunks_are_cut() {
        for size in 1..LIBRARY.len() {
            let mut search = StringSearch::default();
            let mut at = 0;
            for chunk in LIBRARY.chunks(size) {
                search.push(at, chunk).unwrap();
                at += chunk.len() as u64;
            }
            let Ok(Some(Found::Nccl(found))) = Box::new(search).finish() else {
                panic!("nothing found, chunks of {size}")
            };
            assert_eq!((&*found.version, &*found.cuda), ("2.27.5", "12.9"));
            for (set, expected) in [
                (&found.variables, &["NCCL_IB_DISABLE", "NCCL_P2P_LEVEL"][..]),
                (&found.joined, &["NCCL_NET_PLUGIN"]),
                (&found.interfaces, &["ncclNetPlugin_v10", "ncclProfiler_v4"]),
                (&found.symbol_versions, &["IBVERBS_1.1", "IBVERBS_1.12", "MLX5_1.25"]),
            ] {
                assert_eq!(set.iter().collect::<Vec<_>>(), expected, "chunks of {size}");
            }
        }
    }
}
