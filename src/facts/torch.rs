//! PyTorch: which one is imported, how it was built, and how it is linked to NCCL.

use std::collections::BTreeMap;

use crate::model::{DynamicSymbol, ElfInfo, Fact, Gap, ImagePath, Site, Version};
use crate::rootfs::loader::elf;
use crate::rootfs::{File, RootFs};

use super::python::Python;
use super::{Context, Facts, key, pattern, text};

// torch/version.py, as tools/generate_torch_version.py writes it; the annotation of `cuda` came with 2.2.
pattern!(VERSION, r"(?m)^__version__ *= *'([^']+)'");
pattern!(GIT_VERSION, r"(?m)^git_version *= *'([^']+)'");
pattern!(CUDA, r"(?m)^cuda *(?:: *Optional\[str\])? *= *(?:'([^']+)'|None)");
// caffe2/core/macros.h.in: CAFFE2_BUILD_STRINGS.
pattern!(BUILD_STRING, r#"\{"([A-Z0-9_]+)", "((?:[^"\\]|\\.)*)"\}"#);
// Core metadata 2.0 put the specifier into parentheses.
pattern!(NCCL_PIN, r"(?m)^Requires-Dist: *(nvidia-nccl-cu\d+) *\(?(==[0-9.]+)");

/// The torch packages of an image.
#[derive(Debug)]
pub(super) struct Installation {
    all: Vec<(ImagePath, Site)>,
    /// The one that this check is about.
    chosen: Fact<ImagePath>,
}

impl Installation {
    pub(super) fn find(rootfs: &RootFs, python: &Python) -> Self {
        let mut all = Vec::new();
        for (path, file) in rootfs.files().filter(|(path, _)| path.ends_with("torch/version.py")) {
            let package = path.parent();
            let folder = package.parent();
            // A conda package cache holds copies that nobody imports.
            let is_cache = package.components().any(|part| part == b"pkgs");
            if matches!(folder.file_name(), b"site-packages" | b"dist-packages") && !is_cache {
                all.push((package, file.site(&path, None)));
            }
        }
        let chosen = Self::choose(rootfs, python, &all);
        Self { all, chosen }
    }

    /// The first on the interpreter's path; else the only one there is.
    fn choose(rootfs: &RootFs, python: &Python, all: &[(ImagePath, Site)]) -> Fact<ImagePath> {
        let imported = python.site_packages.iter().find_map(|folder| {
            let (real, file) = rootfs.open(&folder.join(b"torch/version.py")).ok()?;
            Some(Fact::seen(real.parent(), [file.site(&real, None)]))
        });
        imported.unwrap_or_else(|| match all {
            [] => Fact::Absent,
            [(package, site)] => Fact::seen(package.clone(), [site.clone()]),
            several => {
                let paths: Vec<_> = several.iter().map(|(package, _)| package.to_string()).collect();
                Fact::Unknown(Gap::new(format!(
                    "there are {} torch packages, and the Python on PATH imports none of them: {}",
                    several.len(),
                    paths.join(", ")
                )))
            }
        })
    }
}

/// A library of torch, with what the loader reads of it.
#[derive(Clone, Debug)]
pub(super) struct Library<'a> {
    pub(super) path: ImagePath,
    pub(super) file: File<'a>,
    pub(super) elf: &'a ElfInfo,
}

impl Library<'_> {
    pub(super) fn site(&self, within: Option<&str>) -> Site {
        self.file.site(&self.path, within)
    }

    /// Dynamic symbols of a kind, or why they are not known.
    fn symbols(&self, wanted: impl Fn(&DynamicSymbol) -> bool) -> Result<bool, Gap> {
        match &self.elf.symbols {
            Ok(symbols) => Ok(symbols.iter().any(wanted)),
            Err(gap) => Err(Gap::new(format!("{}: {}", self.path, gap.why))),
        }
    }
}

