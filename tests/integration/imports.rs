//! The directions of imports between stages, the import cycles between files, and the modules that may use each
//! third-party crate. A stage that reaches past its neighbours cannot be understood, tested or replaced alone.
//!
//! Files are parsed as tokens, so that comments and strings do not count, while nested `use` trees, `super::super` and
//! macro bodies do. Tests may use anything.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The stages that each stage may import, besides itself: only stages above it in this list.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("document", &["model"]),
    ("shell", &["model"]),
    ("launch", &["model", "document", "shell"]),
    ("host", &["model", "document"]),
    ("store", &["model"]),
    ("layer", &["model", "store"]),
    ("rootfs", &["model", "layer"]),
    ("image", &["model", "shell", "layer", "rootfs"]),
    ("facts", &["model", "document", "shell", "rootfs", "launch", "host"]),
    ("judge", &["model", "document", "facts"]),
    ("probe", &["model", "document", "image", "facts"]),
    ("sandbox", &["model"]),
    ("doctor", &["model", "host", "image", "sandbox"]),
    ("report", &["model", "document", "host", "image", "facts", "judge", "probe", "doctor"]),
    ("check", &["model", "document", "launch", "host", "image", "facts", "judge", "probe", "report"]),
    ("audit", &["model", "document", "store", "layer", "image", "judge", "check"]),
    (
        "cli",
        &[
            "model", "document", "launch", "host", "store", "layer", "rootfs", "image", "facts", "judge", "probe",
            "sandbox", "doctor", "report", "check", "audit",
        ],
    ),
];

/// The only modules that may name a crate, for every dependency of the program. `*` means every module.
const DOORS: &[(&str, &[&str])] = &[
    ("anstyle", &["cli", "report"]),
    ("base64", &["image/daemon/store/tar_split", "image/registry/conceal"]),
    ("bollard", &["image/daemon", "probe/engine"]),
    ("bytes", &["image/daemon"]),
    ("bzip2", &["image/archive/packed"]),
    ("cel", &["judge/rules"]),
    ("clap", &["cli"]),
    ("clap_complete", &["cli"]),
    ("clap_mangen", &["cli"]),
    ("ctrlc", &["cli"]),
    ("docker_credential", &["image/registry"]),
    ("emulate", &["layer/scan/torch"]),
    ("fastrand", &["image/registry", "probe/mod", "cli/audit"]),
    ("flate2", &["document/texts", "image/daemon/store/tar_split", "layer/squashfs/decompress"]),
    ("futures_util", &["image/daemon", "probe/engine", "store"]),
    ("globset", &["judge/policy", "audit", "cli/audit"]),
    ("goblin", &["layer/scan/elf"]),
    ("http_auth", &["image/registry"]),
    ("httpdate", &["image/registry"]),
    ("hyper", &["image/daemon/transport"]),
    ("hyper_util", &["image/daemon/transport"]),
    ("indicatif", &["cli"]),
    ("ipnet", &["image/registry"]),
    ("jiff", &["judge/policy", "cli/audit", "cli/plan"]),
    ("landlock", &["sandbox"]),
    ("libc", &["sandbox"]),
    // Only for their features.
    ("log", &[]),
    ("lz4_flex", &["layer/squashfs/decompress"]),
    ("lzma_rust2", &["image/archive/packed", "layer/squashfs/decompress"]),
    ("maud", &["report/html"]),
    ("memchr", &["rootfs/loader", "image/daemon", "facts", "layer/scan"]),
    ("mimalloc", &["main"]),
    ("nvml_wrapper", &["host/gpus"]),
    ("object_store", &["store"]),
    ("oci_spec", &["image"]),
    ("parse_dockerfile", &["image/dockerfile"]),
    ("percent_encoding", &["image/registry", "report"]),
    ("postcard", &["layer/cache/entry"]),
    ("psl", &["image/registry/realm"]),
    ("quick_junit", &["report/junit"]),
    ("regex", &["layer/scan", "facts", "judge", "model/secret", "probe"]),
    ("reqwest", &["image/registry"]),
    (
        "rustix",
        &[
            "image/archive/pipe",
            "image/daemon/store/tar_split",
            "image/registry/helper",
            "layer/cache/own_folder",
            "layer/scan/folder",
            "layer/scan/overlay",
            "model/confined",
            "model/regular_file",
            "model/write_target",
            "probe/watchdog",
            "sandbox/files",
        ],
    ),
    ("rustls", &["store", "image/daemon", "image/registry"]),
    ("rustls_platform_verifier", &["image/daemon/transport", "image/registry"]),
    ("schemars", &["model", "report", "judge", "probe/wire", "audit"]),
    ("scroll", &["rootfs/loader", "layer/scan/elf"]),
    ("seccompiler", &["sandbox"]),
    ("serde", &["*"]),
    ("serde_bytes", &["model"]),
    ("serde_json", &["*"]),
    ("serde_yaml", &["document"]),
    ("sha2", &["layer/cache", "model/digest"]),
    ("similar", &["image/dockerfile"]),
    ("strsim", &["model/spelling"]),
    ("tar", &["layer/tar"]),
    ("tempfile", &["image/daemon", "cli/output_file", "cli/interrupt", "cli/report", "doctor/cache", "layer"]),
    ("terminal_size", &["cli"]),
    ("thiserror", &["*"]),
    ("tokio", &["image/daemon", "probe/engine", "store"]),
    ("tokio_rustls", &["image/daemon/transport"]),
    ("toml", &["image/registry/config", "image/storage/config"]),
    ("tracing", &[]),
    ("unicode_width", &["report/human", "report/table"]),
    ("unpack", &["image", "layer", "lib"]),
    ("url", &["store"]),
    ("zstd", &["layer/squashfs/decompress", "layer/cache/entry"]),
];

