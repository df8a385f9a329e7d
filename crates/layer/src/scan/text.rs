//! Small text files that are kept whole: package metadata, PyTorch's version file, configuration.

use model::{BoundsError, ElfInfo, Entry, Found, Gap, ImagePath, Limits, OverLimit};

use super::extract::{Collect, Extractor};
use super::script;

pub(super) const EXTRACTOR: Extractor =
    Extractor { name: "text", wants: is_selected, start: |entry, limits| Box::new(TextCollector::new(entry, limits)) };

/// True for a file that is kept whole.
pub(super) fn is_selected(entry: &Entry, head: &[u8]) -> bool {
    is_wanted(&entry.path) || script::is_kept(entry, head)
}

/// Files selected in any folder, by the last components of their paths.
const ANYWHERE: &[&str] = &[
    "torch/__init__.py",
    "torch/version.py",
    "torch/include/caffe2/core/macros.h",
    "pyvenv.cfg",
    "sitecustomize.py",
    "usercustomize.py",
    "supervisord.conf",
    ".python-version",
    ".nccl.conf",
];

/// Files selected at one path.
const FIXED: &[&str] = &[
    ".singularity.d/labels.json",
    ".singularity.d/runscript",
    "etc/group",
    "etc/os-release",
    "etc/passwd",
    "usr/lib/os-release",
    "etc/ld.so.cache",
    "etc/ld.so.conf",
    "etc/ld.so.preload",
    "etc/environment",
    "etc/nccl.conf",
    "etc/rc",
    "var/lib/dpkg/status",
];

pub(super) fn is_wanted(path: &ImagePath) -> bool {
    let bytes = path.as_bytes();
    let name = path.file_name();
    FIXED.iter().any(|fixed| fixed.as_bytes() == bytes)
        || ANYWHERE.iter().any(|tail| path.ends_with(tail))
        || (name == b"top_level.txt" && parent_name(path).ends_with(b".dist-info"))
        || (matches!(name, b"METADATA" | b"RECORD") && is_of_interest(parent_name(path), b".dist-info"))
        || (bytes.starts_with(b"var/lib/dpkg/info/") && name.ends_with(b".list") && is_of_interest(name, b""))
        || (parent_name(path) == b"conda-meta" && name.ends_with(b".json") && is_of_interest(name, b""))
        || (matches!(parent_name(path), b"site-packages" | b"dist-packages") && name.ends_with(b".pth"))
        || is_of_python(path)
        || (bytes.starts_with(b"etc/ld.so.conf.d/") && name.ends_with(b".conf"))
        || parent_name(path) == b"libibverbs.d"
        || (bytes.starts_with(b"etc/supervisor") && (name.ends_with(b".conf") || name.ends_with(b".ini")))
        || (name.ends_with(b".sh") && is_sourced(path))
        // NCCL_CONF_FILE may name any file; these two parts are in every usual name.
        || (name.ends_with(b".conf") && name.windows(4).any(|part| part.eq_ignore_ascii_case(b"nccl")))
}

/// Returns true for files that decide where Python imports from: the standard library's `site`, `._pth` files, finders of
/// editable packages, and the version that pyenv chooses.
fn is_of_python(path: &ImagePath) -> bool {
    let parent = parent_name(path);
    let name = path.file_name();
    match name {
        b"site.py" => parent.starts_with(b"python3"),
        b"version" => parent.ends_with(b"pyenv"),
        _ => {
            (name.starts_with(b"python") && name.ends_with(b"._pth"))
                || (name.starts_with(b"__editable___") && name.ends_with(b"_finder.py"))
        }
    }
}

/// Returns true for shell files that login shells, Apptainer and `conda activate` read.
fn is_sourced(path: &ImagePath) -> bool {
    let parent = path.parent();
    parent == ImagePath::from("etc/profile.d")
        || parent == ImagePath::from(".singularity.d/env")
        || parent.ends_with("etc/conda/activate.d")
}

fn parent_name(path: &ImagePath) -> &[u8] {
    path.components().rev().nth(1).unwrap_or_default()
}

