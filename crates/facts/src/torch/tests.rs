//! Imports that fail, in synthetic images.

use crate::tests::synthetic::{collect, file, rootfs};
use crate::{Facts, key};
use model::{ElfInfo, Endian, Fact, Found, ImageConfig, VersionNeed};

const SITE: &str = "usr/local/lib/python3.11/site-packages";
const LD: &str = "lib64/ld-linux-x86-64.so.2";
const CHECK: &str =
    "from typing_extensions import ParamSpec as _ParamSpec, TypeIs as _TypeIs\n# Failed to load PyTorch C extensions\n";

/// Files with their text, or none for ELF files without dependencies.
type Files<'f> = Vec<(String, Option<&'f str>)>;

/// An image of Python 3.11 with torch and what it requires.
fn image(init: &str) -> Files<'_> {
    let site = |name: &str| format!("{SITE}/{name}");
    vec![
        (LD.to_owned(), None),
        ("usr/local/bin/python3.11".to_owned(), None),
        ("usr/local/lib/python3.11/os.py".to_owned(), Some("#")),
        (site("torch/version.py"), Some("__version__ = '2.9.0'\ncuda = None\n")),
        (site("torch/__init__.py"), Some(init)),
        (site("torch/_C/__init__.pyi"), Some("#")),
        (site("torch/_C.cpython-311-x86_64-linux-gnu.so"), None),
        (site("torch/lib/libtorch_cpu.so"), None),
        (site("torch-2.9.0.dist-info/METADATA"), Some(METADATA)),
        (site("typing_extensions.py"), Some("#")),
        (site("typing_extensions-4.16.0.dist-info/METADATA"), Some("#")),
        (site("sympy-1.14.0.dist-info/METADATA"), Some("#")),
    ]
}

const METADATA: &str = "Name: torch\nRequires-Dist: typing-extensions>=4.10.0\nRequires-Dist: sympy>=1.13.3\n\
    Requires-Dist: setuptools; python_version >= \"3.12\"\nRequires-Dist: optree; extra == \"optree\"\n\
    Requires-Dist: nvidia-nccl-cu12==2.27.5; platform_system == \"Linux\"\n\nRequires-Dist: prose\n";

fn facts(files: &Files<'_>, interpreter: &str) -> Facts {
    let program =
        ElfInfo { kind: 2, interpreter: Some(interpreter.to_owned()), ..ElfInfo::bare(64, Endian::Little, 62) };
    let need = VersionNeed { file: "libc.so.6".to_owned(), versions: vec!["GLIBC_2.28".to_owned()], weak: Vec::new() };
    let of_torch = ElfInfo { version_needs: vec![need], ..ElfInfo::bare(64, Endian::Little, 62) };
    let found = |path: &str, text: Option<&str>| match text {
        Some(text) => Found::Text(text.as_bytes().into()),
        None if path.contains("/bin/") => Found::Elf(Box::new(program.clone())),
        None if path.contains("libtorch") => Found::Elf(Box::new(of_torch.clone())),
        None => Found::Elf(Box::new(ElfInfo::bare(64, Endian::Little, 62))),
    };
    let environment = [("PATH".to_owned(), "/usr/local/bin".to_owned())].into();
    let config = ImageConfig { environment, command: vec!["python3.11".to_owned()], ..ImageConfig::default() };
    collect(&rootfs(files.iter().map(|(path, text)| (file(path), vec![Ok(found(path, *text))]))), &config)
}

/// The error of the import in a glibc image, and whether the mapped libraries are listed.
fn error(files: &Files<'_>) -> (String, bool) {
    let facts = facts(files, &format!("/{LD}"));
    let error = match facts.get(key::TORCH_IMPORT_ERROR) {
        Fact::Seen { value, .. } => value.clone(),
        Fact::Absent => "none".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    };
    (error, facts.get(key::TORCH_LOADED).value().is_some())
}

fn renamed<'f>(mut files: Files<'f>, from: &str, to: &str) -> Files<'f> {
    let file = files.iter_mut().find(|(path, _)| path.contains(from)).unwrap();
    file.0 = file.0.replace(from, to);
    files
}

#[test]
fn the_import_of_a_complete_image_succeeds() {
    assert_eq!(error(&image(CHECK)), ("none".to_owned(), true));
}

#[test]
fn an_extension_of_another_python_is_not_found() {
    for other in [
        "_C.cpython-312-x86_64-linux-gnu.so",
        "_C.cpython-311-aarch64-linux-gnu.so",
        "_C.cpython-311t-x86_64-linux-gnu.so",
    ] {
        let files = renamed(image(CHECK), "_C.cpython-311-x86_64-linux-gnu.so", other);
        let why = format!("/{SITE}/torch has {other}, which Python 3.11 does not load");
        let expected = "ImportError: Failed to load PyTorch C extensions".to_owned();
        assert_eq!(error(&files), (expected, false), "the package has a directory of this name");
        let cause = facts(&files, &format!("/{LD}"));
        assert_eq!(cause.get(key::TORCH_IMPORT_CAUSE).value(), Some(&why));
        let files = renamed(files, "torch/_C/__init__.pyi", "torch/other.pyi");
        let expected = "ModuleNotFoundError: No module named 'torch._C'".to_owned();
        assert_eq!(error(&files), (expected, false));
    }
    let files = renamed(image(CHECK), "_C.cpython-311-x86_64-linux-gnu.so", "_C.abi3.so");
    assert_eq!(error(&files), ("none".to_owned(), true));
}

