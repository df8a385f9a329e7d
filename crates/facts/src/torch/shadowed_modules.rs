//! Modules of the program's folder in place of those that `import torch` imports.

use model::{Fact, ImagePath};

use super::super::python::Importable;
use super::super::{Context, Facts, key};

/// The modules that `import torch` imports, from the statements of torch 2.9.0 and of what it imports in turn. Those are left
/// out that the interpreter has imported before it looks into the program's folder (`os`, `io`, `abc`).
const IMPORTED: &str = "argparse ast asyncio base64 bdb bisect bz2 calendar cmd code codeop collections concurrent contextlib \
    contextvars copy copyreg csv ctypes dataclasses datetime difflib dis email enum fnmatch functools gettext glob gzip hashlib \
    heapq http inspect ipaddress json keyword linecache locale logging lzma multiprocessing numbers operator pathlib pdb pickle \
    pkgutil platform pprint queue random re reprlib selectors shutil signal socket ssl string struct subprocess tarfile \
    tempfile textwrap threading timeit token tokenize traceback types typing typing_extensions unittest urllib uuid warnings \
    weakref zipfile";

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let python = context.python.as_ref().filter(|_| context.torch.imported_as.is_some());
    let Some(python) = python else { return facts.insert(key::TORCH_SHADOWED_MODULES, Fact::Absent) };
    let mut texts = Vec::new();
    let mut at = Vec::new();
    for name in IMPORTED.split_ascii_whitespace() {
        match python.hidden(context.rootfs, name) {
            Err(gap) => return facts.insert(key::TORCH_SHADOWED_MODULES, Fact::Unknown(gap)),
            Ok(None) => {}
            Ok(Some((own, installed))) => {
                let opened = context.rootfs.open(code(&own)).ok();
                at.extend(opened.map(|(real, file)| file.site(&real, None)));
                texts.push(format!("{}, which hides {}", own.path(), code(&installed)));
            }
        }
    }
    let fact = if texts.is_empty() { Fact::Absent } else { Fact::Seen { value: texts, at } };
    facts.insert(key::TORCH_SHADOWED_MODULES, fact);
}

/// The file with a module's code.
const fn code(module: &Importable) -> &ImagePath {
    match module {
        Importable::Package(_, file) | Importable::Module(file) | Importable::Namespace(file) => file,
    }
}

#[cfg(test)]
mod tests {
    use model::ImageConfig;

    use super::*;
    use crate::tests::synthetic::{collect, rootfs, text_or_link};

    #[test]
    fn a_module_of_the_programs_folder_hides_an_installed_one() {
        let of = |files: &[&str], command: &[&str]| {
            let system = ["python3.11/os.py", "python3.11/queue.py", "python3.11/logging/__init__.py"];
            let system = system.map(|path| format!("usr/lib/{path}"));
            let torch = ["__init__.py", "version.py"].map(|name| format!("usr/lib/python3/dist-packages/torch/{name}"));
            let own = files.iter().map(|path| (*path).to_owned());
            let texts = system.into_iter().chain(torch).chain(own).map(|path| (path, "#"));
            let links = [("usr/bin/python3", "-> python3.11"), ("usr/bin/python3.11", "elf")];
            let links = links.map(|(path, text)| (path.to_owned(), text));
            let image = rootfs(texts.chain(links).map(|(path, text)| text_or_link(&path, text)));
            let command = command.iter().map(|word| (*word).to_owned()).collect();
            let config = ImageConfig { command, working_directory: "/app".to_owned(), ..ImageConfig::default() };
            collect(&image, &config).get(key::TORCH_SHADOWED_MODULES).value().cloned().unwrap_or_default().join("; ")
        };
        let queue = "/app/queue.py, which hides /usr/lib/python3.11/queue.py";
        for (file, command, expected) in [
            ("app/queue.py", &["python3", "/app/train.py"][..], queue),
            ("app/queue.py", &["python3", "-m", "train"], queue),
            ("app/queue.py", &["python3", "-P", "/app/train.py"], ""),
            ("app/queue.py", &["python3", "-I", "-m", "train"], ""),
            ("app/queue.py", &["python3", "/srv/train.py"], ""),
            (
                "app/logging/__init__.py",
                &["python3", "train.py"],
                "/app/logging, which hides /usr/lib/python3.11/logging/__init__.py",
            ),
            ("app/logging/x.py", &["python3", "train.py"], ""),
            ("app/os.py", &["python3", "train.py"], ""),
            ("app/heapq.py", &["python3", "train.py"], ""),
        ] {
            assert_eq!(of(&[file, "app/train.py", "srv/train.py"], command), expected, "{file} {command:?}");
        }
    }
}
