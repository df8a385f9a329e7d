//! `--rules`: an archive of rules and tables in place of those of the program.

use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::registry::Artifact;
use crate::support::{run, run_in, stderr, world};

/// The folder `rules` of this repository with a change: `change` returns the text of a file, or nothing to leave it out.
fn archive(change: impl Fn(&str, String) -> Option<String>) -> Vec<u8> {
    let rules = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    let mut tar = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut folders = vec![rules.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = format!("rules/{}", path.strip_prefix(&rules).unwrap().display());
            let Some(text) = change(&name, std::fs::read_to_string(&path).unwrap()) else { continue };
            let mut header = tar::Header::new_gnu();
            header.set_size(text.len() as u64);
            header.set_mode(0o644);
            tar.append_data(&mut header, name, text.as_bytes()).unwrap();
        }
    }
    tar.into_inner().unwrap().finish().unwrap()
}

/// Rules of a release that knows one more GPU.
fn newer() -> Vec<u8> {
    archive(|name, text| {
        Some(if name == "rules/tables/gpus.yaml" { text.replace("[h100, ", "[h100, h999, ") } else { text })
    })
}

#[test]
fn rules_of_a_registry_bring_what_the_program_does_not_know() {
    let image = world("good").display().to_string();
    let host = "driver=580.95,gpu=h999x8";
    let check = |more: &[&str]| {
        run(&[&["check", "--no-config", "--format", "json", "--host", host, &image], more].concat(), None)
    };
    assert!(stderr(&check(&[])).contains("h999"), "{}", stderr(&check(&[])));
    let rules = Artifact::serve(&newer());
    let output = check(&["--tls-verify=false", "--rules", &rules.pinned()]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let notice = format!("judged by the rules {}", rules.pinned());
    assert!(report["notices"].as_array().unwrap().iter().any(|one| one == &notice), "{}", report["notices"]);
    let archive = &report["rules"]["archive"];
    assert_eq!(archive["path"], rules.pinned().as_str(), "{report:#}");
    assert!(rules.file.ends_with(archive["digest"].as_str().unwrap().trim_start_matches("sha256:")), "{archive}");
    let output = check(&["--rules", &format!("oci://{}:1", rules.name)]);
    assert!(stderr(&output).contains("has no digest, so its content could change"), "{}", stderr(&output));
}

#[test]
fn rules_of_another_version_are_refused() {
    let table = |wanted: &'static str, from: &'static str, to: &'static str| {
        archive(move |name, text| Some(if name == wanted { text.replacen(from, to, 1) } else { text }))
    };
    let whole = newer();
    for (content, why) in [
        (
            table("rules/tables/needs.yaml", "program: 0", "program: 99"),
            "these rules need ncclcheck 99.1.0; this is 0.1.0",
        ),
        (
            table("rules/tables/needs.yaml", "program: 0.1.0", "program: next"),
            "these rules need ncclcheck next; this is 0.1.0",
        ),
        (
            archive(|name, text| Some(text).filter(|_| !name.ends_with("ci.yaml")))
                .into_iter()
                .chain(*b"more")
                .collect(),
            "not a gzipped tar of a folder 'rules': ",
        ),
        (table("rules/tables/gpus.yaml", "- {arch", "- {cores: 1, arch"), "tables/gpus.yaml:6:4: unknown key 'cores'"),
        (table("rules/tables/patterns.yaml", "regex: '", "regex: '("), "tables/patterns.yaml: "),
        // Expressions that compile alone, and not in what is made of them.
        (table("rules/tables/patterns.yaml", "$'", "\\$'"), "tables/patterns.yaml: "),
        (table("rules/tables/symptoms.yaml", "when: {", "when: {a: '(?x) b #', "), "tables/symptoms.yaml: "),
        (table("rules/env/net-socket.yaml", "\ncheck: ", "\ncheck: future.fact && "), "env/net-socket.yaml:"),
        (table("rules/profiles/ci.yaml", "about:", "intent:"), "profiles/ci.yaml:"),
        (archive(|name, text| (name != "rules/tables/verbs.yaml").then_some(text)), "no tables/verbs.yaml"),
        (archive(|_, text| Some(text + &"\n".repeat(100_000))), "the archive is too large when unpacked"),
        (whole[..whole.len() / 2].to_vec(), "not a gzipped tar of a folder 'rules': "),
        (b"rules".to_vec(), "not a gzipped tar of a folder 'rules': "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("rules.tar.gz"), content).unwrap();
        let image = world("good").display().to_string();
        let output = run_in(folder.path(), &["check", "--no-config", "--rules", "rules.tar.gz", &image]);
        assert_eq!(output.status.code(), Some(2), "{why}");
        let expected = format!("error: rules.tar.gz: {why}");
        assert!(stderr(&output).starts_with(&expected) && output.stdout.is_empty(), "{why}: {}", stderr(&output));
    }
}

#[test]
fn every_command_that_judges_reads_rules_before_it_uses_a_table() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.tar.gz"), newer()).unwrap();
    std::fs::write(folder.path().join("job.sh"), "export NCCL_DEBUG=INFO\nsrun torchrun train.py\n").unwrap();
    std::fs::write(folder.path().join("job.log"), "RuntimeError: NCCL error\n").unwrap();
    let image = world("good").display().to_string();
    let recording =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/probe/h200-x2/full.jsonl").display().to_string();
    for command in [
        &["check", "--host", "gpu=h999x8", "--launch", "job.sh", &image][..],
        &["check", "--launch", "job.sh", "--log", "job.log", &image],
        &["check", "--fix", "--launch", "job.sh", &image],
        &["diff", "--host", "gpu=h999x8", &image, &image],
        &["audit", "plan", "--store", "store", "--host", "gpu=h999x8", &image],
        &["log", "--launch", "job.sh", "job.log"],
        &["explain", "RDMA"],
        &["explain", "NCCL error"],
        &["rules", "list"],
        &["rules", "show", "env/net-socket"],
        &["probe", "--from", &recording],
        &["cluster", "--from", &recording, &recording],
    ] {
        let output = run_in(folder.path(), &[command, &["--rules", "rules.tar.gz"]].concat());
        assert!(output.status.code().is_some_and(|status| status != 2), "{command:?}: {}", stderr(&output));
        // Only the archive knows this GPU, so the program's own table refuses it.
        if command.contains(&"gpu=h999x8") {
            let shipped = run_in(folder.path(), command);
            assert_eq!(shipped.status.code(), Some(2), "{command:?}");
            assert!(stderr(&shipped).contains("h999"), "{command:?}: {}", stderr(&shipped));
        }
    }
}

#[test]
fn a_worker_of_an_audit_takes_the_rules_of_the_plan() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("rules.tar.gz"), newer()).unwrap();
    let image = world("good").display().to_string();
    let audit = |arguments: &[&str]| run_in(folder.path(), &[&["audit"], arguments].concat());
    let planned =
        audit(&["plan", "--no-config", "--store", "s", "--host", "gpu=h999x8", "--rules", "rules.tar.gz", &image]);
    assert_eq!(planned.status.code(), Some(0), "{}", stderr(&planned));
    let worked = audit(&["run", "--store", "s"]);
    assert_eq!(worked.status.code(), Some(0), "{}", stderr(&worked));
    std::fs::write(folder.path().join("rules.tar.gz"), archive(|_, text| Some(text))).unwrap();
    let refused = audit(&["run", "--store", "s"]);
    assert!(stderr(&refused).contains("the plan has the version 0.1.0 with the rules sha256:"), "{}", stderr(&refused));
}
