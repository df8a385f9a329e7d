pub(super) mod synthetic;

use std::sync::Arc;

use layer::scan::LayerScan;
use model::{Found, Limits};

use super::*;

/// An image of text files and symbolic links (`-> TARGET`), with an environment.
fn facts_of(files: &[(&str, &str)], environment: &[(&str, &str)]) -> Facts {
    facts_of_layer(layer(files), environment)
}

fn layer(files: &[(&str, &str)]) -> LayerScan {
    synthetic::layer(files.iter().map(|(path, content)| synthetic::text_or_link(path, content)))
}

/// Makes an entry of a layer a library.
fn put(layer: &mut LayerScan, index: usize, library: Vec<Result<Found, Gap>>) {
    layer.entries[index].size = 4096;
    layer.found.insert(index, library);
}

fn facts_of_layer(layer: LayerScan, environment: &[(&str, &str)]) -> Facts {
    let rootfs = RootFs::fold(vec![Arc::new(layer)], &Limits::default());
    let environment = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let config = ImageConfig { environment, ..ImageConfig::default() };
    synthetic::collect(&rootfs, &config)
}

fn text_of(facts: &Facts, name: &str) -> String {
    match facts.view(key::find(name).unwrap()) {
        Fact::Seen { value, .. } => value.to_string(),
        Fact::Absent => "absent".to_owned(),
        Fact::Unknown(gap) => format!("unknown: {gap}"),
    }
}

#[test]
fn names_nest_and_are_unique() {
    for (index, key) in key::KEYS.iter().enumerate() {
        for other in key::KEYS.iter().skip(index + 1) {
            assert_ne!(key.name, other.name);
            for (short, long) in [(key.name, other.name), (other.name, key.name)] {
                assert!(!long.starts_with(&format!("{short}.")), "{short} is a fact and the beginning of {long}");
            }
        }
    }
}

#[test]
fn an_empty_image_has_no_unknown_facts() {
    for (name, fact) in facts_of(&[], &[]).iter() {
        assert!(!matches!(fact, Fact::Unknown(_)), "{name}: {fact:?}");
    }
}

#[test]
fn the_version_of_torch_is_read_in_the_forms_of_its_releases() {
    const OLD: &str =
        "__version__ = '2.0.1+cu117'\ndebug = False\ncuda = '11.7'\ngit_version = 'e9ebda2'\nhip = None\n";
    const NEW: &str = "from typing import Optional\n__version__ = '2.9.0+cu128'\ncuda: Optional[str] = '12.8'\n";
    const CPU: &str = "__version__ = '2.9.0+cpu'\ncuda: Optional[str] = None\n";
    for (text, version, cuda) in [
        (OLD, "2.0.1+cu117", "11.7"),
        (NEW, "2.9.0+cu128", "12.8"),
        (CPU, "2.9.0+cpu", "absent"),
        (
            "__version__ = 2\n",
            "unknown: torch/version.py does not set __version__",
            "unknown: torch/version.py does not set cuda",
        ),
    ] {
        let facts = facts_of(&[("usr/lib/python3/dist-packages/torch/version.py", text)], &[]);
        assert!(text_of(&facts, "torch.version").starts_with(version), "{text}");
        assert!(text_of(&facts, "torch.cuda.version").starts_with(cuda), "{text}");
        assert_eq!(text_of(&facts, "torch.cuda.build"), "false");
    }
    for requirement in ["nvidia-nccl-cu11 (==2.14.3) ; x", "nvidia-nccl-cu11==2.14.3; x"] {
        let facts = facts_of(
            &[
                ("usr/lib/python3/dist-packages/torch/version.py", OLD),
                (
                    "usr/lib/python3/dist-packages/torch-2.0.1.dist-info/METADATA",
                    &format!("Requires-Dist: {requirement}\n"),
                ),
            ],
            &[],
        );
        assert_eq!(text_of(&facts, "torch.nccl_pin"), "nvidia-nccl-cu11==2.14.3");
    }
}

