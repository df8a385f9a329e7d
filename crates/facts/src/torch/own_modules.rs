//! Modules of torch that `torch/__init__.py` imports before it loads a library: a checkout of its source has no
//! `version.py`, which the build writes.

use model::{Gap, ImagePath};
use rootfs::RootFs;

use super::super::{pattern, text};

pattern!(OWN, r"(?m)^(?:from +(?:torch)?\.(\w+)[\w.]* +import\b|import +torch\.(\w+))");
// An assignment of a constant, a comment, a docstring of one line, or nothing.
pattern!(PLAIN, r#"^(?:\w+ *= *(?:'[^'\\]*'|"[^"\\]*"|[\d.]+|True|False|None)|#.*|'''[^\\]*'''|"""[^\\]*"""|)\s*$"#);

/// Python's message about the first module that is missing, and the position of its import.
pub(super) fn failure(rootfs: &RootFs, package: &ImagePath, init: &[u8]) -> Option<(usize, String)> {
    let loads = [&b"\n_load_global_deps()"[..], b"from torch._C import"];
    let end = loads.iter().filter_map(|load| memchr::memmem::find(init, load)).min().unwrap_or(init.len());
    let has = |name: &str| has_module(rootfs, package, name);
    OWN.captures_iter(init.get(..end)?).find_map(|captures| {
        let name = captures.get(1).or_else(|| captures.get(2))?;
        let name = std::str::from_utf8(name.as_bytes()).ok().filter(|name| *name != "_C")?;
        // torch_version.py imports `torch.version` in turn.
        let missing = if !has(name) {
            name
        } else if name == "torch_version" && !has("version") {
            "version"
        } else {
            return None;
        };
        Some((captures.get(0)?.start(), format!("ModuleNotFoundError: No module named 'torch.{missing}'")))
    })
}

/// Why a file of torch may be a part of what was installed, as after a download that broke off: it is far smaller than the
/// record of its wheel says.
pub(super) fn cut(rootfs: &RootFs, package: &ImagePath) -> Option<Gap> {
    let folder = package.parent();
    let is_own = |name: &&[u8]| name.ends_with(b".dist-info");
    let info = rootfs.names_with(&folder, b"torch-").find(is_own)?;
    let record = text(rootfs, &folder.join(info).join(b"RECORD"));
    let record = String::from_utf8_lossy(record.value()?);
    ["__init__.py", "version.py"].into_iter().find_map(|name| {
        let line =
            record.lines().find(|line| line.strip_prefix("torch/").is_some_and(|line| line.starts_with(name)))?;
        let recorded: u64 = line.rsplit(',').next()?.trim().parse().ok()?;
        let file = package.join(name.as_bytes());
        let size = rootfs.open(&file).ok()?.1.size;
        let why = format!("{file} has {size} bytes, and the record of its wheel says {recorded}");
        (size < recorded / 10 * 9).then(|| Gap::new(why).settled_by("install torch again"))
    })
}

/// True if a package has a module of this name in any form.
fn has_module(rootfs: &RootFs, package: &ImagePath, name: &str) -> bool {
    rootfs.names_with(package, format!("{name}.").as_bytes()).next().is_some()
        || rootfs.is_directory(&package.join(name.as_bytes()))
}

/// True for code that only sets constants, so that its import succeeds and maps nothing.
pub(super) fn does_nothing(code: &[u8]) -> bool {
    code.split(|&byte| byte == b'\n').all(|line| PLAIN.is_match(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::synthetic::{file, rootfs, text_or_link};

    fn image(files: &[&str]) -> RootFs {
        rootfs(files.iter().map(|path| (file(path), Vec::new())))
    }

    #[test]
    fn a_module_that_a_build_writes_is_missing_in_a_checkout() {
        let missing = |files: &[&str], init: &[u8]| {
            failure(&image(files), &ImagePath::from("torch"), init).map(|(at, why)| format!("{at}: {why}"))
        };
        let version = "ModuleNotFoundError: No module named 'torch.version'";
        let direct = b"import os\nfrom .version import __version__\nfrom torch._C import *\n";
        assert_eq!(missing(&["torch/__init__.py"], direct), Some(format!("10: {version}")));
        assert_eq!(missing(&["torch/version.py"], direct), None);
        assert_eq!(missing(&["torch/version/__init__.py"], direct), None);
        let behind = b"from torch.torch_version import __version__ as __version__\n";
        assert_eq!(missing(&["torch/torch_version.py"], behind), Some(format!("0: {version}")));
        assert_eq!(missing(&["torch/torch_version.py", "torch/version.py"], behind), None);
        let later = b"from torch._C import *\nfrom torch.none import x\n";
        assert_eq!(missing(&["torch/__init__.py"], later), None, "libraries are loaded before");
    }

    #[test]
    fn a_file_that_is_far_smaller_than_recorded_may_be_cut() {
        let torch = |name: &str, content: &str| {
            let record = ("torch-2.9.0.dist-info/RECORD", "torch/__init__.py,sha256=x,100\ntorch/version.py,,10\n");
            let name = format!("torch/{name}");
            let files = [record, (&name, content)].map(|(path, content)| text_or_link(path, content));
            cut(&rootfs(files), &ImagePath::from("torch")).map(|gap| gap.why)
        };
        let why = "/torch/__init__.py has 40 bytes, and the record of its wheel says 100";
        assert_eq!(torch("__init__.py", &"#".repeat(40)).as_deref(), Some(why));
        assert_eq!(torch("__init__.py", &"#".repeat(90)), None);
        assert_eq!(torch("__init__.py", &"#".repeat(110)), None);
        assert!(torch("version.py", "#").is_some());
        assert_eq!(cut(&image(&["torch/__init__.py"]), &ImagePath::from("torch")), None);
    }

    #[test]
    fn code_that_only_sets_constants_does_nothing() {
        assert!(does_nothing(b""));
        assert!(does_nothing(b"\"\"\"Text.\"\"\"\n# x\n\n__version__ = '0'\nA = 1.5\nB = None\r\n"));
        for code in [&b"import os\n"[..], b"x = f()\n", b"raise ImportError\n", b"x = '''\n"] {
            assert!(!does_nothing(code));
        }
    }
}