/// Files that import each other, with the reason.
const CIRCLES: &[(&[&str], &str)] = &[(
    &["rootfs/loader/process.rs", "rootfs/loader/search.rs"],
    "a process searches for what it needs, and the search depends on what the process has mapped",
)];

/// A source file of the program.
struct Source {
    /// The file's module path, without `crate`.
    module: Vec<String>,
    /// Paths that begin with `crate`, `self` or `super`, resolved relative to the crate.
    paths: Vec<Vec<String>>,
    /// First segments of all other paths.
    crates: BTreeSet<String>,
    is_asynchronous: bool,
}

/// Every source file below a folder, by relative path, without tests.
pub(crate) fn source_files(root: &Path) -> BTreeMap<String, PathBuf> {
    fn gather(folder: &Path, root: &Path, files: &mut BTreeMap<String, PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let is_test = name.split('/').any(|part| matches!(part, "tests" | "tests.rs"));
            if path.is_dir() {
                gather(&path, root, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !is_test {
                files.insert(name, path);
            }
        }
    }
    let mut files = BTreeMap::new();
    gather(root, root, &mut files);
    files
}

/// The parsed source files of the program.
fn sources() -> BTreeMap<String, Source> {
    let sources = sources_in("src");
    assert!(sources.len() > 100, "only {} files were found", sources.len());
    sources
}

/// The parsed source files below a folder.
fn sources_in(folder: &str) -> BTreeMap<String, Source> {
    let files = source_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join(folder));
    let read = |(name, path): (String, PathBuf)| {
        let source = Source::read(&name, &fs::read_to_string(path).unwrap());
        (name, source)
    };
    files.into_iter().map(read).collect()
}

impl Source {
    fn read(name: &str, text: &str) -> Self {
        let module = name.trim_end_matches(".rs").split('/').map(str::to_owned);
        let module: Vec<_> = module.filter(|part| part != "mod" && part != "lib").collect();
        let mut source =
            Self { module: module.clone(), paths: Vec::new(), crates: BTreeSet::new(), is_asynchronous: false };
        source.walk(text.parse().unwrap(), &module);
        source
    }