#[test]
fn use_nccl_is_on_off_or_unknown() {
    let with = |value: &str| {
        let header = format!(
            "#define CAFFE2_BUILD_STRINGS {{ \\\n  {{\"USE_NCCL\", \"{value}\"}}, \\\n  {{\"X\", \"1\"}}, \\\n}}\n"
        );
        let version = ("opt/site-packages/torch/version.py", "__version__ = '2.9.0'\ncuda = None\n");
        facts_of(&[version, ("opt/site-packages/torch/include/caffe2/core/macros.h", &header)], &[])
    };
    for (value, expected) in
        [("1", "true"), ("ON", "true"), ("OFF", "false"), ("0", "false"), ("", "false"), ("2", "unknown")]
    {
        assert!(text_of(&with(value), "torch.use_nccl").starts_with(expected), "{value}");
    }
}

#[test]
fn build_options_of_several_files_are_compared() {
    use model::BuildOptions;
    const VERSION: &str = "__version__ = '2.9.0a0+git0fabc3b'\ncuda = '12.8'\n";
    let options = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    };
    let contradictions = |code: Option<&[(&str, &str)]>, header: &[(&str, &str)]| {
        let header: String =
            header.iter().map(|(name, value)| ["{\"", name, "\", \"", value, "\"}, "].concat()).collect();
        let header = format!("#define CAFFE2_BUILD_STRINGS {{ {header} }}\n");
        let mut layer = layer(&[
            ("opt/site-packages/torch/version.py", VERSION),
            ("opt/site-packages/torch/include/caffe2/core/macros.h", &header),
            ("opt/site-packages/torch/lib/libtorch_cpu.so", "elf"),
        ]);
        let code = code.map(|code| Found::BuildOptions(BuildOptions { options: options(code), cxx11_abi: true }));
        let elf = Found::Elf(Box::new(model::ElfInfo::bare(64, model::Endian::Little, 62)));
        let found = [Ok(elf), code.ok_or_else(|| Gap::new("the code is lost"))];
        layer.found.insert(2, found.into());
        facts_of_layer(layer, &[])
    };
    let same: &[_] = &[("TORCH_VERSION", "2.9.0"), ("CUDA_VERSION", "12.8"), ("ROCM_VERSION", "")];
    let facts = contradictions(Some(same), same);
    assert_eq!(text_of(&facts, "torch.build_contradictions"), "absent");
    assert_eq!(text_of(&facts, "torch.build"), "CUDA_VERSION=12.8, TORCH_VERSION=2.9.0");
    assert_eq!(text_of(&facts, "torch.cxx11_abi"), "true");
    let facts = contradictions(Some(&[("USE_MPI", "ON"), ("CUDA_VERSION", "12.6")]), &[("USE_MPI", "OFF")]);
    assert_eq!(
        text_of(&facts, "torch.build_contradictions"),
        "CUDA_VERSION is 12.6 in libtorch_cpu.so, not set in macros.h, USE_MPI is ON in libtorch_cpu.so, OFF in macros.h, \
         CUDA_VERSION is 12.6, torch.cuda.version is 12.8"
    );
    let facts = contradictions(None, same);
    assert_eq!(text_of(&facts, "torch.build"), "CUDA_VERSION=12.8, TORCH_VERSION=2.9.0");
    assert_eq!(text_of(&facts, "torch.build_code"), "unknown: the code is lost");
    assert_eq!(text_of(&facts, "torch.build_contradictions"), "unknown: the code is lost");
    assert!(text_of(&facts, "torch.cxx11_abi").starts_with("unknown"));
}

