//! The directions of imports between stages, and the one door of each third-party crate. A stage that reaches past its
//! neighbours cannot be understood, tested or replaced alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Who may import whom, besides itself.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("document", &[]),
    ("tarball", &["model"]),
    ("source", &["model", "tarball"]),
    ("pool", &[]),
    ("pipe", &["model", "pool"]),
    ("inflate", &["pipe", "pool"]),
    ("unzstd", &["pool"]),
    ("scan", &["model", "tarball", "pool", "pipe", "inflate", "unzstd"]),
    ("rootfs", &["model", "scan"]),
    ("launch", &["model", "document"]),
    ("host", &["model", "document"]),
    ("facts", &["model", "document", "rootfs", "launch", "host"]),
    ("rules", &["model", "document", "facts"]),
    ("policy", &["model", "document", "facts", "rules"]),
    ("report", &["model", "document", "host", "facts", "probe", "rules"]),
    ("probe", &["model", "document", "source", "facts"]),
    ("cache", &["model", "source", "scan"]),
    ("pipeline", &["model", "tarball", "source", "pool", "pipe", "scan", "cache", "rootfs", "report"]),
    (
        "cli",
        &[
            "model", "document", "source", "pipe", "scan", "rootfs", "launch", "host", "facts", "probe", "rules",
            "policy", "report", "pipeline", "cache",
        ],
    ),
];

/// The only modules that may name a crate.
const DOORS: &[(&str, &[&str])] = &[
    ("bollard", &["source/daemon", "probe/engine"]),
    ("cel", &["rules"]),
    ("clap", &["cli"]),
    ("docker_credential", &["source/registry"]),
    ("flate2", &["scan/partial/pieces"]),
    ("goblin", &["scan/elf"]),
    ("iced_x86", &["scan/emulate"]),
    ("indicatif", &["cli"]),
    ("nvml_wrapper", &["host/gpus"]),
    ("object_store", &["cache/shared"]),
    ("postcard", &["cache/entry"]),
    ("reqwest", &["source/registry"]),
    ("rustix", &["scan/overlay"]),
    ("serde_yaml", &["document"]),
    ("tokio", &["source/daemon", "probe/engine", "cache/shared"]),
    ("zstd", &["unzstd", "scan/partial/pieces", "cache/entry"]),
];

/// The program's own lines of every source file, by its path below `src`: tests may use what they like.
fn sources() -> BTreeMap<String, String> {
    fn gather(folder: &Path, root: &Path, files: &mut BTreeMap<String, String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                gather(&path, root, files);
            } else if path.extension().is_some_and(|extension| extension == "rs") && !name.contains("tests") {
                let text = fs::read_to_string(&path).unwrap();
                let own = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
                let code =
                    own.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
                files.insert(name, code);
            }
        }
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = BTreeMap::new();
    gather(&root, &root, &mut files);
    files
}

#[test]
fn stages_import_only_what_they_may() {
    for (file, code) in sources() {
        let Some((stage, _)) = file.split_once('/') else { continue };
        let (_, allowed) =
            MAY_IMPORT.iter().find(|(name, _)| *name == stage).unwrap_or_else(|| panic!("{stage} is in no list"));
        for used in code.split("crate::").skip(1) {
            let other: String = used.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect();
            let is_stage = MAY_IMPORT.iter().any(|(name, _)| *name == other);
            assert!(
                !is_stage || other == stage || allowed.contains(&other.as_str()),
                "src/{file} imports crate::{other}"
            );
        }
    }
}

#[test]
fn crates_have_one_door() {
    for (file, code) in sources() {
        for (name, doors) in DOORS {
            let is_word =
                |at: usize| !code[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':');
            let used = code.match_indices(&format!("{name}::")).any(|(at, _)| is_word(at));
            assert!(
                !used || doors.iter().any(|door| file.starts_with(door)),
                "src/{file} uses {name}, whose door is {doors:?}"
            );
        }
    }
}

#[test]
fn the_core_is_synchronous() {
    let doors = ["source/daemon", "probe/engine", "cache/shared"];
    for (file, code) in sources().into_iter().filter(|(file, _)| !doors.iter().any(|door| file.starts_with(door))) {
        assert!(!code.contains("async fn") && !code.contains(".await"), "src/{file} is asynchronous");
    }
}
