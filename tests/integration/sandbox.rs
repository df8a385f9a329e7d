//! The sandbox of the program itself: what a hostile image cannot make it read, and that nothing is missed without that.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{assert_judged, layout, program, run_with, stderr, world};

/// The largest blob of a layout, which is a layer.
fn largest_blob(layout: &Path) -> PathBuf {
    let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path());
    blobs.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

/// The JSON reports of a check with a value of `NCCLCHECK_SANDBOX`. Temporary files have a folder of their own, which the run may
/// read.
fn checked(sandbox: &str, image: &str) -> (Vec<Value>, String, Option<i32>) {
    let temporary = tempfile::tempdir().unwrap();
    let variables = [("TMPDIR", temporary.path().to_str().unwrap()), ("NCCLCHECK_SANDBOX", sandbox)];
    let output = run_with(&variables, &["check", "--format", "json", image], None);
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let reports = lines.map(|line| serde_json::from_slice(line).unwrap()).collect();
    (reports, stderr(&output), output.status.code())
}

/// Returns true, and says so, on a kernel that cannot show what a test is about.
#[expect(clippy::print_stderr, reason = "a test that tries nothing must not look like one that passes")]
fn lacks_landlock(report: &Value) -> bool {
    let sandbox = &report["asked"]["sandbox"];
    let lacks = sandbox["landlock"].is_null();
    if lacks {
        assert_eq!(sandbox["state"], "partial", "{sandbox}");
        eprintln!("not tried: this kernel has no Landlock");
    }
    lacks
}

#[test]
fn a_link_in_an_image_leads_to_no_other_file() {
    let image = layout("no-nccl");
    let elsewhere = tempfile::tempdir().unwrap();
    // A layer that was moved away: the file that a link of a hostile image names could be any other.
    let blob = largest_blob(image.path());
    let moved = elsewhere.path().join("layer");
    fs::rename(&blob, &moved).unwrap();
    symlink(&moved, &blob).unwrap();
    let reference = format!("oci:{}", image.path().display());

    let (reports, said, status) = checked("", &reference);
    if lacks_landlock(&reports[0]) {
        return;
    }
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("outside of the files that this command may read"), "{said}");
    assert!(said.contains("NCCLCHECK_SANDBOX=off allows it"), "{said}");
    assert_eq!(reports[0]["verdict"], "error");
    assert_eq!(reports[0]["asked"]["sandbox"]["state"], "on", "{}", reports[0]["asked"]);

    let (reports, said, _) = checked("off", &reference);
    assert_eq!(said, "");
    assert_judged(&reports[0]);
    let off = json!({"state": "off", "landlock": null, "why": "NCCLCHECK_SANDBOX=off"});
    assert_eq!(reports[0]["asked"]["sandbox"], off);
}

#[test]
fn a_verdict_is_the_same_in_the_sandbox() {
    let image = world("no-nccl").display().to_string();
    let (mut inside, _, _) = checked("", &image);
    let (mut outside, _, _) = checked("off", &image);
    assert_eq!(inside.len(), 1);
    for report in inside.iter_mut().chain(&mut outside) {
        assert_judged(report);
        let report = report.as_object_mut().unwrap();
        report.remove("time");
        report["asked"].as_object_mut().unwrap().remove("sandbox").unwrap();
    }
    assert_eq!(inside, outside);
    let (reports, said, status) = checked("no", &image);
    assert_eq!((&*reports, &*said, status), (&[][..], "error: NCCLCHECK_SANDBOX=no: expected off\n", Some(2)));
}

/// The status of each thread of a process.
fn threads(process: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok()).collect()
}

#[test]
fn every_thread_of_a_run_is_restricted() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("image.tar");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    // It waits for a writer, and has its threads by then.
    let mut run = Command::new(program())
        .args(["check", "--cache", "off", "--jobs", "2"])
        .arg(&fifo)
        .env_clear()
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let found = loop {
        let found = threads(run.id());
        if found.len() > 2 || begun.elapsed() > Duration::from_secs(20) {
            break found;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(found.len() > 2, "{found:?}");
    for status in found {
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
        assert_eq!((field("NoNewPrivs:"), field("Seccomp:")), (Some("1"), Some("2")), "{status}");
    }
}

#[test]
fn outputs_and_a_cache_are_written_in_the_sandbox() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let image = world("no-nccl").display().to_string();
    fs::create_dir(at("reports")).unwrap();
    let format = format!("json={}", at("reports/a.json"));
    let variables = [("HOME", &*at("home")), ("TMPDIR", &*at("reports"))];
    for _ in 0..2 {
        let output = run_with(&variables, &["check", "--format", &format, &image], None);
        assert_eq!(stderr(&output), "");
    }
    let report: Value = serde_json::from_slice(&fs::read(at("reports/a.json")).unwrap()).unwrap();
    assert!(lacks_landlock(&report) || report["asked"]["sandbox"]["state"] == "on", "{}", report["asked"]);
    let layers = report["image"]["layers"].as_array().unwrap();
    assert!(!layers.is_empty() && layers.iter().all(|layer| layer["cached"] == true), "{layers:?}");
    let left: Vec<_> = fs::read_dir(at("reports")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["a.json"]);
}
