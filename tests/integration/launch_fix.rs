//! `check --fix` of launch files: the diff of each fixture, which git applies, and what is judged afterwards.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{run_in, stderr, world};

const HOST: &[&str] = &["--host", "gpu=h100x4,rdma=mlx5"];

/// The diff of a launch file in a folder, and its effects.
fn fix(folder: &Path, name: &str, more: &[&str]) -> (String, String) {
    let output = run_in(folder, &[&["check", "--cache", "off", "--fix", "--launch", name], more].concat());
    (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
}

fn apply(folder: &Path, diff: &str) {
    let mut git = Command::new("git");
    let mut git = git.args(["apply", "-p0", "-"]).current_dir(folder).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut git.stdin.take().unwrap(), diff.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success(), "{diff}");
}

#[test]
fn a_patch_settles_what_it_says() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/launches");
    let names = fs::read_dir(&fixtures).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names: BTreeSet<_> = names.filter(|name| Path::new(name).extension() != Some("diff".as_ref())).collect();
    for name in names {
        let folder = tempfile::tempdir().unwrap();
        fs::copy(fixtures.join(&name), folder.path().join(&name)).unwrap();
        let (diff, effects) = fix(folder.path(), &name, HOST);
        // A launch without one has only findings that a patch cannot settle.
        let expected = fs::read_to_string(fixtures.join(format!("{name}.diff"))).unwrap_or_default();
        assert_eq!(diff, expected, "{name}");
        if diff.is_empty() {
            assert!(effects.contains("remaining:\n  warning["), "{name}: {effects}");
            continue;
        }
        apply(folder.path(), &diff);
        let (more, after) = fix(folder.path(), &name, HOST);
        assert_eq!(more, "", "{name}");
        let settled = effects.lines().skip_while(|line| !line.starts_with("settled")).skip(1);
        let settled: Vec<_> = settled.take_while(|line| line.starts_with("  ")).collect();
        assert!(!settled.is_empty() && settled.iter().all(|rule| !after.contains(rule)), "{name}: {after}");
    }
}

#[test]
fn an_image_is_judged_with_the_changed_launch() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("job.sh"), "docker run --gpus 2 -e NCCL_IB_DISABLE=1 x torchrun a.py\n").unwrap();
    let image = world("good").display().to_string();
    let (diff, effects) = fix(folder.path(), "job.sh", &[&[&*image], HOST].concat());
    assert!(diff.contains("\n+docker run --ipc=host --gpus 2 x torchrun a.py\n"), "{diff}");
    assert!(effects.contains("env/ib-disabled") && effects.contains("launch/shm-small"), "{effects}");
}

#[test]
fn what_cannot_be_changed_remains() {
    let folder = tempfile::tempdir().unwrap();
    let write = |text: &str| fs::write(folder.path().join("job.yaml"), text).unwrap();
    let service = "services:\n  a:\n    image: x\n    gpus: all\n    command: torchrun a.py\n";
    write(&format!("{service}    ports: [80]\n    devices: [/dev/infiniband]\n    ipc: host\n"));
    let (diff, effects) = fix(folder.path(), "job.yaml", &[]);
    assert!(!diff.contains("network_mode"), "{diff}");
    assert!(effects.contains("remaining:\n  warning[launch/rdma-without-network]"), "{effects}");
    write(&service.replace("image: x", "image: x\n    environment: {TOKEN: hf_abcdefghijklmnopqrstuvwxyzABCDEFGH}"));
    let (diff, effects) = fix(folder.path(), "job.yaml", &[]);
    assert_eq!(diff, "");
    assert!(effects.contains("a patch would show a secret"), "{effects}");
}

#[test]
fn a_secret_near_a_change_is_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let text = "services:\n  a:\n    image: x\n    gpus: all\n    environment:\n      API_KEY: plain\n    command: torchrun a.py\n";
    fs::write(folder.path().join("job.yaml"), text).unwrap();
    let (diff, effects) = fix(folder.path(), "job.yaml", &[]);
    assert!(diff.contains("\n+    ipc: host\n     gpus: all\n") && !diff.contains("plain"), "{diff}");
    assert!(effects.contains("settled"), "{effects}");
    apply(folder.path(), &diff);
    let changed = text.replace("image: x\n", "image: x\n    ipc: host\n");
    assert_eq!(fs::read_to_string(folder.path().join("job.yaml")).unwrap(), changed);
}
