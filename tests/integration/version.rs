//! `--version`.

use std::fs;

#[path = "../../rules/build.rs"]
#[expect(dead_code, clippy::print_stdout, reason = "only the version is tested")]
mod build_script;

use crate::support::run;

fn printed(argument: &str) -> String {
    String::from_utf8(run(&[argument], None).stdout).unwrap()
}

#[test]
fn one_line_and_all_versions() {
    let version = concat!("ncclcheck ", env!("CARGO_PKG_VERSION"), "\n");
    assert_eq!(printed("-V"), version);
    let text = printed("--version");
    let lines: Vec<_> = text.strip_prefix(version).unwrap().lines().map(|line| line.split_once(' ').unwrap()).collect();
    assert_eq!(lines.iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["commit", "rules", "scanner"], "{text}");
    let rules = String::from_utf8(run(&["rules", "list"], None).stdout).unwrap().lines().count();
    assert!(lines[1].1.trim_start().starts_with(&format!("{rules}, version ")), "{text}");
    // The scanner is the one in keys of the cache.
    let home = tempfile::tempdir().unwrap();
    let variables = [("HOME", home.path().to_str().unwrap())];
    let cache = crate::support::run_with(&variables, &["cache", "info"], None);
    assert!(String::from_utf8(cache.stdout).unwrap().contains(lines[2].1.trim_start()), "{text}");
}

#[test]
fn rules_profiles_and_tables_change_the_version_of_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        build_script::rules_version(folder.path()).unwrap()
    };
    let one = write("env/a.yaml", "a");
    let two = write("env/b.yaml", "b");
    assert!(one.starts_with("1, version ") && two.starts_with("2, version "), "{one}; {two}");
    let profile = write("profiles/ci.yaml", "c");
    assert!(profile.starts_with("2, ") && profile != two, "{profile}");
    assert_ne!(write("tables/gpus.yaml", "g"), profile);
    assert_eq!(write("tables/README.md", "about"), write("tables/gpus.yaml", "g"));
}
