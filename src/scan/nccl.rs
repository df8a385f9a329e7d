//! NCCL's own literals, searched in every ELF file as it goes by: a copy is found whatever its name, also when it is
//! linked into another library (as in PyTorch 1.13).
//!
//! `NCCL version 2.27.5+cuda12.9` is one NUL-terminated literal of `src/init.cc`; other strings begin alike. The names of
//! the variables come from `NCCL_PARAM` (`src/include/param.h`), which pastes `NCCL_` before each.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use regex::bytes::Regex;

use crate::model::{Found, Gap, NcclStrings};

use super::extract::{Collect, Extractor};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "NCCL",
    wants: |entry, head| head.starts_with(b"\x7fELF") && entry.size >= SMALLEST,
    start: |_, _| Box::new(Search { version: None, variables: BTreeSet::new(), tail: Vec::new(), end: 0 }),
};

/// Smaller files cannot even hold the names.
const SMALLEST: u64 = 2048;

/// Longest literal that is matched; so much of one chunk is looked at again with the next.
const LONGEST: usize = 96;

static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\0NCCL_"));
static BANNER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"NCCL version "));
#[expect(clippy::expect_used, reason = "a constant pattern, compiled by a test")]
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"^NCCL version (\d+\.\d+\.\d+[0-9A-Za-z.~_-]*)\+cuda(\d+\.\d+)\x00").expect("a valid pattern")
});

struct Search {
    version: Option<(String, String)>,
    variables: BTreeSet<String>,
    /// The end of what was seen, which may be the beginning of a literal.
    tail: Vec<u8>,
    end: u64,
}

impl Search {
    fn look(&mut self, bytes: &[u8]) {
        for at in BANNER.find_iter(bytes) {
            let literal = bytes.get(at..).unwrap_or_default();
            if let Some([version, cuda]) = VERSION.captures(literal).map(|c| c.extract().1) {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                self.version.get_or_insert_with(|| (text(version), text(cuda)));
            }
        }
        for at in NAME.find_iter(bytes) {
            let name = bytes.get(at + 1..).unwrap_or_default();
            let name = name.get(..name.len().min(LONGEST)).unwrap_or_default();
            let length = name.iter().take_while(|b| matches!(b, b'A'..=b'Z' | b'0'..=b'9' | b'_')).count();
            if let (Some(name), Some(0)) = (name.get(..length), name.get(length)) {
                self.variables.insert(String::from_utf8_lossy(name).into_owned());
            }
        }
    }
}

impl Collect for Search {
    fn push(&mut self, offset: u64, bytes: &[u8]) {
        if offset != self.end {
            self.tail.clear();
        }
        self.end = offset + bytes.len() as u64;
        let mut tail = std::mem::take(&mut self.tail);
        if bytes.len() < LONGEST {
            tail.extend_from_slice(bytes);
            self.look(&tail);
            tail.drain(..tail.len().saturating_sub(LONGEST));
        } else {
            // A literal across two chunks is looked for in the seam alone, so that nothing large is copied.
            if !tail.is_empty() {
                tail.extend_from_slice(bytes.get(..LONGEST).unwrap_or_default());
                self.look(&tail);
            }
            self.look(bytes);
            tail.clear();
            tail.extend_from_slice(bytes.get(bytes.len() - LONGEST..).unwrap_or_default());
        }
        self.tail = tail;
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let variables = self.variables;
        Ok(self.version.map(|(version, cuda)| Found::Nccl(NcclStrings { version, cuda, variables })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIBRARY: &[u8] = b"..\0NCCL version mismatch with remote peer\0NCCL version 2.27.5 compiled with CUDA 12.9\0\
        NCCL version 2.27.5+cuda12.9\0NCCL_IB_DISABLE\0NCCL_ALGO is unset\0NCCL_P2P_LEVEL\0xNCCL_NOT_ONE\0\0";

    #[test]
    fn literals_are_found_wherever_chunks_are_cut() {
        for size in 1..LIBRARY.len() {
            let mut search = Search { version: None, variables: BTreeSet::new(), tail: Vec::new(), end: 0 };
            let mut at = 0;
            for chunk in LIBRARY.chunks(size) {
                search.push(at, chunk);
                at += chunk.len() as u64;
            }
            let Ok(Some(Found::Nccl(found))) = Box::new(search).finish() else {
                panic!("nothing found, chunks of {size}")
            };
            assert_eq!((&*found.version, &*found.cuda), ("2.27.5", "12.9"));
            let names: Vec<_> = found.variables.iter().map(String::as_str).collect();
            assert_eq!(names, ["NCCL_IB_DISABLE", "NCCL_P2P_LEVEL"], "chunks of {size}");
        }
    }
}