#[test]
fn the_torch_that_python_imports_is_chosen() {
    const VERSION: &str = "__version__ = '1'\ncuda = None\n";
    let system = ("usr/lib/python3/dist-packages/torch/version.py", VERSION);
    let local = ("usr/local/lib/python3.11/dist-packages/torch/version.py", VERSION);
    let venv = ("opt/venv/lib/python3.11/site-packages/torch/version.py", VERSION);
    let conda = ("opt/conda/lib/python3.10/site-packages/torch/version.py", VERSION);
    let cached = ("opt/conda/pkgs/pytorch-1/lib/python3.10/site-packages/torch/version.py", VERSION);
    let interpreters = [
        ("usr/bin/python3", "-> python3.11"),
        ("usr/bin/python3.11", "elf"),
        ("opt/venv/bin/python", "-> /usr/bin/python3"),
        ("opt/venv/pyvenv.cfg", "home = /usr/bin"),
        ("opt/conda/bin/python", "-> python3.10"),
        ("opt/conda/bin/python3.10", "elf"),
        ("opt/conda/pkgs/pytorch-1/info/index.json", "{}"),
    ];
    for (path, installs, expected) in [
        ("/usr/bin", &[system, local, venv][..], "/usr/local/lib/python3.11/dist-packages/torch"),
        ("/usr/bin", &[system, venv], "/usr/lib/python3/dist-packages/torch"),
        ("/opt/venv/bin:/usr/bin", &[system, venv], "/opt/venv/lib/python3.11/site-packages/torch"),
        ("/opt/conda/bin:/usr/bin", &[system, conda, cached], "/opt/conda/lib/python3.10/site-packages/torch"),
        ("/usr/bin", &[venv], "/opt/venv/lib/python3.11/site-packages/torch"),
        ("/usr/bin", &[venv, conda], "absent"),
        ("/usr/bin", &[cached], "absent"),
    ] {
        let files: Vec<_> = interpreters.iter().chain(installs).copied().collect();
        let facts = facts_of(&files, &[("PATH", path)]);
        assert!(text_of(&facts, "torch.path").starts_with(expected), "{path}: {}", text_of(&facts, "torch.path"));
    }
}

#[test]
fn values_of_other_variables_are_never_shown() {
    let facts = facts_of(&[], &[("NCCL_DEBUG", "INFO"), ("API_TOKEN", "secret"), ("PATH", "/bin")]);
    assert_eq!(text_of(&facts, "image.env"), "NCCL_DEBUG=INFO, PATH=/bin");
    assert_eq!(text_of(&facts, "image.other_env"), "API_TOKEN");
    assert!(!format!("{facts:?}").contains("secret"));
}

/// A library that needs others, with an additional finding.
fn library(soname: &str, needed: &[&str], found: Option<Found>) -> Vec<Result<Found, Gap>> {
    let mut elf = model::ElfInfo::bare(64, model::Endian::Little, 62);
    elf.soname = Some(soname.to_owned());
    elf.needed = needed.iter().map(|name| (*name).to_owned()).collect();
    [Found::Elf(Box::new(elf))].into_iter().chain(found).map(Ok).collect()
}

fn nccl_of(version: &str) -> Found {
    Found::Nccl(model::NcclStrings { version: version.to_owned(), ..Default::default() })
}

/// The wheels of NVIDIA for several CUDA releases have most paths in common.
#[test]
fn wheels_that_overwrite_each_others_files_are_reported() {
    const SITE: &str = "usr/lib/python3/dist-packages";
    const FOLDER: &str = "nvidia/cudnn/lib";
    // Name, version, and the hash and size of the libraries in the record. The files have three bytes.
    let overwritten = |wheels: &[(&str, &str, &str, u64)], unread: bool| {
        let names = ["libcudnn.so.9", "libcudnn_ops.so.9"];
        let mut files: Vec<_> = names.map(|name| (format!("{SITE}/{FOLDER}/{name}"), "elf".to_owned())).into();
        for (name, version, hash, size) in wheels {
            let info = format!("{SITE}/{}-{version}.dist-info", name.replace('-', "_"));
            let record: String = names.map(|name| format!("{FOLDER}/{name},sha256={hash},{size}\n")).concat();
            files.push((format!("{info}/METADATA"), format!("Name: {name}\nVersion: {version}\n")));
            files.push((format!("{info}/RECORD"), record));
        }
        let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let mut layer = layer(&files);
        if unread {
            layer.found.insert(3, vec![Err(Gap::new("too long"))]);
        }
        text_of(&facts_of_layer(layer, &[]), "cuda.overwritten")
    };
    let twelve = ("nvidia-cudnn-cu12", "9.10", "x", 3);
    assert_eq!(overwritten(&[twelve], false), "absent");
    assert_eq!(overwritten(&[twelve], true), "unknown: too long");
    assert_eq!(overwritten(&[twelve, ("nvidia-cudnn-cu13", "9.12", "x", 3)], false), "absent", "the same file");
    assert_eq!(overwritten(&[("one", "1", "x", 3), ("other", "1", "y", 3)], false), "absent", "not NVIDIA's");
    let with = |size| overwritten(&[twelve, ("nvidia-cudnn-cu13", "9.12", "y", size)], false);
    let both = "/usr/lib/python3/dist-packages/nvidia/cudnn/lib/libcudnn.so.9 and 1 more of nvidia-cudnn-cu12 9.10 and \
                nvidia-cudnn-cu13 9.12";
    assert_eq!(with(4), format!("{both} (that of nvidia-cudnn-cu12 9.10 is there)"));
    assert_eq!(with(3), format!("{both} (which wheel wrote it is unknown)"));
    let neither = overwritten(&[("nvidia-cudnn-cu12", "9.10", "x", 5), ("nvidia-cudnn-cu13", "9.12", "y", 4)], false);
    assert_eq!(neither, format!("{both} (which wheel wrote it is unknown)"));
}