impl<'a> Context<'a> {
    /// The libraries of torch of these names, wherever its packaging puts them: a wheel in the package's `lib`, conda-forge
    /// in the environment's, Debian in the system's. Unknown when one is there that could not be read.
    pub(super) fn torch_libraries(&self, names: impl Fn(&[u8]) -> bool) -> Fact<Vec<Library<'a>>> {
        let package = match &self.torch.chosen {
            Fact::Seen { value, .. } => value,
            Fact::Absent => return Fact::Absent,
            Fact::Unknown(gap) => return Fact::Unknown(gap.clone()),
        };
        let rootfs = self.rootfs;
        let environment = package.parent().parent().parent();
        let multiarch = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu"].map(ImagePath::from);
        let folders = [package.join(b"lib"), environment].into_iter().chain(multiarch);
        for folder in folders {
            let mut libraries: Vec<Library<'a>> = Vec::new();
            for name in rootfs.names(&folder).filter(|name| names(name)) {
                let Ok((path, file)) = rootfs.open(&folder.join(name)) else {
                    continue;
                };
                let Some(elf) = elf(&file) else {
                    let why = file.found.iter().find_map(|found| found.as_ref().err());
                    return Fact::Unknown(why.cloned().unwrap_or_else(|| Gap::new(format!("{path} is no ELF file"))));
                };
                if !libraries.iter().any(|known| known.file.is_same(&file)) {
                    libraries.push(Library { path, file, elf });
                }
            }
            if !libraries.is_empty() {
                let at = libraries.iter().map(|library| library.site(None)).collect();
                return Fact::Seen { value: libraries, at };
            }
        }
        Fact::Absent
    }

    /// The libraries that may hold or use NCCL: 1.13 split its CUDA code in two.
    pub(super) fn torch_cuda(&self) -> Fact<Vec<Library<'a>>> {
        self.torch_libraries(|name| is_library(name, b"libtorch_cuda") || is_library(name, b"libtorch_cuda_cpp"))
    }
}

/// `name.so` or `name.so.VERSION`.
fn is_library(file: &[u8], name: &[u8]) -> bool {
    file.strip_prefix(name)
        .and_then(|rest| rest.strip_prefix(b".so"))
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
}

