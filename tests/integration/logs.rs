//! Logs of jobs, as users give them.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::support::{run, stderr, world};
use crate::tree;

fn log(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/logs").join(name).display().to_string()
}

fn printed(arguments: &[&str], input: Option<&[u8]>) -> (Option<i32>, String) {
    let output = run(arguments, input);
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned() + &stderr(&output))
}

#[test]
fn a_log_is_judged_however_it_is_given() {
    let path = log("value-error.log");
    let text = fs::read(&path).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("value-error.log.gz");
    let mut encoder = GzEncoder::new(fs::File::create(&compressed).unwrap(), Compression::fast());
    encoder.write_all(&text).unwrap();
    encoder.finish().unwrap();
    let compressed = compressed.display().to_string();
    for (arguments, input) in [
        (&["log", &path][..], None),
        (&["log", &compressed], None),
        (&["log", "-"], Some(&*text)),
        (&["explain", &path], None),
        (&["explain", "-"], Some(&text)),
    ] {
        let (exit, text) = printed(arguments, input);
        assert_eq!(exit, Some(1), "{arguments:?}: {text}");
        assert!(text.contains("sample 18231") && text.contains("(rank 1)"), "{arguments:?}: {text}");
    }
    // One log for each host is one job.
    let (_, text) = printed(&["log", &log("two-value-error.node-a.log"), &log("two-value-error.log")], None);
    assert!(text.contains("error[job/exception]") && !text.contains("job 2"), "{text}");
}

#[test]
fn a_log_without_a_fault_passes_and_a_quiet_one_has_no_answer() {
    let (exit, text) = printed(&["log", &log("healthy.log")], None);
    assert!(exit == Some(0) && text.starts_with("PASS ") && text.contains("192.43 GB/s at 512 MiB"), "{text}");
    let (exit, text) = printed(&["log", "-"], Some(b"step 1 loss 2.5\nstep 2 loss 2.4\n"));
    assert!(exit == Some(3) && text.contains("NCCL_DEBUG=INFO"), "{text}");
}

#[test]
fn every_format_shows_the_cause() {
    let path = log("oom.log");
    for format in ["human", "table", "json", "csv", "sarif", "junit", "github", "gitlab", "markdown", "html"] {
        let (exit, text) = printed(&["log", "--format", format, &path], None);
        assert!(exit == Some(1) && text.contains("job/gpu-memory"), "{format}: {text}");
    }
}

#[test]
fn what_is_not_a_log_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let inputs = [
        (file("empty", b""), "is empty"),
        (file("binary", b"\x7fELF\0\0"), "byte 4 is zero"),
        (file("wide", b"\xff\xfea\0\n\0"), "iconv"),
        (file("rccl", b"RCCL version 2.18.3+hip6.0\n"), "a log of RCCL"),
        (file("broken.gz", b"\x1f\x8b\x08\0\0"), "broken.gz"),
        (folder.path().display().to_string(), "is a folder"),
        (folder.path().join("none").display().to_string(), "none"),
    ];
    for (path, message) in inputs {
        let (exit, text) = printed(&["log", &path], None);
        assert!(exit == Some(2) && text.contains(message), "{path}: {exit:?} {text}");
    }
}

#[test]
fn a_host_and_a_launch_beside_a_log_name_the_setting() {
    let machine = tree::host("virtual");
    let root = machine.path().display().to_string();
    let record = machine.path().join("record.json").display().to_string();
    assert!(run(&["host", "--root", &root, "--format", &format!("json={record}")], None).status.success());
    let (_, text) = printed(&["log", "--host", &record, &log("ifname-nosuch.log")], None);
    assert!(text.contains("error[job/name-matches-nothing]") && text.contains("NCCL_SOCKET_IFNAME=nosuch0"), "{text}");
    assert!(text.contains("(job/no-interface)"), "{text}");
    // What NCCL found is there, although the host does not have it.
    let (exit, text) = printed(&["log", "--host", &record, &log("two-healthy.log")], None);
    assert!(exit == Some(0) && !text.contains("name-matches-nothing"), "{text}");
    let (exit, text) = printed(&["log", "--host", "gpu=h100", &log("healthy.log")], None);
    assert!(exit == Some(2) && text.contains("is a description"), "{text}");

    let launch = machine.path().join("job.sh");
    fs::write(&launch, "#!/bin/sh\nexport NCCL_SOCKET_IFNAME=ib0 NCCL_ALGO=Ring NCCL_IB_TIMEOUT=22\n").unwrap();
    let launch = launch.display().to_string();
    let (_, text) = printed(&["log", "--launch", &launch, &log("two-healthy.log")], None);
    assert!(text.contains("job/setting-not-read"), "{text}");
    assert!(!text.contains("NCCL_IB_TIMEOUT"), "NCCL reads it only with RDMA: {text}");
}

#[test]
fn an_image_and_the_log_of_its_job_are_judged_together() {
    let image = world("good").display().to_string();
    let (exit, text) = printed(&["check", "--log", &log("oom.log"), &image], None);
    assert_eq!(exit, Some(1), "{text}");
    assert!(text.contains("error[job/gpu-memory]") && text.contains("  libibverbs  "), "{text}");
    assert!(text.contains("warning[job/another-nccl]"), "{text}");
}
