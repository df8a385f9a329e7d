//! Packages beside torch, in synthetic images.

use crate::tests::synthetic::{collect, file, rootfs};
use crate::{Facts, key};
use model::{
    ElfInfo, Endian, Fact, Found, Gap, ImageConfig, PythonImports, SymbolExports, SymbolImport, SymbolImports,
    SymbolLinks, SymbolVersion,
};

const SITE: &str = "usr/local/lib/python3.11/site-packages";
const LD: &str = "lib64/ld-linux-x86-64.so.2";

/// A file of an image.
#[derive(Clone, Copy)]
enum Content<'f> {
    Code(&'f str),
    /// A program whose text is kept.
    Program(&'f str),
    /// A library with what it needs, and symbols that it defines or, with `-` before them, does not.
    Library(&'f [&'f str], &'f [&'f str]),
    /// A library that looks beside itself for what it needs.
    Bundled(&'f [&'f str]),
    /// The same without symbols, with the version of NVSHMEM.
    Nvshmem(&'f [&'f str], &'f str),
    /// Metadata with the release of torch that it requires.
    Pin(&'f str),
    /// A file that could not be read.
    Unread,
}
use Content::{Bundled, Code, Library, Nvshmem, Pin, Program, Unread};

fn elf(needed: &[&str], symbols: &[&str]) -> ElfInfo {
    let undefined = symbols.iter().filter_map(|symbol| symbol.strip_prefix('-'));
    let imports = undefined.map(|symbol| SymbolImport { name: symbol.as_bytes(), version: None });
    let defined = symbols.iter().filter(|symbol| !symbol.starts_with('-'));
    let exports = SymbolExports::new(defined.map(|symbol| (symbol.as_bytes(), SymbolVersion::Base)));
    let needed = needed.iter().map(|name| (*name).to_owned()).collect();
    let links = Ok(SymbolLinks { imports: SymbolImports::new(imports, 0, true), exports });
    ElfInfo { needed, links, ..ElfInfo::bare(64, Endian::Little, 62) }
}