#[test]
fn what_has_torchs_name_and_is_not_pytorch_is_not_followed() {
    let other = |code| renamed(image(code), "torch/version.py", "torch/other.py");
    let why = format!("unknown: /{SITE}/torch/__init__.py is not PyTorch, and what its import does is not followed");
    assert_eq!(error(&other("import os\n")), (why, false));
}

#[test]
fn a_missing_or_old_module_fails_the_import() {
    let missing = renamed(image(CHECK), "typing_extensions.py", "other.py");
    let missing = renamed(missing, "typing_extensions-4.16.0.dist-info", "other-1.dist-info");
    assert_eq!(error(&missing), ("ModuleNotFoundError: No module named 'typing_extensions'".to_owned(), false));
    let old = renamed(image(CHECK), "typing_extensions-4.16.0", "typing_extensions-4.9.0");
    let expected =
        format!("ImportError: cannot import name 'TypeIs' from 'typing_extensions' (/{SITE}/typing_extensions.py)");
    assert_eq!(error(&old), (expected, false));
    let unused = renamed(image("import ctypes\n"), "typing_extensions.py", "other.py");
    assert_eq!(error(&unused).0, "none");
}

#[test]
fn a_python_without_libffi_fails_the_import() {
    let of = |modules: &[&str]| {
        let mut files = image(CHECK);
        let names = modules
            .iter()
            .map(|name| format!("usr/local/lib/python3.11/lib-dynload/{name}.cpython-311-x86_64-linux-gnu.so"));
        files.extend(names.map(|path| (path, None)));
        error(&files).0
    };
    assert_eq!(of(&["_json"]), "ModuleNotFoundError: No module named '_ctypes'");
    assert_eq!(of(&[]), "none", "its modules are in its program");
}

#[test]
fn requirements_that_the_import_does_not_need_are_listed() {
    let list =
        |files: &Files<'_>| facts(files, &format!("/{LD}")).get(key::TORCH_MISSING_REQUIREMENTS).value().cloned();
    assert_eq!(list(&image(CHECK)), None);
    let old = renamed(image(CHECK), "sympy-1.14.0", "sympy-1.12");
    assert_eq!(list(&old), Some(vec!["sympy>=1.13.3 (1.12 is installed)".to_owned()]));
    let missing = renamed(image(CHECK), "sympy-1.14.0", "other-1");
    assert_eq!(list(&missing), Some(vec!["sympy>=1.13.3 (not installed)".to_owned()]));
    assert_eq!(error(&missing).0, "none");
}

#[test]
fn the_images_python_may_have_no_torch() {
    let moved: Files<'_> = image(CHECK)
        .into_iter()
        .map(|(path, text)| {
            let is_torch = path.contains("site-packages");
            (if is_torch { path.replace("usr/local/lib/python3.11", "opt/apps/lib/python3.12") } else { path }, text)
        })
        .collect();
    assert_eq!(error(&moved), ("ModuleNotFoundError: No module named 'torch'".to_owned(), false));
}

#[test]
fn a_torch_for_glibc_fails_on_musl() {
    let facts = facts(&image(CHECK), "/lib/ld-musl-x86_64.so.1");
    let expected = format!(
        "/{SITE}/torch/lib/libtorch_cpu.so is built for glibc, and /usr/local/bin/python3.11 runs on musl \
         (/lib/ld-musl-x86_64.so.1)"
    );
    assert_eq!(facts.get(key::TORCH_IMPORT_ERROR).value(), Some(&expected));
    assert!(facts.get(key::TORCH_LOADED).value().is_none());
}

#[test]
fn the_release_of_numpy_is_that_of_its_metadata() {
    let record = "torch-2.9.0.dist-info/INSTALLER,sha256=zuuue4knoyJ-UwPPXg8fezS7VCrXJQrAP7zeNuwvFQg,4\n";
    let numpy = |name: &str| {
        let mut files = image(CHECK);
        files.push((format!("{SITE}/torch-2.9.0.dist-info/RECORD"), Some(record)));
        files.push((format!("{SITE}/{name}"), Some("#")));
        facts(&files, &format!("/{LD}")).get(key::TORCH_NUMPY).value().map(ToString::to_string)
    };
    assert_eq!(numpy("numpy-2.0.2.dist-info/METADATA").as_deref(), Some("2.0.2"));
    assert_eq!(numpy("numpy/__init__.py"), None, "no release is known");
    assert_eq!(numpy("other/__init__.py"), None);
}
