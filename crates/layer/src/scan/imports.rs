//! What Python files import: modules of packages, and programs and modules of a job.

use model::{Entry, Found, PythonImports};

use super::extract::{Extractor, WholeFile};

pub(super) const EXTRACTOR: Extractor = Extractor {
    name: "imports",
    wants: |entry, head| is_python(entry, head) && PythonImports::are_read_of(&entry.path, entry.size),
    start: |_, _| WholeFile::start(read),
};

/// True for a module, or a program that Python's installers write.
fn is_python(entry: &Entry, head: &[u8]) -> bool {
    let is_started = || {
        let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
        head.starts_with(b"#!") && memchr::memmem::find(line, b"python").is_some()
    };
    entry.path.file_name().ends_with(b".py") || is_started()
}

fn read(code: &[u8]) -> Option<Found> {
    let imports = PythonImports::read(code);
    (!imports.is_empty()).then_some(Found::PythonImports(imports))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{EntryKind, Limits};

    #[test]
    fn modules_and_programs_are_read() {
        for (path, text, imports) in [
            ("opt/site-packages/deep_ep/__init__.py", "import torch\nimport deep_ep_cpp\n", Some("torch deep_ep_cpp")),
            ("opt/site-packages/deep_ep/__init__.py", "import os\n", None),
            ("usr/local/bin/vllm", "#!/usr/bin/python3\nfrom vllm.main import main\n", Some("vllm.main")),
            ("work/train.py", "import transformers\n", Some("~transformers")),
            ("opt/site-packages/x.py", "import transformers\n", Some("~transformers")),
            ("usr/local/bin/run", "#!/bin/sh\nimport x\n", None),
            ("usr/lib/python3.11/x.py", "import x\n", None),
        ] {
            let size = text.len() as u64;
            let entry = Entry { path: path.into(), kind: EntryKind::File, mode: 0o644, owner: None, size };
            let found = (EXTRACTOR.wants)(&entry, text.as_bytes()).then(|| {
                let mut code = (EXTRACTOR.start)(&entry, &Limits::default());
                code.push(0, text.as_bytes()).unwrap();
                code.finish().unwrap()
            });
            let module = found.flatten().map(|found| match found {
                Found::PythonImports(imports) => {
                    let known = imports.required().filter(|import| !imports.iter().any(|one| one == *import));
                    let known = known.map(|import| format!("~{}", import.module));
                    imports.iter().map(|import| import.module.to_owned()).chain(known).collect::<Vec<_>>().join(" ")
                }
                _ => String::new(),
            });
            assert_eq!(module.as_deref(), imports, "{path}");
        }
    }
}