/// The facts of an image with torch and other files, the paths of which may begin with `~/` for the folder of packages.
fn facts(command: &[&str], files: &[(&str, Content<'_>)]) -> Facts {
    let base = [
        (LD, Library(&[], &[])),
        ("usr/local/lib/python3.11/os.py", Code("#")),
        ("~/torch/version.py", Code("__version__ = '2.9.0'\ncuda = None\n")),
        ("~/torch/__init__.py", Code("from torch._C import *\n")),
        ("~/torch/_C.cpython-311-x86_64-linux-gnu.so", Library(&["libc10.so"], &[])),
        ("lib/libc10.so", Library(&[], &["c10_new"])),
    ];
    let program = ElfInfo { kind: 2, interpreter: Some(format!("/{LD}")), ..elf(&[], &["PyErr_New"]) };
    let python = (file("usr/local/bin/python3.11"), vec![Ok(Found::Elf(Box::new(program)))]);
    let entries = base.iter().chain(files).map(|(path, content)| {
        let found = match content {
            Code(code) if path.contains("torch/") => vec![Found::Text(code.as_bytes().into())],
            Code(code) if path.starts_with('~') => vec![Found::PythonImports(PythonImports::read(code.as_bytes()))],
            Program(code) => {
                vec![Found::PythonImports(PythonImports::read(code.as_bytes())), Found::Text(code.as_bytes().into())]
            }
            Code(code) => vec![Found::PythonImports(PythonImports::read(code.as_bytes()))],
            Pin(release) => vec![Found::TorchPin((*release).to_owned())],
            Unread => return (file(&path.replace('~', SITE)), vec![Err(Gap::new("too large"))]),
            Library(needed, symbols) => vec![Found::Elf(Box::new(elf(needed, symbols)))],
            Bundled(needed) => {
                let rpath = vec!["$ORIGIN".to_owned()];
                vec![Found::Elf(Box::new(ElfInfo { rpath, ..elf(needed, &[]) }))]
            }
            Nvshmem(needed, version) => {
                let soname = path.contains("nvshmem_host").then(|| "libnvshmem_host.so.3".to_owned());
                let elf = ElfInfo { soname, ..elf(needed, &[]) };
                vec![Found::Elf(Box::new(elf)), Found::Nvshmem((*version).to_owned())]
            }
        };
        (file(&path.replace('~', SITE)), found.into_iter().map(Ok).collect())
    });
    let environment = [("PATH".to_owned(), "/usr/local/bin".to_owned())].into();
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    let config = ImageConfig { environment, command, ..ImageConfig::default() };
    collect(&rootfs(entries.chain([python])), &config)
}

/// What is broken of what the program imports, and of the rest.
fn broken(command: &[&str], files: &[(&str, Content<'_>)]) -> [String; 2] {
    let facts = facts(command, files);
    [key::EXTENSION_BROKEN, key::EXTENSION_BROKEN_UNUSED].map(|key| match facts.get(key) {
        Fact::Seen { value, .. } => value.join("; ").replace(&format!("/{SITE}/"), "~/"),
        Fact::Absent => String::new(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    })
}

const EXTENSION: &str = "~/flash_cuda.cpython-311-x86_64-linux-gnu.so";
const OTHER_ABI: (&str, Content<'_>) = (EXTENSION, Library(&["libc10.so"], &["-c10_old", "-PyErr_New"]));
const WHY: &str = "flash 2.7: ~/flash_cuda.cpython-311-x86_64-linux-gnu.so: undefined symbol: c10_old";
const METADATA: (&str, Content<'_>) = ("~/flash-2.7.dist-info/WHEEL", Code(""));

#[test]
fn an_extension_for_another_torch_counts_where_it_is_imported() {
    let train = |code| ("work/train.py", Code(code));
    let package = |code| ("~/flash/__init__.py", Code(code));
    let start: &[&str] = &["python3.11", "/work/train.py"];
    let other = ("work/helper.py", Code("from flash import f\n"));
    for (command, program, init, imported) in [
        (start, train("import torch\nimport flash\n"), package("import flash_cuda\n"), [WHY, ""]),
        (start, train("import helper\n"), package("import flash_cuda\n"), [WHY, ""]),
        (start, train("import flash.inner\n"), package("from .inner import x\n"), [WHY, ""]),
        (&["python3.11", "-c", "import flash"], train(""), package("import flash_cuda\n"), [WHY, ""]),
        (&["python3.11", "-m", "flash"], train(""), package("import flash_cuda\n"), [WHY, ""]),
        (start, train("import torch\n"), package("import flash_cuda\n"), ["", WHY]),
        (start, train("def f():\n    import flash\n"), package("import flash_cuda\n"), ["", WHY]),
        (
            start,
            train("try:\n    import flash\nexcept ImportError:\n    pass\n"),
            package("import flash_cuda\n"),
            ["", WHY],
        ),
        (
            start,
            train("import flash\n"),
            package("try:\n    import flash_cuda\nexcept ImportError:\n    pass\n"),
            ["", ""],
        ),
        (start, train("import flash\n"), package("def f():\n    import flash_cuda\n"), ["", ""]),
        (
            start,
            train("import flash\n"),
            package("import os\nif os.getenv('ROCM') is None:\n    import flash_cuda\n"),
            [WHY, ""],
        ),
        (start, train("import flash\n"), package("if find_spec('.inner'):\n    import flash_cuda\n"), [WHY, ""]),
        (start, train("import flash\n"), package("if find_spec('flash.none'):\n    import flash_cuda\n"), ["", ""]),
    ] {
        let inner = ("~/flash/inner.py", Code("import flash_cuda\n"));
        assert_eq!(broken(command, &[OTHER_ABI, METADATA, program, init, inner, other]), imported);
    }
}

#[test]
fn what_is_known_of_one_package_leaves_another_unknown() {
    let files = [
        OTHER_ABI,
        METADATA,
        ("~/flash/__init__.py", Code("import flash_cuda\n")),
        ("~/nixl/__init__.py", Code("from . import _C\n")),
        ("~/nixl/_C.abi3.so", Library(&["libucp.so.0", "libc10.so"], &[])),
        ("lib/libucp.so.0", Unread),
    ];
    let [imported, unused] = broken(&["python3.11", "-c", "import nixl"], &files);
    assert!(imported.starts_with("unknown: ") && imported.contains("too large"), "{imported}");
    assert_eq!(unused, WHY);
    let [imported, unused] = broken(&["python3.11", "-c", "import flash"], &files);
    assert_eq!(imported, WHY);
    assert!(unused.starts_with("unknown: "), "{unused}");
}

#[test]
fn what_the_process_has_is_not_missing() {
    let start = &["python3.11", "-c", "import flash"];
    let init = ("~/flash/__init__.py", Code("from . import _C\n"));
    let with = |content| broken(start, &[init, METADATA, ("~/flash/_C.abi3.so", content)]);
    let none = [String::new(), String::new()];
    assert_eq!(with(Library(&["libc10.so"], &["-c10_new", "-PyErr_New"])), none);
    assert_eq!(with(Library(&["libcuda.so.1", "libc10.so"], &["-cuLaunch"])), none, "the driver is mounted");
    assert_eq!(with(Library(&["libother.so"], &["-unknown"])), none, "it links to nothing that counts");
    let missing = "flash 2.7: ~/flash/_C.abi3.so needs libcudart.so.12: cannot open shared object file: No such file or directory";
    assert_eq!(with(Library(&["libcudart.so.12"], &[])), [missing, ""]);
    let found = facts(start, &[init, ("~/flash/_C.abi3.so", Library(&["libcudart.so.12"], &[]))]);
    let source = &found.get(key::EXTENSION_MISSING).value().unwrap()[0];
    assert!(source.starts_with("libcudart.so.12 (NVIDIA's wheel nvidia-cuda-runtime-cu12"), "{source}");
    let elsewhere = ("opt/cuda/libcudart.so.12", Library(&[], &[]));
    let found = facts(start, &[init, elsewhere, ("~/flash/_C.abi3.so", Library(&["libcudart.so.12"], &[]))]);
    let source = &found.get(key::EXTENSION_MISSING).value().unwrap()[0];
    assert_eq!(source, "libcudart.so.12 (in /opt/cuda, which LD_LIBRARY_PATH does not name)");
}

#[test]
fn code_that_opens_libraries_itself_brings_what_the_image_has() {
    let start = &["python3.11", "-c", "import flash"];
    let extension = ("~/flash/_C.abi3.so", Library(&["libcudart.so.12"], &[]));
    let elsewhere = ("~/nvidia/lib/libcudart.so.12", Library(&[], &[]));
    let plain = ("~/flash/__init__.py", Code("from . import _C\n"));
    let preloads = ("~/flash/__init__.py", Code("import ctypes\nctypes.CDLL(path)\nfrom . import _C\n"));
    let is_broken = |files: &[_]| !broken(start, files).concat().is_empty();
    assert!(is_broken(&[extension, plain, elsewhere]));
    assert!(!is_broken(&[extension, preloads, elsewhere]));
    assert!(is_broken(&[extension, preloads]));
}

#[test]
fn a_library_that_the_program_opens_by_its_name_is_looked_for() {
    let open = |name: &str, files: &[_]| {
        broken(&["python3.11", "-c", &format!("import ctypes\nctypes.CDLL('{name}')")], files)
    };
    let missing = "/usr/local/bin/python3.11 needs libcudart.so: cannot open shared object file: No \
                   such file or directory";
    assert_eq!(open("libcudart.so", &[]), [missing, ""]);
    assert_eq!(open("libcudart.so", &[("usr/lib/libcudart.so", Library(&[], &[])), OTHER_ABI]), ["", ""]);
    assert_eq!(open("libcuda.so.1", &[]), ["", ""], "the driver is mounted");
    assert_eq!(open("libpng.so", &[]), ["", ""]);
}

#[test]
fn libraries_that_no_import_names_are_known_by_their_paths() {
    let old = Library(&["libc10.so"], &["-c10_old"]);
    let new = Library(&["libc10.so"], &["-c10_new"]);
    let init = |package| (package, Code("import torch\n"));
    let run = |files: &[_]| broken(&["python3.11", "-c", "import torchvision, torchcodec"], files);
    let vision = "torchvision: ~/torchvision/_C.so: undefined symbol: c10_old";
    assert_eq!(run(&[("~/torchvision/_C.so", old), init("~/torchvision/__init__.py")]), [vision, ""]);
    let one = ("~/torchcodec/libtorchcodec_core4.so", old);
    let other = ("~/torchcodec/libtorchcodec_core5.so", new);
    assert_eq!(run(&[one, other, init("~/torchcodec/__init__.py")]), ["", ""], "one of several is enough");
    assert!(run(&[one, init("~/torchcodec/__init__.py")])[0].starts_with("torchcodec: "));
    let engine = ("~/transformer_engine/transformer_engine_torch.abi3.so", old);
    assert!(run(&[engine])[1].starts_with("transformer_engine: "), "it is installed");
}

#[test]
fn a_package_for_another_torch_is_named_if_it_has_an_extension_that_loads() {
    let of = |release: &'static str, files: &[(&str, Content<'_>)]| {
        let pin = ("~/flash-2.7.dist-info/METADATA", Pin(release));
        let files: Vec<_> =
            files.iter().copied().chain([pin, ("~/flash/__init__.py", Code("from . import _C\n"))]).collect();
        facts(&["python3.11", "-c", "import torch"], &files).get(key::EXTENSION_OTHER_TORCH).value().cloned()
    };
    let extension = ("~/flash/_C.abi3.so", Library(&["libc10.so"], &["-c10_new"]));
    assert_eq!(of("2.8.0", &[extension]), Some(vec!["flash 2.7 requires torch==2.8.0".to_owned()]));
    assert_eq!(of("2.9.1", &[extension]), None, "the same series");
    assert_eq!(of("2.8.0", &[]), None, "nothing depends on the ABI");
    assert_eq!(
        of("2.8.0", &[("~/flash/_C.abi3.so", Library(&["libc10.so"], &["-c10_old"]))]),
        None,
        "it does not load"
    );
}

#[test]
fn operators_of_another_layout_crash_where_the_program_loads_them() {
    let with = |command: &str, files: &[(&str, Content<'_>)]| {
        let facts = facts(&["python3.11", "-c", command], files);
        [key::EXTENSION_CRASHES, key::EXTENSION_OTHER_TORCH]
            .map(|key| facts.get(key).value().map(|texts| texts.join("; ")).unwrap_or_default())
    };
    let init = ("~/flash/__init__.py", Code("from . import _C\n"));
    let registering = Library(&["libc10.so"], &["-_ZNR5torch7Library5_implEPKcONS_11CppFunctionE"]);
    let layout = ("lib/libc10.so", Library(&[], &["_ZNR5torch7Library5_implEPKcONS_11CppFunctionE", "c10_new"]));
    let pin = |release| ("~/flash-2.7.dist-info/METADATA", Pin(release));
    let flash = |extension, release| [layout, init, ("~/flash/_C.abi3.so", extension), pin(release)];
    let text = "flash 2.7 requires torch==2.8.0";
    assert_eq!(with("import flash", &flash(registering, "2.8.0")), [text, ""]);
    assert_eq!(with("import torch", &flash(registering, "2.8.0")), ["", text], "it is only installed");
    assert_eq!(with("import flash", &flash(registering, "2.10.0")), ["", "flash 2.7 requires torch==2.10.0"]);
    let plain = Library(&["libc10.so"], &["-c10_new"]);
    assert_eq!(with("import flash", &flash(plain, "2.8.0")), ["", text], "it registers nothing");
    // The first needs what an earlier one would have brought.
    let codec = [
        layout,
        ("~/torchcodec/__init__.py", Code("import ctypes\n")),
        ("~/torchcodec/libtorchcodec_core4.so", Library(&["libc10.so", "libavutil.so.56"], &[])),
        ("~/torchcodec/libtorchcodec_core5.so", Library(&["libc10.so"], &[])),
        ("~/torchcodec/libtorchcodec_custom_ops4.so", Library(&["libc10.so", "libtorchcodec_core4.so"], &[])),
        ("~/torchcodec/libtorchcodec_custom_ops5.so", registering),
        ("~/torchcodec-0.7.0.dist-info/METADATA", Code("")),
    ];
    assert_eq!(with("import torchcodec", &codec), ["torchcodec 0.7.0 is built for torch 2.8", ""]);
}

#[test]
fn of_alternatives_the_one_that_the_image_has_more_for_is_named() {
    let files = [
        ("~/torchcodec/__init__.py", Code("import torch\n")),
        ("~/torchcodec/libtorchcodec_core4.so", Library(&["libc10.so", "libavutil.so.56"], &[])),
        ("~/torchcodec/libtorchcodec_core5.so", Library(&["libc10.so", "libpython3.11.so.1.0"], &[])),
        ("~/torchcodec/libtorchcodec_core7.so", Library(&["libc10.so", "libavutil.so.59"], &[])),
    ];
    let run = |files: &[_]| broken(&["python3.11", "-c", "import torchcodec"], files)[0].clone();
    assert!(run(&files).contains("libavutil.so.59"), "{}", run(&files));
    let installed = [&files[..], &[("usr/lib/libavutil.so.57", Library(&[], &[]))]].concat();
    assert!(run(&installed).contains("libpython3.11.so.1.0"), "{}", run(&installed));
    let old = ("~/torchcodec/libtorchcodec_core6.so", Library(&["libc10.so"], &["-c10_old"]));
    assert!(run(&[&files[..], &[old]].concat()).contains("c10_old"));
}

#[test]
fn compilers_count_where_the_program_imports_what_compiles() {
    let with = |command: &str, files: &[(&str, Content<'_>)]| {
        let packages = ["triton", "deepspeed", "vllm"].map(|name| format!("~/{name}/__init__.py"));
        let packages = packages.iter().map(|path| (path.as_str(), Code("")));
        let facts = facts(&["python3.11", "-c", command], &files.iter().copied().chain(packages).collect::<Vec<_>>());
        [key::EXTENSION_NO_COMPILER, key::EXTENSION_NO_NVCC]
            .map(|key| facts.get(key).value().map(|modules| modules.join(" ")).unwrap_or_default())
    };
    let gcc = ("usr/local/bin/gcc", Library(&[], &[]));
    let clang = ("usr/local/bin/clang", Library(&[], &[]));
    let header = ("usr/local/include/python3.11/Python.h", Library(&[], &[]));
    let nvcc = ("usr/local/cuda/bin/nvcc", Library(&[], &[]));
    let both = "import triton.language, deepspeed";
    assert_eq!(with(both, &[]), ["triton", "deepspeed"]);
    assert_eq!(with("import torch", &[]), ["", ""]);
    assert_eq!(with("try:\n    import triton\nexcept ImportError:\n    pass\n", &[]), ["", ""]);
    assert_eq!(with(both, &[gcc]), ["triton", "deepspeed"], "without the header");
    assert_eq!(with(both, &[header]), ["triton", "deepspeed"]);
    assert_eq!(with(both, &[gcc, header]), ["", "deepspeed"]);
    assert_eq!(with(both, &[clang, header, nvcc]), ["", ""]);
    assert_eq!(with(both, &[gcc, header, ("usr/local/bin/nvcc", Library(&[], &[]))]), ["", ""]);
    assert_eq!(with("import vllm", &[]), ["vllm", ""]);
    let vllm = [("~/vllm/__init__.py", Code(""))];
    let without_triton = facts(&["python3.11", "-c", "import vllm"], &vllm);
    assert_eq!(*without_triton.get(key::EXTENSION_NO_COMPILER), Fact::Absent, "it compiles nothing without Triton");
}

#[test]
fn device_code_and_host_library_of_nvshmem_are_compared() {
    let with = |command: &str, device: &'static str| {
        let files = [
            ("~/deep_ep/__init__.py", Code("import deep_ep_cpp\n")),
            ("~/deep_ep_cpp.abi3.so", Nvshmem(&["libnvshmem_host.so.3"], device)),
            ("usr/lib/libnvshmem_host.so.3", Nvshmem(&[], "3.6.5")),
            ("~/nvidia/nvshmem/lib/libnvshmem_host.so.3", Nvshmem(&[], "3.4.5")),
        ];
        let facts = facts(&["python3.11", "-c", command], &files);
        let [used, unused] = [key::NVSHMEM_MISMATCH, key::NVSHMEM_MISMATCH_UNUSED]
            .map(|key| facts.get(key).value().map(|texts| texts.join("; ")).unwrap_or_default());
        (used, unused, facts.get(key::NVSHMEM_FITTING).value().map(ToString::to_string).unwrap_or_default())
    };
    let text = format!(
        "deep_ep_cpp: /{SITE}/deep_ep_cpp.abi3.so has the device code of NVSHMEM 3.4.5, and the host library is 3.6.5: \
         /usr/lib/libnvshmem_host.so.3 (default directory /usr/lib)"
    );
    let fitting = format!("/{SITE}/nvidia/nvshmem/lib/libnvshmem_host.so.3");
    assert_eq!(with("import deep_ep", "3.4.5"), (text.clone(), String::new(), fitting.clone()));
    assert_eq!(with("import torch", "3.4.5"), (String::new(), text, fitting));
    assert_eq!(with("import deep_ep", "3.6.5"), (String::new(), String::new(), String::new()));
}

#[test]
fn torch_gets_the_library_of_what_the_program_imports_before_it() {
    let extension = ("~/cupy/_core.cpython-311-x86_64-linux-gnu.so", Bundled(&["libc10.so"]));
    let own = ("~/cupy/libc10.so", Library(&[], &["c10_new"]));
    let package = ("~/cupy/__init__.py", Code("from cupy import _core\n"));
    let loaded = |code: &str, more: &[(&str, Content<'_>)]| {
        let train = [("work/train.py", Code(code)), extension, own, package];
        let facts = facts(&["python3.11", "/work/train.py"], &[&train, more].concat());
        let loaded = facts.get(key::TORCH_LOADED).value().cloned().unwrap();
        loaded.contains(&format!("/{SITE}/cupy/libc10.so"))
    };
    assert!(loaded("import cupy\nimport torch\n", &[]));
    assert!(!loaded("import torch\nimport cupy\n", &[]));
    assert!(!loaded("import cupy\n", &[]));
    assert!(!loaded("if x:\n    import cupy\nimport torch\n", &[]));
    let job = ("work/job.py", Code("import cupy\n"));
    assert!(loaded("import job\nimport torch\n", &[job]));
    let other = ("~/other/__init__.py", Code("import torch\n"));
    assert!(!loaded("import other\nimport cupy\nimport torch\n", &[other]));
}

/// What `/work/train.py` imports and is not found, and what else is said of it.
fn absent(code: &str, files: &[(&str, Content<'_>)]) -> String {
    let train = [("work/train.py", Program(code))];
    let facts = facts(&["python3.11", "/work/train.py"], &[&train, files].concat());
    match facts.get(key::START_ABSENT_MODULES) {
        Fact::Seen { value, .. } => value.join("; ").replace(&format!("/{SITE}/"), "~/"),
        Fact::Absent => String::new(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    }
}

#[test]
fn modules_that_installed_packages_certainly_import_must_be_found() {
    let init = |code| ("~/serve/__init__.py", Code(code));
    let from = |code| ("~/serve/io.py", Code(code));
    let none = ("~/none.py", Code(""));
    let io = "orjson (~/serve/io.py, line 1)";
    for (program, files, expected) in [
        ("import serve\n", [init("from .io import x\n"), from("import orjson\n"), none], io),
        ("from serve import io\n", [init(""), from("import orjson\n"), none], io),
        ("import serve.io\n", [init(""), from("import orjson.a.b\n"), none], io),
        ("import serve\n", [init(""), from("import orjson\n"), none], ""),
        ("try:\n    import serve\nexcept ImportError:\n    pass\n", [init("import orjson\n"), none, none], ""),
        (
            "import serve\n",
            [init("try:\n    from . import io\nexcept ImportError: io = None\n"), from("import orjson\n"), none],
            "",
        ),
        (
            "import serve\n",
            [init("def f():\n    import orjson\nif TYPE_CHECKING:\n    import orjson\n"), none, none],
            "",
        ),
        ("import serve\n", [init("with try_import():\n    import orjson\n"), none, none], ""),
        // Code that makes modules, and folders that only packages search.
        (
            "import serve\n",
            [init("import sys\nsys.modules['orjson'] = x\nfrom . import io\n"), from("import orjson\n"), none],
            "",
        ),
        ("import serve\n", [init("import orjson\n"), ("~/vendor/_vendor/orjson.py", Code("")), none], ""),
        ("import serve\n", [init("import orjson\n"), ("opt/lib/orjson.py", Code("")), none], ""),
        (
            "import hook\nimport serve\n",
            [init("import orjson\n"), ("~/hook.py", Code("import sys\nsys.meta_path.append(x)\n")), none],
            "",
        ),
        // Those of another interpreter are not found.
        (
            "import serve\n",
            [init("import orjson\n"), ("opt/venv/lib/python3.11/site-packages/orjson.py", Code("")), none],
            "orjson (~/serve/__init__.py, line 1)",
        ),
        // What the job imports itself is not affected by what a package may do to its own.
        (
            "import hook\nimport numpy\n",
            [init(""), ("~/hook.py", Code("import sys\nsys.meta_path.append(x)\n")), none],
            "numpy (/work/train.py, line 2)",
        ),
        (
            "import hook\nimport numpy\n",
            [init(""), ("~/hook.py", Code("import sys\nsys.modules['numpy'] = x\n")), none],
            "",
        ),
    ] {
        assert_eq!(absent(program, &files), expected, "{program} {:?}", files.map(|(path, _)| path));
    }
}

#[test]
fn modules_that_the_program_certainly_imports_must_be_found() {
    let none: &[(&str, Content<'_>)] = &[];
    for (code, files, expected) in [
        ("import torch\nimport numpy\n", none, "numpy (/work/train.py, line 2)"),
        ("import torch, json, distutils.util, _x\n", none, ""),
        ("import imp\nimport numpy as np\nimport numpy.linalg\n", none, "numpy (/work/train.py, line 2)"),
        ("import numpy\n", &[("~/numpy/__init__.py", Code(""))], ""),
        ("import google.protobuf\n", &[("~/google/protobuf/__init__.py", Code(""))], ""),
        ("import numpy\n", &[("work/numpy.py", Code(""))], ""),
        ("import helper\n", &[("work/helper.py", Code("import numpy\n"))], "numpy (/work/helper.py, line 1)"),
        (
            "try:\n    import helper\nexcept ModuleNotFoundError:\n    pass\n",
            &[("work/helper.py", Code("import numpy\n"))],
            "",
        ),
        ("import flash\n", &[("~/flash/__init__.py", Code("import numpy\n"))], "numpy (~/flash/__init__.py, line 1)"),
        ("import sys\nsys.path.insert(0, '/src')\nimport a\n", &[("src/a.py", Code(""))], ""),
        ("import sys\nsys.path.insert(0, '/src')\nimport b\n", &[("src/a.py", Code(""))], "b (/work/train.py, line 3)"),
        (
            "import torch\nimport sys\nsys.path.append(f())\nimport b\n",
            none,
            "unknown: /work/train.py may change where modules come from",
        ),
        (
            "import sys\nsys.path.append('/data/src')\nimport b\n",
            none,
            "unknown: /data/src, an entry of sys.path that the image does not have, may be mounted",
        ),
        (
            "import ray\nimport psutil\n",
            &[("~/ray/__init__.py", Code("")), ("~/ray/thirdparty/psutil/__init__.py", Code(""))],
            "unknown: /usr/local/lib/python3.11/site-packages/ray/thirdparty has psutil, and the package that it is in may add it to \
             sys.path",
        ),
        (
            "import sys\nsys.path.insert(0, '/src')\nimport b\n",
            &[("src/a.py", Code("")), ("src/3rdparty/b/c.py", Code(""))],
            "b (/work/train.py, line 3)",
        ),
        (
            "import psutil\n",
            &[("~/ray/__init__.py", Code("")), ("~/ray/psutil/__init__.py", Code(""))],
            "psutil (/work/train.py, line 1)",
        ),
    ] {
        assert_eq!(absent(code, files), expected, "{code}");
    }
}

#[test]
fn other_places_of_absent_modules_are_named() {
    let of = |code: &str, files: &[(&str, Content<'_>)]| {
        let train = [("work/train.py", Program(code))];
        let facts = facts(&["python3.11", "/work/train.py"], &[&train, files].concat());
        let elsewhere = facts.get(key::START_MODULES_ELSEWHERE).value().map(|folders| folders.join(" "));
        let path = |key| facts.get(key).value().map(ToString::to_string);
        (elsewhere.unwrap_or_default(), path(key::START_MODULES_FOLDER), path(key::START_MODULES_PYTHON))
    };
    let source = [("root/Megatron-LM/megatron/training/arguments.py", Code(""))];
    let folder = "/root/Megatron-LM".to_owned();
    assert_eq!(of("from megatron.training import x\n", &source), (folder.clone(), Some(folder.clone()), None));
    assert_eq!(of("import megatron\nimport b\n", &source), (folder, None, None), "it lacks the other one");
    let site = "opt/venv/lib/python3.11/site-packages";
    let files = [
        ("opt/venv/pyvenv.cfg", Program("home = /usr/local/bin\ninclude-system-site-packages = true\n")),
        ("opt/venv/bin/python", Library(&[], &[])),
        (&*format!("{site}/numpy/__init__.py"), Code("")),
    ];
    assert_eq!(of("import numpy\n", &files), (format!("/{site}"), None, Some("/opt/venv/bin/python".to_owned())));
}

/// What `/work/train.py` compiles in vain, without its place.
fn build_fails(code: &str, files: &[(&str, Content<'_>)]) -> String {
    let base = [("work/train.py", Program(code)), ("~/triton/__init__.py", Code(""))];
    let facts = facts(&["python3.11", "/work/train.py"], &[&base, files].concat());
    let texts = facts.get(key::EXTENSION_BUILD_FAILS).value().map(|texts| texts.join("; ")).unwrap_or_default();
    texts.replace("/work/train.py, ", "").replace("there is no ", "no ").replace(" in PATH", "")
}

#[test]
fn what_the_program_compiles_needs_its_compiler() {
    let program = |name: &'static str| (name, Library(&[], &[]));
    let gcc = program("usr/local/bin/gcc");
    for (code, expected) in [
        ("import torch\nm = torch.compile(f(x))\n", "torch.compile (line 2): no gcc or clang"),
        ("import torch as t\ndef main():\n    m = t.compile(f)\nmain()\n", "torch.compile (line 3): no gcc or clang"),
        ("import torch\nif x:\n    m = torch.compile(f)\n", ""),
        ("import torch\ntry:\n    g()\n    m = torch.compile(f)\nexcept Exception:\n    pass\n", ""),
        ("import torch\ndef f():\n    m = torch.compile(f)\n", ""),
        ("import torch\nm = torch.compile(f, backend='eager')\n", ""),
        ("import torch\ntorch._dynamo.config.suppress_errors = True\nm = torch.compile(f)\n", ""),
        ("import torch\n@torch.compile\ndef f():\n    pass\n", ""),
        (
            "import torch, triton\n@triton.jit\ndef add(x):\n    pass\nadd[(1,)](x)\n",
            "the kernel add (line 5): no gcc or clang",
        ),
        ("import torch\ndef add(x):\n    pass\nadd[(1,)](x)\n", ""),
    ] {
        assert_eq!(build_fails(code, &[]), expected, "{code}");
        assert_eq!(build_fails(code, &[gcc]), "", "{code}");
        assert_eq!(build_fails(code, &[program("root/.triton/cache/x/cuda_utils.so")]), "", "{code}");
    }
    let [ninja, cxx] = ["usr/local/bin/ninja", "usr/local/bin/c++"].map(program);
    let load = "from torch.utils.cpp_extension import load\nm = load(name='x', sources=['x.cpp'])\n";
    let name = "torch.utils.cpp_extension.load (line 2): ";
    assert_eq!(build_fails(load, &[]), format!("{name}no ninja"));
    assert_eq!(build_fails(load, &[ninja]), format!("{name}no c++"));
    assert_eq!(build_fails(load, &[ninja, cxx]), "");
    let cuda = load.replace("x.cpp", "x.cu");
    let unset = "CUDA_HOME is not set, and no nvcc or in /usr/local/cuda";
    assert_eq!(build_fails(&cuda, &[ninja, cxx]), format!("{name}{unset}"));
    let nvcc = program("usr/local/cuda/bin/nvcc");
    assert_eq!(build_fails(&cuda, &[ninja, cxx, nvcc]), "");
    let own = format!("import os\nos.environ['CUDA_HOME'] = '/usr/local/cuda-12'\n{cuda}");
    let wrong = "torch.utils.cpp_extension.load (line 4): CUDA_HOME is /usr/local/cuda-12, which has no bin/nvcc";
    assert_eq!(build_fails(&own, &[ninja, cxx, nvcc]), wrong);
    assert_eq!(build_fails(&own.replace("'/usr/local/cuda-12'", "f()"), &[ninja, cxx]), "", "it is computed");
    assert_eq!(build_fails(&cuda, &[program("root/.cache/torch_extensions/x/build.ninja")]), "");
}

#[test]
fn the_library_of_bitsandbytes_is_computed() {
    let init = ("~/bitsandbytes/__init__.py", Code("from . import cextension\n"));
    let of = |code: &str, release: &str, files: &[&str]| {
        let paths: Vec<_> = files.iter().map(|cuda| format!("~/bitsandbytes/libbitsandbytes_cuda{cuda}.so")).collect();
        let cublas = |path: &String| if path.contains("cuda11") { "libcublas.so.11" } else { "libc10.so" };
        let needed: Vec<_> = paths.iter().map(|path| [cublas(path)]).collect();
        let libraries = paths.iter().zip(&needed).map(|(path, needed)| (path.as_str(), Library(needed, &[])));
        let metadata = format!("~/bitsandbytes-{release}.dist-info/WHEEL");
        let base = [
            init,
            (&*metadata, Code("")),
            ("work/train.py", Program(code)),
            ("~/torch/version.py", Code("__version__ = '2.9.0+cu129'\ncuda = '12.9'\n")),
        ];
        let files: Vec<_> = base.into_iter().chain(libraries).collect();
        let facts = facts(&["python3.11", "/work/train.py"], &files);
        let missing = facts.get(key::EXTENSION_NO_BITSANDBYTES).value().map(|path| path.file_name().to_vec());
        let choice = facts.get(key::EXTENSION_BITSANDBYTES_CHOICE).value().cloned().unwrap_or_default();
        let broken = facts.get(key::EXTENSION_BROKEN).value().map(Vec::len);
        (String::from_utf8(missing.unwrap_or_default()).unwrap(), choice, broken)
    };
    let import = "import torch\nimport bitsandbytes\n";
    let missing = "libbitsandbytes_cuda129.so".to_owned();
    let none = (String::new(), String::new(), None);
    assert_eq!(of(import, "0.45.5", &["128", "129"]), none);
    assert_eq!(of(import, "0.45.5", &["128", "130"]), (missing.clone(), String::new(), None));
    assert_eq!(of("import torch\n", "0.45.5", &["128"]), none, "it is only installed");
    assert_eq!(of(import, "0.50.0", &["128", "130"]), none, "another one of the same major release");
    assert_eq!(of(import, "0.50.0", &["1210"]), none);
    assert_eq!(of(import, "0.50.0", &["130"]), (missing, String::new(), None));
    let chosen = |cuda: &str| format!("import os\nos.environ['BNB_CUDA_VERSION'] = '{cuda}'\n{import}");
    let other = ("libbitsandbytes_cuda124.so".to_owned(), "124".to_owned(), None);
    assert_eq!(of(&chosen("124"), "0.50.0", &["128", "129"]), other);
    assert_eq!(
        of(&chosen("118"), "0.45.5", &["118", "129"]),
        (String::new(), String::new(), Some(1)),
        "it needs cuBLAS 11"
    );
    assert_eq!(of(&chosen(""), "0.45.5", &["129"]), none);
}
