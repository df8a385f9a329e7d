//! Python's own programs and modules that concern `sys.path` or variables: which of them an image's command runs is not known
//! while a layer is scanned.

use model::{BoundsError, Entry, Found, Gap, PythonImports};

use super::extract::{Collect, Extractor};
use super::text::{self, TextCollector};

/// What a program that imports torch, changes where modules come from or a variable, or opens a library has in its text.
const MARKS: [&[u8]; 14] = [
    b"torch",
    b"sys.path",
    b".path.",
    b"import path",
    b"sys.meta_path",
    b"sys.modules",
    b"addsitedir",
    b"environ",
    b"putenv",
    b"unsetenv",
    b"load_dotenv",
    // What is opened before torch is imported may be what torch gets.
    b"CDLL(",
    b"LoadLibrary(",
    // The program itself calls what its modules define.
    b"init_process_group",
];

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "program",
    wants: |entry, head| is_program(entry) && !text::is_selected(entry, head),
    start: |entry, limits| {
        Box::new(ProgramCollector { is_kept: is_torch(entry), text: TextCollector::new(entry, limits) })
    },
};

/// True for a program outside packages: a folder of modules has thousands of files that no command names.
fn is_program(entry: &Entry) -> bool {
    let path = &entry.path;
    path.file_name().ends_with(b".py")
        && PythonImports::are_read_of(path, entry.size)
        && !path.components().any(|part| matches!(part, b"site-packages" | b"dist-packages"))
}

/// True for a file that would be imported in place of PyTorch.
fn is_torch(entry: &Entry) -> bool {
    entry.path.file_name() == b"torch.py"
}

struct ProgramCollector {
    is_kept: bool,
    text: TextCollector,
}

impl Collect for ProgramCollector {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        self.text.push(offset, bytes)
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        let concerns = self.is_kept || MARKS.iter().any(|mark| self.text.has(mark));
        if concerns { Box::new(self.text).finish() } else { Ok(None) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EntryKind, Limits};

    fn read(path: &str, text: &[u8]) -> Option<Found> {
        let entry =
            Entry { path: path.into(), kind: EntryKind::File, mode: 0o644, owner: None, size: text.len() as u64 };
        if !(EXTRACTOR.wants)(&entry, text) {
            return None;
        }
        let mut collector = (EXTRACTOR.start)(&entry, &Limits::default());
        collector.push(0, text).unwrap();
        collector.finish().unwrap()
    }

    #[test]
    fn programs_that_concern_the_path_are_kept() {
        const CHANGE: &[u8] = b"import sys\nsys.path.insert(0, '/x')\n";
        for (path, text, is_kept) in [
            ("app/train.py", CHANGE, true),
            ("app/train.py", b"import torch\n", true),
            ("app/train.py", b"import os\n", false),
            ("app/train.pex/__main__.py", CHANGE, true),
            ("app/torch.py", b"x = 1\n", true),
            ("app/a/b/c/train.py", CHANGE, true),
            ("app/a/b/c/d/e/f/train.py", CHANGE, false),
            ("app/train.py", b"import os\nos.environ['NCCL_DEBUG'] = 'WARN'\n", true),
            ("usr/lib/python3.11/site.py", CHANGE, false),
            ("usr/lib/python3.11/pdb.py", CHANGE, false),
            ("opt/site-packages/x.py", CHANGE, false),
            ("app/train.txt", CHANGE, false),
        ] {
            assert_eq!(read(path, text).is_some(), is_kept, "{path}");
        }
        let script = read("app/train.py", b"#!/usr/bin/env python3\nimport sys\nsys.path.clear()\n");
        assert!(script.is_none(), "it is kept as a script");
    }
}