/// Returns true for what package managers and the loader write, which grows with what is installed.
fn is_record(path: &ImagePath) -> bool {
    let name = path.file_name();
    matches!(name, b"METADATA" | b"RECORD" | b"status" | b"ld.so.cache")
        || name.ends_with(b".list")
        || name.ends_with(b".json")
}

/// Returns true for packages whose records are read: an image has hundreds more. `name` ends in `suffix`.
fn is_of_interest(name: &[u8], suffix: &[u8]) -> bool {
    const PREFIXES: &[&str] = &[
        "torch-",
        "torch_",
        "pytorch",
        "libtorch",
        "python3-torch",
        "nvidia",
        "nccl",
        "libnccl",
        "libcudart",
        "cuda",
        "libibverbs",
        "ibverbs",
        "rdma",
        "libmlx",
        "libfabric",
        "aws",
        "efa",
        "mlnx",
        "doca",
        "libcuda",
    ];
    let lower = name.to_ascii_lowercase();
    lower.ends_with(suffix) && PREFIXES.iter().any(|prefix| lower.starts_with(prefix.as_bytes()))
}

/// Bytes that a name of a list takes beside its own.
const NAME: usize = 56;

/// Bytes of the texts, and of the libraries' lists of names, in the answers of the extractors about a file of this size. The
/// lists of a library are bounded, but many copies of it compress to almost nothing.
pub(super) fn bytes(answers: &[Result<Found, Gap>], size: u64) -> u64 {
    let taken = |answer: &Result<Found, Gap>| match answer {
        Ok(Found::Text(text)) => text.len(),
        Ok(Found::PythonImports(imports)) => imports.bytes(),
        // Names of symbols count as far as they are larger than the file, in which many share one.
        Ok(Found::Elf(elf)) => {
            of_lists(elf) + of_symbols(elf).saturating_sub(usize::try_from(size).unwrap_or(usize::MAX))
        }
        _ => 0,
    };
    answers.iter().map(taken).sum::<usize>() as u64
}

fn of_symbols(elf: &ElfInfo) -> usize {
    let symbols = elf.symbols.as_deref().unwrap_or_default().iter().map(|symbol| NAME + symbol.name.len());
    symbols.sum::<usize>() + elf.links.as_ref().map_or(0, |links| links.imports.bytes())
}

fn of_lists(elf: &ElfInfo) -> usize {
    let lists = [&elf.needed, &elf.rpath, &elf.runpath, &elf.version_gives];
    let of_needs = elf.version_needs.iter().flat_map(|need| [&need.versions, &need.weak]);
    let names = lists.into_iter().chain(of_needs).flatten().map(|name| NAME + name.len());
    names.chain(elf.version_needs.iter().map(|need| 2 * NAME + need.file.len())).sum()
}

/// Refuses more bytes of texts than an image may have.
pub(super) fn within(bytes: u64, limits: &Limits) -> Result<(), OverLimit> {
    if bytes <= limits.texts {
        return Ok(());
    }
    Err(OverLimit::new(
        format!("its text files and the lists of its libraries have more than {bytes} bytes"),
        "texts",
        limits.texts,
    ))
}

pub(super) struct TextCollector {
    path: ImagePath,
    size: u64,
    /// The name of the limit.
    name: &'static str,
    limit: u64,
    bytes: Vec<u8>,
}

impl TextCollector {
    pub(super) fn new(entry: &Entry, limits: &Limits) -> Self {
        let (name, limit) = if is_record(&entry.path) {
            ("text_file", limits.text_file)
        } else {
            ("settings_file", limits.settings_file)
        };
        Self { path: entry.path.clone(), size: entry.size, name, limit, bytes: Vec::new() }
    }

    /// True if the text has this part.
    pub(super) fn has(&self, part: &[u8]) -> bool {
        memchr::memmem::find(&self.bytes, part).is_some()
    }
}

impl Collect for TextCollector {
    fn push(&mut self, offset: u64, bytes: &[u8]) -> Result<(), BoundsError> {
        // A file over the limit is not gathered, and `finish` reports it. Below the limit, holes read as zeros.
        if let (Ok(offset), true) = (usize::try_from(offset), self.size <= self.limit) {
            self.bytes.resize(offset, 0);
            self.bytes.extend_from_slice(bytes);
        }
        Ok(())
    }

