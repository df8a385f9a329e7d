//! in-toto statements, which others sign.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{layout, run, run_in, stderr, world};

fn image(name: &str) -> String {
    world(name).display().to_string()
}

fn lines(path: &Path) -> Vec<Value> {
    fs::read_to_string(path).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Digest of the only manifest of a small image, as its index has it.
fn manifest(name: &str) -> String {
    let index = fs::read(layout(name).path().join("index.json")).unwrap();
    let index: Value = serde_json::from_slice(&index).unwrap();
    index["manifests"][0]["digest"].as_str().unwrap().to_owned()
}

#[test]
fn a_statement_names_the_manifest_and_repeats_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for (name, status) in [("good", 0), ("no-nccl", 1)] {
        let formats = ["in-toto=s.json", "json=r.json"].into_iter().flat_map(|format| ["--format", format]);
        let image = image(name);
        let mut arguments = vec!["check", "--quiet", "--no-config"];
        arguments.extend(formats);
        arguments.push(&image);
        let output = run_in(folder.path(), &arguments);
        assert_eq!((output.status.code(), &*stderr(&output)), (Some(status), ""), "{name}");
        let [statement] = &*lines(&at("s.json")) else { panic!("not one line") };
        let [report] = &*lines(&at("r.json")) else { panic!("not one line") };
        assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
        let digest = statement["subject"][0]["digest"]["sha256"].as_str().unwrap();
        assert_eq!(format!("sha256:{digest}"), manifest(name));
        let predicate = &statement["predicate"];
        for key in ["tool", "time", "asked", "rules", "verdict", "counts", "notices"] {
            assert_eq!(predicate[key], report[key], "{key}");
            assert!(!predicate[key].is_null(), "{key}");
        }
        for key in ["manifest", "config", "platform", "notes"] {
            assert_eq!(predicate["image"][key], report["image"][key], "{key}");
        }
        let facts = predicate["facts"].as_object().unwrap();
        assert!(facts.len() > 5, "{facts:?}");
        for (name, fact) in facts {
            assert_eq!(*fact, report["facts"][name], "{name}");
        }
        let judgements = report["judgements"].as_array().unwrap();
        let problems = |value: &Value| matches!(value["outcome"].as_str(), Some("fail" | "unknown" | "waived"));
        let found: Vec<_> = judgements.iter().filter(|judgement| problems(judgement)).collect();
        let findings = predicate["findings"].as_array().unwrap();
        assert_eq!((found.is_empty(), found.len()), (status == 0, findings.len()), "{name}");
        for (finding, judgement) in findings.iter().zip(found) {
            for key in ["rule", "outcome", "severity", "owner", "message", "fingerprint"] {
                assert_eq!(finding[key], judgement[key], "{key}");
            }
        }
    }
}

#[test]
fn each_image_has_its_own_statement_on_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let names = ["good", "no-nccl", "env-disabled"];
    let images = names.map(image);
    let mut arguments = vec!["check", "--quiet", "--no-config", "--format", "in-toto=all.jsonl", "nothing-here.tar"];
    arguments.extend(images.iter().map(String::as_str));
    let output = run_in(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(2));
    let statements = lines(&folder.path().join("all.jsonl"));
    let found: Vec<_> = statements
        .iter()
        .map(|statement| (statement["subject"].as_array().unwrap().len(), &statement["predicate"]["verdict"]))
        .collect();
    assert_eq!(found, [(1, &"pass".into()), (1, &"fail".into()), (1, &"fail".into())]);
    let subjects = statements.iter().map(|statement| statement["predicate"]["image"]["manifest"].as_str().unwrap());
    assert_eq!(subjects.collect::<Vec<_>>(), names.map(manifest));
}

/// The page and the policy are for the statements that this version writes.
#[test]
fn the_policy_is_for_this_type() {
    let output = run(&["check", "--quiet", "--no-config", "--format", "in-toto", &image("good")], None);
    let statement: Value = serde_json::from_slice(&output.stdout).unwrap();
    let kind = statement["predicateType"].as_str().unwrap();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    for (file, line) in [
        ("attest.cue", format!("predicateType!: \"{kind}\"\n")),
        ("attest.md", format!("Its type is `{kind}`")),
        ("attest.md", format!("cosign attest --key cosign.key --type {kind} ")),
    ] {
        assert!(fs::read_to_string(docs.join(file)).unwrap().contains(&line), "{file} lacks {line}");
    }
}

/// An image without a digest does not stop the others, and a file without a statement is not left.
#[test]
fn what_has_no_digest_is_an_error_that_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let entries = || {
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort_unstable();
        names
    };
    fs::create_dir(folder.path().join("root")).unwrap();
    let good = image("good");
    let check = |images: &[&str]| {
        let mut arguments = vec!["check", "--quiet", "--no-config", "--format", "in-toto=s.json"];
        arguments.extend(images);
        run_in(folder.path(), &arguments)
    };
    for image in ["root:root", "nothing-here.tar"] {
        let output = check(&[image]);
        assert_eq!(output.status.code(), Some(2), "{image}");
        assert_eq!(entries(), ["root"], "{image}");
    }
    let output = check(&["root:root", &good]);
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("error: --format in-toto: root:root has no manifest digest"), "{message}");
    assert!(message.contains("help: push the image to a registry"), "{message}");
    assert_eq!(entries(), ["root", "s.json"]);
    assert_eq!(lines(&folder.path().join("s.json")).len(), 1);
}

#[test]
fn a_docker_archive_has_no_manifest() {
    let folder = tempfile::tempdir().unwrap();
    let archive = folder.path().join("good.tar");
    let layout = layout("good");
    let blobs = layout.path().join("blobs/sha256");
    let index: Value = serde_json::from_slice(&fs::read(layout.path().join("index.json")).unwrap()).unwrap();
    let hex = |descriptor: &Value| descriptor["digest"].as_str().unwrap().strip_prefix("sha256:").unwrap().to_owned();
    let manifest: Value = serde_json::from_slice(&fs::read(blobs.join(hex(&index["manifests"][0]))).unwrap()).unwrap();
    let mut tar = tar::Builder::new(fs::File::create(&archive).unwrap());
    let layers: Vec<_> = manifest["layers"].as_array().unwrap().iter().map(hex).collect();
    let config = hex(&manifest["config"]);
    for name in layers.iter().chain([&config]) {
        tar.append_path_with_name(blobs.join(name), name).unwrap();
    }
    let list = serde_json::json!([{"Config": config, "RepoTags": ["train:1"], "Layers": layers}]).to_string();
    let mut header = tar::Header::new_gnu();
    header.set_size(list.len() as u64);
    header.set_mode(0o644);
    tar.append_data(&mut header, "manifest.json", list.as_bytes()).unwrap();
    tar.finish().unwrap();
    let output =
        run_in(folder.path(), &["check", "--no-config", "--format", "human", "--format", "in-toto=s.json", "good.tar"]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(text.starts_with("PASS  good.tar"), "the report is written all the same: {text}");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("good.tar has no manifest digest"), "{}", stderr(&output));
    assert!(!folder.path().join("s.json").exists());
}

/// Another run, or another version, may have made a stored report.
#[test]
fn a_stored_report_is_not_attested() {
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("r.json").display().to_string();
    run(&["check", "--quiet", "--no-config", "--format", &format!("json={stored}"), &image("good")], None);
    let output = run(&["report", "--format", "in-toto", &stored], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("error: --format in-toto: available formats: human"), "{}", stderr(&output));
}