#[test]
fn modules_that_would_load_another_nccl_are_reported() {
    const CUPY: &str = "usr/lib/python3/dist-packages/cupy_backends/nccl.so";
    let reported_with = |module: &str, version: &str, wheels: &[&str]| {
        let wheels: Vec<_> =
            wheels.iter().map(|wheel| format!("usr/lib/python3/dist-packages/{wheel}.dist-info/METADATA")).collect();
        let files = [
            ("usr/bin/python3", "-> python3.11"),
            ("usr/bin/python3.11", "elf"),
            ("usr/lib/python3/dist-packages/torch/version.py", "__version__ = '1'\ncuda = '12.8'\n"),
            ("usr/lib/libnccl.so.2", "elf"),
            (module, "elf"),
            ("usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2", "elf"),
        ];
        let wheels = wheels.iter().map(|path| (&**path, "#"));
        let mut layer = layer(&files.into_iter().chain(wheels).collect::<Vec<_>>());
        put(&mut layer, 3, library("libnccl.so.2", &[], Some(nccl_of(version))));
        put(&mut layer, 4, library("nccl.so", &["libnccl.so.2"], None));
        put(&mut layer, 5, library("libnccl.so.2", &[], Some(nccl_of("2.27.5"))));
        let rootfs = RootFs::fold(vec![Arc::new(layer)], &Limits::default());
        let config =
            ImageConfig { environment: [("PATH".to_owned(), "/usr/bin".to_owned())].into(), ..ImageConfig::default() };
        let world = FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] };
        let context = Context::new(&world);
        let loaded = Fact::known(model::Version::parse("2.27.5").unwrap());
        nccl::other_users(&context, &loaded).value().map(|texts| texts.join(", ")).unwrap_or_default()
    };
    let reported = |module: &str, version: &str| reported_with(module, version, &[]);
    assert_eq!(
        reported(CUPY, "2.16.2"),
        "/usr/lib/python3/dist-packages/cupy_backends/nccl.so would load NCCL 2.16.2 from /usr/lib/libnccl.so.2"
    );
    assert_eq!(reported(CUPY, "2.27.5"), "");
    // The stand-in for NVIDIA's wheel has the NCCL of torch.
    assert_eq!(reported_with(CUPY, "2.16.2", &["cupy_cuda12x-13.6.0", "nvidia_nccl_cu12-2.27.5"]), "");
    for wheels in [
        &["cupy_cuda12x-13.4.1", "nvidia_nccl_cu12-2.27.5"][..],
        &["cupy_cuda12x-13.6.0", "nvidia_nccl_cu13-2.27.5"],
        &["cupy_cuda12x-13.6.0", "nvidia_nccl_cu12-2.15.1"],
        &["cupy_cuda12x-13.6.0"],
        &["nvidia_nccl_cu12-2.27.5"],
    ] {
        assert!(reported_with(CUPY, "2.16.2", wheels).ends_with("2.16.2 from /usr/lib/libnccl.so.2"), "{wheels:?}");
    }
    assert_eq!(reported("usr/lib/python3/dist-packages/torch/lib/libtorch_cuda.so", "2.16.2"), "");
    assert_eq!(reported("opt/nccl-tests/all_reduce_perf", "2.16.2"), "");
}