    /// Collects the paths in some tokens of a module.
    fn walk(&mut self, tokens: TokenStream, module: &[String]) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            let rest = &tokens[at..];
            if let Some(length) = test_item(rest) {
                at += length;
                continue;
            }
            match &rest[0] {
                TokenTree::Ident(word) if *word == "mod" && is_group(rest.get(2)) => {
                    let (TokenTree::Ident(name), TokenTree::Group(body)) = (&rest[1], &rest[2]) else { unreachable!() };
                    self.walk(body.stream(), &[module, &[name.to_string()]].concat());
                    at += 3;
                }
                TokenTree::Ident(word) => {
                    self.is_asynchronous |= *word == "async" || *word == "await";
                    // A name after a colon or a dot belongs to what precedes it.
                    let is_inner =
                        at > 0 && matches!(&tokens[at - 1], TokenTree::Punct(sign) if ":.".contains(sign.as_char()));
                    let length = if is_inner { 1 } else { self.path(rest, &mut Vec::new(), module) };
                    at += length.max(1);
                }
                TokenTree::Group(group) => {
                    self.walk(group.stream(), module);
                    at += 1;
                }
                _ => at += 1,
            }
        }
    }

    /// Collects the path that begins here, or each path of a tree, and returns its number of tokens.
    fn path(&mut self, tokens: &[TokenTree], before: &mut Vec<String>, module: &[String]) -> usize {
        let depth = before.len();
        let mut at = 0;
        loop {
            match tokens.get(at) {
                Some(TokenTree::Ident(word)) => before.push(word.to_string()),
                Some(TokenTree::Group(tree)) if at > 0 && tree.delimiter() == Delimiter::Brace => {
                    let items: Vec<TokenTree> = tree.stream().into_iter().collect();
                    for item in items.split(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ',')) {
                        self.path(item, before, module);
                    }
                    before.truncate(depth);
                    return at + 1;
                }
                _ => break,
            }
            at += 1;
            if !is_colons(tokens.get(at..).unwrap_or_default()) {
                break;
            }
            at += 2;
        }
        self.take(before, module);
        before.truncate(depth);
        at
    }

    fn take(&mut self, path: &[String], module: &[String]) {
        let ups = path.iter().take_while(|part| *part == "super").count();
        match path.first().map(String::as_str) {
            Some("crate") => self.paths.push(path[1..].to_vec()),
            Some("self") if path.len() > 1 => self.paths.push([module, &path[1..]].concat()),
            Some("super") => self.paths.push([&module[..module.len() - ups.min(module.len())], &path[ups..]].concat()),
            Some(name) if path.len() > 1 => {
                self.crates.insert(name.to_owned());
                // A child of this module.
                self.paths.push([module, path].concat());
            }
            _ => {}
        }
    }

    /// The stages that its paths lead to.
    fn stages(&self) -> impl Iterator<Item = &str> {
        let is_stage = |name: &&str| MAY_IMPORT.iter().any(|(stage, _)| stage == name);
        self.paths.iter().filter_map(|path| path.first().map(String::as_str)).filter(is_stage)
    }
}

/// The number of tokens of an item that only tests use; `None` for any other item.
pub(crate) fn test_item(tokens: &[TokenTree]) -> Option<usize> {
    let [TokenTree::Punct(hash), TokenTree::Group(attribute), ..] = tokens else { return None };
    let text: String = attribute.to_string().split_whitespace().collect();
    if hash.as_char() != '#' || text != "[cfg(test)]" {
        return None;
    }
    let is_end = |token: &TokenTree| match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(sign) => sign.as_char() == ';',
        _ => false,
    };
    tokens.iter().position(is_end).map(|end| end + 1)
}

pub(crate) fn is_group(token: Option<&TokenTree>) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace)
}

fn is_colons(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [TokenTree::Punct(first), TokenTree::Punct(second), ..] if first.as_char() == ':' && second.as_char() == ':')
}

/// The dependencies of the program, also those of one target.
fn crates_of_manifest() -> BTreeSet<String> {
    let manifest = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    let sections = manifest.split("\n[").filter_map(|section| section.split_once("]\n"));
    let ours = sections.filter(|(name, _)| *name == "dependencies" || name.ends_with(".dependencies"));
    let ours = ours.filter(|(name, _)| *name != "workspace.dependencies");
    let lines = ours.flat_map(|(_, body)| body.lines()).filter(|line| !line.starts_with('#') && line.contains('='));
    lines.map(|line| line.split([' ', '.', '=']).next().unwrap().replace('-', "_")).collect()
}