/// A yes or no from the symbols of several libraries: yes if one says so, unknown if none does and one cannot be read.
fn any_symbol(libraries: &[Library<'_>], within: &str, wanted: impl Fn(&DynamicSymbol) -> bool) -> Fact<bool> {
    let mut gap = None;
    for library in libraries {
        match library.symbols(&wanted) {
            Ok(true) => return Fact::seen(true, [library.site(Some(within))]),
            Ok(false) => {}
            Err(unread) => gap = gap.or(Some(unread)),
        }
    }
    gap.map_or_else(|| Fact::seen(false, libraries.iter().map(|library| library.site(Some(within)))), Fact::Unknown)
}

fn is_process_group(symbol: &DynamicSymbol) -> bool {
    symbol.name.contains("16ProcessGroupNCCL")
}

pub(super) fn produce(context: &Context<'_>, facts: &mut Facts) {
    let installation = &context.torch;
    let installs = match installation.all.as_slice() {
        [] => Fact::Absent,
        all => Fact::Seen {
            value: all.iter().map(|(package, _)| package.to_string()).collect::<Vec<_>>(),
            at: all.iter().map(|(_, site)| site.clone()).collect(),
        },
    };
    facts.insert(key::TORCH_INSTALLS, installs);
    facts.insert(key::TORCH_PATH, installation.chosen.clone().map(|package| package.to_string()));

    let inside = |name: &str| {
        installation.chosen.clone().and_then(|package, _| text(context.rootfs, &package.join(name.as_bytes())))
    };
    let version_file = inside("version.py");
    let capture = |bytes: &[u8], pattern: &regex::bytes::Regex| {
        pattern
            .captures(bytes)
            .and_then(|captures| captures.get(1))
            .map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned())
    };
    let unreadable = |what: &str| {
        Fact::Unknown(Gap::new(format!("torch/version.py does not say {what} in the way that PyTorch writes it")))
    };
    facts.insert(
        key::TORCH_VERSION,
        version_file.clone().and_then(|bytes, at| {
            let version = capture(bytes, &VERSION).and_then(|text| Version::parse(&text));
            version.map_or_else(|| unreadable("__version__"), |value| Fact::Seen { value, at })
        }),
    );
    facts.insert(
        key::TORCH_GIT_VERSION,
        version_file
            .clone()
            .and_then(|bytes, at| capture(bytes, &GIT_VERSION).map_or(Fact::Absent, |value| Fact::Seen { value, at })),
    );
    facts.insert(
        key::TORCH_CUDA_VERSION,
        version_file.and_then(|bytes, at| {
            if !CUDA.is_match(bytes) {
                return unreadable("cuda");
            }
            match capture(bytes, &CUDA) {
                None => Fact::Absent,
                Some(text) => {
                    Version::parse(&text).map_or_else(|| unreadable("cuda"), |value| Fact::Seen { value, at })
                }
            }
        }),
    );

    let build = inside("include/caffe2/core/macros.h");
    let build: Fact<BTreeMap<String, String>> = match build {
        Fact::Absent if installation.chosen.value().is_some() => Fact::Unknown(Gap::new(
            "torch/include/caffe2/core/macros.h does not ship in this build, and its options stand only in code",
        )),
        other => other.and_then(|bytes, at| {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let options = BUILD_STRING.captures_iter(bytes).map(|captures| (text(&captures[1]), text(&captures[2])));
            let options: BTreeMap<_, _> = options.filter(|(_, value)| !value.is_empty()).collect();
            if options.is_empty() {
                return Fact::Unknown(Gap::new("torch/include/caffe2/core/macros.h holds no CAFFE2_BUILD_STRINGS"));
            }
            Fact::Seen { value: options, at }
        }),
    };
    facts.insert(
        key::TORCH_USE_NCCL,
        build.clone().and_then(|options, at| {
            // CMake's truths; an option without a value is off, and was left out above.
            match options.get("USE_NCCL").map(|value| value.to_ascii_uppercase()).as_deref() {
                Some("1" | "ON" | "TRUE" | "YES" | "Y") => Fact::Seen { value: true, at },
                None | Some("0" | "OFF" | "FALSE" | "NO" | "N") => Fact::Seen { value: false, at },
                Some(other) => Fact::Unknown(Gap::new(format!("USE_NCCL is '{other}', which is neither on nor off"))),
            }
        }),
    );
    facts.insert(key::TORCH_BUILD, build);

    let cuda = context.torch_cuda();
    facts.insert(
        key::TORCH_CUDA_BUILD,
        match (&installation.chosen, &cuda) {
            (Fact::Seen { at, .. }, Fact::Absent) => Fact::Seen { value: false, at: at.clone() },
            (_, other) => other.clone().map(|_| true),
        },
    );
    facts.insert(key::TORCH_NCCL_LINKAGE, linkage(&cuda));
    facts.insert(
        key::TORCH_PROCESS_GROUP_NCCL,
        cuda.and_then(|libraries, _| {
            any_symbol(&libraries, "dynamic symbols", |symbol| symbol.defined && is_process_group(symbol))
        }),
    );
    let binding = context.torch_libraries(|name| is_library(name, b"libtorch_python"));
    facts.insert(
        key::NCCL_AVAILABLE,
        binding.and_then(|libraries, _| any_symbol(&libraries, "dynamic symbols", is_process_group)),
    );

    let pin = installation.chosen.clone().and_then(|package, _| {
        match facts.get(key::TORCH_VERSION.name) {
            Fact::Seen { value, .. } => {
                let version = value.to_string();
                // The folder is named after the wheel's version, which on the default index has no +cuNNN.
                let names = [version.as_str(), version.split('+').next().unwrap_or_default()];
                let metadata = names.iter().map(|version| {
                    text(
                        context.rootfs,
                        &package.parent().join(format!("torch-{version}.dist-info/METADATA").as_bytes()),
                    )
                });
                metadata.into_iter().find(|fact| !matches!(fact, Fact::Absent)).unwrap_or(Fact::Absent)
            }
            Fact::Absent => Fact::Absent,
            Fact::Unknown(gap) => Fact::Unknown(gap.clone()),
        }
    });
    facts.insert(
        key::TORCH_NCCL_PIN,
        pin.and_then(|bytes, at| {
            let text = |part: &[u8]| String::from_utf8_lossy(part).into_owned();
            let pin = NCCL_PIN.captures(bytes).map(|captures| text(&captures[1]) + &text(&captures[2]));
            pin.map_or(Fact::Absent, |value| Fact::Seen { value, at })
        }),
    );
}

/// How NCCL's code is reached: defined inside, imported, or not at all.
fn linkage(cuda: &Fact<Vec<Library<'_>>>) -> Fact<String> {
    cuda.clone().and_then(|libraries, _| {
        let within = "dynamic symbols";
        let inside = any_symbol(&libraries, within, |symbol| symbol.defined && symbol.name == "ncclGetVersion");
        let imported = any_symbol(&libraries, within, |symbol| !symbol.defined && symbol.name.starts_with("nccl"));
        match (inside, imported) {
            (Fact::Seen { value: true, at }, _) => Fact::Seen { value: "static".to_owned(), at },
            (_, Fact::Seen { value: true, at }) => Fact::Seen { value: "shared".to_owned(), at },
            (Fact::Unknown(gap), _) | (_, Fact::Unknown(gap)) => Fact::Unknown(gap),
            (Fact::Seen { at, .. }, _) => Fact::Seen { value: "none".to_owned(), at },
            (Fact::Absent, _) => Fact::Absent,
        }
    })
}