#[test]
fn copies_of_libibverbs_that_nccl_does_not_open_are_reported() {
    // Nothing is loaded from the stores of conda and uv.
    let paths = [
        "usr/lib/libibverbs.so.1",
        "opt/pkgs/x/libibverbs.so.1",
        "opt/conda/pkgs/rdma-core-1/lib/libibverbs.so.1",
        "root/.cache/uv/archive-v0/x/libibverbs.so.1",
    ];
    let files =
        paths.map(|path| (path, "elf")).into_iter().chain([("opt/conda/pkgs/rdma-core-1/info/index.json", "{}")]);
    let mut layer = layer(&files.collect::<Vec<_>>());
    (0..paths.len()).for_each(|index| put(&mut layer, index, library("libibverbs.so.1", &[], None)));
    if let Some(Ok(Found::Elf(elf))) = layer.found.get_mut(&1).and_then(|found| found.first_mut()) {
        elf.version_gives = vec!["IBVERBS_1.1".to_owned(), "IBVERBS_PRIVATE_59".to_owned()];
    }
    let facts = facts_of_layer(layer, &[]);
    assert_eq!(text_of(&facts, "rdma.verbs"), "/usr/lib/libibverbs.so.1");
    assert_eq!(text_of(&facts, "rdma.not_loaded"), "/opt/pkgs/x/libibverbs.so.1 (IBVERBS_PRIVATE_59)");
}

#[test]
fn what_a_configuration_leaves_open_is_unknown() {
    let mut layer = layer(&[
        ("usr/bin/python3", "elf"),
        ("usr/lib/python3/dist-packages/torch/version.py", "__version__ = '1'\n"),
        ("usr/lib/libibverbs.so.1", "elf"),
    ]);
    put(&mut layer, 2, library("libibverbs.so.1", &[], None));
    let rootfs = RootFs::fold(vec![Arc::new(layer)], &Limits::default());
    let gap = || model::Gap::new("only a shell can determine");
    let unknown = |change: &dyn Fn(&mut model::UnknownConfig)| {
        let mut config =
            ImageConfig { environment: [("PATH".to_owned(), "/usr/bin".to_owned())].into(), ..ImageConfig::default() };
        change(&mut config.unknown);
        let facts = Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] });
        let names = facts
            .iter()
            .filter(|(_, fact)| matches!(fact, Fact::Unknown(gap) if gap.why == "only a shell can determine"));
        names.map(|(name, _)| name).collect::<Vec<_>>()
    };
    let variable = |name: &'static str| {
        let names = unknown(&|unknown| _ = unknown.variables.insert(name.to_owned(), gap()));
        move |fact: &str| names.contains(&fact)
    };
    assert_eq!(unknown(&|_| ()), [""; 0]);
    assert_eq!(unknown(&|unknown| unknown.user = Some(gap())), ["image.user", "image.working_directory", "start.user"]);
    assert_eq!(
        unknown(&|unknown| unknown.command = Some(gap())),
        ["image.command", "image.entrypoint", "start.command"]
    );
    let path = variable("PATH");
    assert!(path("python.path") && path("torch.version") && path("image.env") && !path("nvidia.visible_devices"));
    let library = variable("LD_LIBRARY_PATH");
    assert!(library("rdma.verbs") && library("env.bad_values") && !library("python.path"));
    let devices = variable("NVIDIA_VISIBLE_DEVICES");
    assert!(devices("nvidia.visible_devices") && !devices("rdma.verbs"));
    let all = unknown(&|unknown| unknown.environment = Some(gap()));
    for name in ["python.path", "rdma.verbs", "nvidia.visible_devices", "image.env", "image.other_env"] {
        assert!(all.contains(&name), "{name} in {all:?}");
    }
}

/// Facts of which one is not inserted yet.
fn owing() -> Facts {
    let mut facts = Facts::default();
    facts.set_owed(&key::IMAGE_OS, true);
    facts
}

#[test]
#[should_panic(expected = "image.os is read before it is produced")]
fn a_fact_that_is_read_before_it_is_produced_is_a_defect() {
    owing().get(key::IMAGE_OS);
}

#[test]
fn a_fact_that_was_never_inserted_is_unknown_and_not_absent() {
    let mut facts = owing();
    facts.settle();
    let owed: Vec<_> = facts.iter().collect();
    assert_eq!(owed, [("image.os", &Fact::unknown("not determined"))]);
}