#[test]
fn paths_are_found_everywhere() {
    let text = "
        use crate::{cli, model::{Fact, Gap}};
        use super::super::report::Report;
        // use crate::probe;
        fn f() { let _ = \"crate::image\"; vec![crate::check::run(), super::loader::find()]; }
        #[cfg(test)]
        mod tests { use crate::host; }
        mod inner { fn g() { super::super::fold::x() } }
    ";
    let source = Source::read("rootfs/loader.rs", text);
    let paths: Vec<_> = source.paths.iter().map(|path| path.join("::")).collect();
    assert_eq!(
        paths,
        ["cli", "model::Fact", "model::Gap", "report::Report", "check::run", "rootfs::loader::find", "rootfs::fold::x"]
    );
    assert_eq!(source.stages().collect::<Vec<_>>(), ["cli", "model", "model", "report", "check", "rootfs", "rootfs"]);
}

#[test]
fn stages_import_only_allowed_stages() {
    for (index, (stage, allowed)) in MAY_IMPORT.iter().enumerate() {
        let above: Vec<_> = MAY_IMPORT[..index].iter().map(|(name, _)| *name).collect();
        assert!(allowed.iter().all(|other| above.contains(other)), "{stage} may import a stage below it");
    }
    let mut used = BTreeSet::new();
    for (file, source) in sources() {
        let Some(stage) = source.module.first().filter(|stage| *stage != "main") else { continue };
        let (_, allowed) =
            MAY_IMPORT.iter().find(|(name, _)| name == stage).unwrap_or_else(|| panic!("{stage} is in no list"));
        for other in source.stages().filter(|other| other != stage) {
            assert!(allowed.contains(&other), "src/{file} imports crate::{other}");
            used.insert((stage.clone(), other.to_owned()));
        }
    }
    for (stage, allowed) in MAY_IMPORT {
        for other in *allowed {
            assert!(used.contains(&((*stage).to_owned(), (*other).to_owned())), "{stage} does not need {other}");
        }
    }
}

#[test]
fn crates_are_used_only_in_their_modules() {
    let listed: BTreeSet<_> = DOORS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(crates_of_manifest(), listed, "Cargo.toml and the list of modules");
    let sources = sources();
    for (name, doors) in DOORS {
        let users: Vec<_> =
            sources.iter().filter(|(_, source)| source.crates.contains(*name)).map(|(file, _)| file).collect();
        for file in &users {
            let is_door = doors.iter().any(|door| *door == "*" || file.starts_with(door));
            assert!(is_door, "src/{file} uses {name}, which only {doors:?} may use");
        }
        for door in doors.iter().filter(|door| **door != "*") {
            assert!(users.iter().any(|file| file.starts_with(door)), "{door} does not use {name}");
        }
    }
}

#[test]
fn the_core_is_synchronous() {
    let doors = ["image/daemon", "probe/engine", "store"];
    for (file, source) in sources() {
        let is_door = doors.iter().any(|door| file.starts_with(door));
        assert!(is_door || !source.is_asynchronous, "src/{file} is asynchronous");
    }
}

/// All nodes that can be reached from a node of a graph.
fn reached<'a>(edges: &BTreeMap<&'a str, BTreeSet<&'a str>>, from: &'a str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut next = vec![from];
    while let Some(node) = next.pop() {
        next.extend(edges.get(node).into_iter().flatten().filter(|other| seen.insert(**other)));
    }
    seen
}

/// A module and its descendants are one unit: a parent names its children, and children use items of their parents.
fn circles(sources: &BTreeMap<String, Source>) -> BTreeSet<BTreeSet<&str>> {
    let by_module: BTreeMap<&[String], &str> =
        sources.iter().map(|(file, source)| (&*source.module, &**file)).collect();
    let file_of = |path: &[String]| (1..=path.len()).rev().find_map(|end| by_module.get(&path[..end]).copied());
    let mut edges: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, source) in sources {
        for path in &source.paths {
            let Some(other) = file_of(path).filter(|other| *other != file) else { continue };
            let module = &sources[other].module;
            if !module.starts_with(&source.module) && !source.module.starts_with(module) {
                edges.entry(file).or_default().insert(other);
            }
        }
    }
    let reach: BTreeMap<&str, BTreeSet<&str>> = edges.keys().map(|file| (*file, reached(&edges, file))).collect();
    let circle = |file: &str| -> BTreeSet<&str> {
        reach[file].iter().copied().filter(|other| reach.get(other).is_some_and(|back| back.contains(file))).collect()
    };
    edges.keys().map(|file| circle(file)).filter(|all| all.len() > 1).collect()
}

#[test]
fn files_do_not_import_each_other() {
    let known: BTreeSet<BTreeSet<&str>> = CIRCLES.iter().map(|(files, _)| files.iter().copied().collect()).collect();
    assert_eq!(circles(&sources()), known, "import cycles");
    for folder in ["crates/unpack/src", "crates/emulate/src"] {
        let sources = sources_in(folder);
        assert!(sources.len() > 10, "only {} files were found in {folder}", sources.len());
        assert_eq!(circles(&sources), BTreeSet::new(), "import cycles in {folder}");
    }
}