    fn next(&self, at: u64) -> Option<u64> {
        (self.size <= self.limit).then_some(at)
    }

    fn finish(self: Box<Self>) -> Result<Option<Found>, Gap> {
        if self.size > self.limit {
            let what = format!("{}: {} bytes of text", self.path, self.size);
            return Err(Gap::new(OverLimit::new(what, self.name, self.limit).to_string()));
        }
        Ok(Some(Found::Text(self.bytes.into())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{DynamicSymbol, Endian, VersionNeed};

    #[test]
    fn lists_of_libraries_count_as_texts() {
        let of = |elf: ElfInfo| bytes(&[Ok(Found::Elf(Box::new(elf)))], 1_000);
        let bare = || ElfInfo::bare(64, Endian::Little, 62);
        let names = || vec!["n".repeat(44); 10];
        assert_eq!(of(bare()), 0);
        assert_eq!(of(ElfInfo { needed: names(), rpath: names(), ..bare() }), 2_000);
        let need = VersionNeed { file: "n".repeat(88), versions: names(), weak: names() };
        assert_eq!(of(ElfInfo { version_needs: vec![need], ..bare() }), 2_200);
        let symbol = DynamicSymbol { name: "n".repeat(44), defined: true, offset: None };
        let symbols = |count| Ok(vec![symbol.clone(); count]);
        assert_eq!(of(ElfInfo { symbols: symbols(10), ..bare() }), 0);
        assert_eq!(of(ElfInfo { symbols: symbols(30), ..bare() }), 2_000);
        let limits = Limits { texts: 2_000, ..Limits::default() };
        assert!(within(2_000, &limits).is_ok() && within(2_001, &limits).is_err());
    }

    #[test]
    fn selected_files() {
        for (path, wanted) in [
            ("opt/conda/lib/python3.11/site-packages/torch/version.py", true),
            ("usr/lib/python3/dist-packages/mytorch/version.py", false),
            ("usr/lib/python3/dist-packages/local.pth", true),
            ("usr/lib/python3/dist-packages/x/weights.pth", false),
            ("usr/local/lib/python3.11/dist-packages/nvidia_nccl_cu12-2.27.5.dist-info/METADATA", true),
            ("usr/local/lib/python3.11/dist-packages/requests-2.0.dist-info/METADATA", false),
            ("usr/local/lib/python3.11/dist-packages/flash_attn-2.8.3.dist-info/top_level.txt", true),
            ("usr/local/lib/python3.11/dist-packages/flash_attn/top_level.txt", false),
            ("var/lib/dpkg/info/libibverbs1:amd64.list", true),
            ("var/lib/dpkg/info/bash.list", false),
            ("opt/conda/conda-meta/nccl-2.21.5.1-h0.json", true),
            ("etc/ld.so.conf.d/cuda-compat.conf", true),
            ("etc/libibverbs.d/mlx5.driver", true),
            ("usr/local/etc/libibverbs.d/mlx5", true),
            ("home/etc/os-release", false),
            ("etc/profile.d/nccl.sh", true),
            ("opt/conda/envs/x/etc/conda/activate.d/env.sh", true),
            ("opt/x/env.sh", false),
            ("root/.nccl.conf", true),
            ("opt/site/nccl-h100.conf", true),
            ("etc/group", true),
            ("usr/lib/python3.11/site.py", true),
            ("opt/web/site.py", false),
            ("opt/py/bin/python3.11._pth", true),
            ("root/.pyenv/version", true),
            ("opt/app/version", false),
            ("srv/.python-version", true),
            ("app/supervisord.conf", true),
            ("etc/supervisor/conf.d/train.conf", true),
            ("etc/supervisord.d/train.ini", true),
            ("etc/nginx/conf.d/train.conf", false),
            ("usr/lib/python3/dist-packages/__editable___torch_2_9_finder.py", true),
            ("usr/lib/python3.11/sitecustomize.py", true),
        ] {
            assert_eq!(is_wanted(&path.into()), wanted, "{path}");
        }
    }
}
