//! Extension modules of Python, by the names of their files; and what Python says if it does not find torch's.

use model::{Gap, ImagePath, escape};
use rootfs::RootFs;
use rootfs::loader::Stop;

use super::super::pattern;
use super::super::python::Python;
use super::interpreter::machine_of;

pattern!(ADVICE, r#"(?s-u)Failed to load PyTorch C extensions[^\n]*(?:.*?(?:"""|'''))?"#);

/// Torch's extension module.
pub(super) const NAME: &str = "_C";

/// The path of an extension module in the first directory that has it (CPython, `_imp.extension_suffixes`).
pub(super) fn find(rootfs: &RootFs, python: &Python, folders: &[ImagePath], name: &str) -> Option<String> {
    let own = format!("{name}.cpython-3{}", python.minor?);
    // Builds without the global interpreter lock mark it in the names of the interpreter and of its modules.
    let is_free = python.program.as_ref().is_ok_and(|program| program.file_name().ends_with(b"t"));
    let machine = machine_of(rootfs, python);
    for folder in folders {
        let mut names =
            rootfs.names_with(folder, own.as_bytes()).map(|name| String::from_utf8_lossy(name).into_owned());
        let is_own = |file: &String| {
            let platform = file.strip_prefix(&own).and_then(|rest| rest.strip_suffix(".so"));
            let platform = platform.and_then(|rest| rest.strip_prefix(if is_free { "t-" } else { "-" }));
            platform.is_some_and(|platform| machine.is_none_or(|machine| platform.starts_with(machine)))
        };
        let plain = [format!("{name}.abi3.so"), format!("{name}.so")];
        let found = names
            .find(is_own)
            .or_else(|| plain.into_iter().find(|file| rootfs.open(&folder.join(file.as_bytes())).is_ok()));
        if let Some(file) = found {
            return Some(format!("{}/{file}", spelled(folder)));
        }
    }
    None
}

/// Why Python has no `_ctypes`, which `torch/__init__.py` imports through `ctypes`: a build from source leaves it out without the
/// headers of libffi. A build with its modules in its program has no `_json` among those of the library either.
pub(super) fn lacks_ctypes(rootfs: &RootFs, python: &Python) -> Option<String> {
    let folders: Vec<_> = python.path.iter().filter(|folder| folder.file_name() == b"lib-dynload").cloned().collect();
    let is_left_out =
        find(rootfs, python, &folders, "_json").is_some() && find(rootfs, python, &python.path, "_ctypes").is_none();
    let folder = folders.first().filter(|_| is_left_out)?;
    Some(format!("{folder} has no _ctypes: this Python was built without the headers of libffi"))
}

/// A path as a program would write it.
pub(super) fn spelled(path: &ImagePath) -> String {
    format!("/{}", String::from_utf8_lossy(path.as_bytes()))
}

/// Why this interpreter does not find torch's extension, and Python's message about it.
pub(super) fn missing(rootfs: &RootFs, python: &Python, package: &ImagePath, init: &[u8]) -> (Stop, Option<String>) {
    let Some(minor) = python.minor else {
        return (Gap::new(format!("the version of the Python that imports {package} is unknown")).into(), None);
    };
    let is_extension = |name: &&[u8]| name.starts_with(b"_C.") && name.ends_with(b".so");
    let others: Vec<_> = rootfs.names(package).filter(is_extension).map(escape).collect();
    let cause = match others.as_slice() {
        [] => format!("{package} has no extension {NAME}"),
        others => format!("{package} has {}, which Python 3.{minor} does not load", others.join(" and ")),
    };
    // Python takes a directory of the same name for a namespace package, and torch checks that.
    let advice = rootfs.is_directory(&package.join(NAME.as_bytes())).then(|| advice(init)).flatten();
    let message = match advice {
        Some(advice) => format!("ImportError: {advice}"),
        None => format!("ModuleNotFoundError: No module named 'torch.{NAME}'"),
    };
    (Stop::Fails(message), Some(cause))
}

/// The text that `torch/__init__.py` prints when its extension is a namespace package, in one line.
fn advice(init: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(ADVICE.find(init)?.as_bytes());
    let text = text.trim_end_matches(['"', '\'']);
    Some(text.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_that_torch_prints_ends_with_its_literal() {
        let of = |init: &str| advice(init.as_bytes());
        assert_eq!(of("import os\n"), None);
        let text = "Failed to load PyTorch C extensions: It's the `torch/_C` folder. This can occur";
        for quotes in ["\"\"\"", "'''"] {
            let body = "Failed to load PyTorch C extensions:\n    It's the `torch/_C` folder.\n\n    This can occur\n";
            let init =
                format!("raise ImportError(textwrap.dedent({quotes}\n{body}{quotes}).strip()) from None\nx = 1\n");
            assert_eq!(of(&init).as_deref(), Some(text));
        }
        assert_eq!(
            of("# Failed to load PyTorch C extensions\nx").as_deref(),
            Some("Failed to load PyTorch C extensions")
        );
    }
}
