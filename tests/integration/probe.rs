//! Probes recorded on real machines, judged again.

use std::process::Command;

use serde_json::Value;

use super::support::{run, run_with};

/// The report on a recording, and the exit status.
fn report(recording: &str) -> (Value, i32) {
    let path = format!("{}/fixtures/probe/{recording}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let output = run(&["probe", "--from", &path, "--format", "json"], None);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    });
    (report, output.status.code().unwrap())
}

fn fact<'r>(report: &'r Value, name: &str) -> &'r Value {
    &report["facts"][name]["value"]
}

#[test]
fn two_healthy_gpus() {
    let (report, _) = report("h200-x2/quick");
    assert_eq!(fact(&report, "run.gpu.models"), &serde_json::json!(["NVIDIA H200", "NVIDIA H200"]));
    assert_eq!(fact(&report, "run.topology.nvlink_pairs"), &serde_json::json!(["GPU0-GPU1: NV18"]));
    assert_eq!(fact(&report, "run.topology.nvlink_gb_s"), 478);
    assert_eq!(fact(&report, "run.nccl.transports"), &serde_json::json!(["P2P/CUMEM"]));
    assert_eq!(fact(&report, "run.nccl.version"), "2.28.9");
    assert_eq!(fact(&report, "run.nccl.nodes"), 1);
    assert!(fact(&report, "run.nccl.all_reduce_mb_s").as_i64().unwrap() > 290_000);
    for name in ["run.nccl.wrong_values", "run.gpu.slowed", "run.torch.kernel_errors", "run.nccl.warnings"] {
        assert_eq!(report["facts"][name]["state"], "absent", "{name}: {}", report["facts"][name]);
    }
}

#[test]
fn idle_gpus_have_no_finding() {
    let (report, status) = report("h200-x2/idle");
    assert_eq!(status, 0);
    assert_eq!(fact(&report, "run.nccl.percent_of_sound"), 100);
    assert_eq!(fact(&report, "run.cpu_wait_percent"), 0);
    for name in ["run.gpu.busy", "run.nccl.slow", "run.slowed_by"] {
        assert_eq!(report["facts"][name]["state"], "absent", "{name}: {}", report["facts"][name]);
    }
}

#[test]
fn containers_of_one_gpu_each() {
    let (report, _) = report("h200-x2/full");
    let isolated = fact(&report, "run.isolated").as_array().unwrap();
    let percent: Vec<_> = isolated.iter().map(|record| record["percent"].as_str().unwrap_or("fails")).collect();
    assert_eq!(percent, ["100", "1", "fails", "1", "100"]);
    assert!(isolated[2]["error"].as_str().unwrap().contains("invalid device ordinal"));
    assert!(fact(&report, "run.network.error").as_str().unwrap().contains("No space left on device"));
    let differs: Vec<_> =
        fact(&report, "run.what_if").as_array().unwrap().iter().map(|record| &record["differs"]).collect();
    assert_eq!(differs, ["no", "no", "no", "no", "yes", "yes"]);
}

/// Each planted fault is one finding, and nothing else fails or stays unanswered beside it.
#[test]
fn a_planted_fault_is_one_finding() {
    for (recording, rule, owner) in [
        ("h200/busy", "runtime/gpu-busy", "host"),
        ("h200/memory-taken", "runtime/gpu-memory-taken", "host"),
        ("h200/none-visible", "runtime/gpus-hidden", "arrangement"),
        ("h200-x2/copy-during", "runtime/gpu-busy", "host"),
        ("h200-x2/cpus-busy", "runtime/cpus-busy", "host"),
        ("h200-x2/cpu-quota", "runtime/cpus-too-few", "arrangement"),
        ("h200-x2/two-on-one-cpu", "runtime/cpus-too-few", "arrangement"),
        ("h200-x2/two-variables", "runtime/bandwidth-low-by-variable", "arrangement"),
        ("h200-x2/variable-in-file", "runtime/bandwidth-low-by-variable", "arrangement"),
    ] {
        let (report, status) = report(recording);
        let judgements = report["judgements"].as_array().unwrap();
        let open = judgements.iter().filter(|judgement| {
            ["fail", "unknown"].contains(&judgement["outcome"].as_str().unwrap())
                && judgement.get("consequence_of").is_none()
        });
        let open: Vec<_> = open.map(|judgement| (&judgement["rule"], &judgement["owner"])).collect();
        assert_eq!((status, open), (1, vec![(&rule.into(), &owner.into())]), "{recording}");
    }
}

#[test]
fn a_missing_rank_is_named() {
    let (report, _) = report("h200-x2/hang");
    assert!(
        fact(&report, "run.nccl.hang")
            .as_str()
            .unwrap()
            .contains("rank 1 has not come to 'all_reduce of 8 bytes, warm-up'")
    );
    assert_eq!(report["facts"]["run.nccl.wrong_values"]["state"], "unknown");
}

/// The outcome of a recording of these lines: exit status, standard output and standard error.
fn judged(lines: &[&str]) -> (i32, String, String) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines.join("\n")).unwrap();
    let output = run(&["probe", "--from", file.path().to_str().unwrap()], None);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const HELLO: &str = r#"{"ncclcheck":1,"event":"hello","plan":{"steps":["limits","gpus"]}}"#;
const START: &str = r#"{"ncclcheck":1,"event":"start","step":"limits","deadline":20.0}"#;
const LIMITS: &str = r#"{"ncclcheck":1,"event":"result","step":"limits","seconds":0.1,"body":{}}"#;
const END: &str = r#"{"ncclcheck":1,"event":"end","run":1}"#;

#[test]
fn a_recording_in_which_nothing_ran_is_an_error() {
    let (status, _, error) = judged(&[HELLO, r#"{"ncclcheck":1,"event":"end"}"#]);
    assert_eq!(status, 2);
    assert!(error.contains("no step ran in this recording"), "{error}");
}

#[test]
fn a_requested_step_without_an_outcome_is_unknown() {
    let (status, report, _) = judged(&[HELLO, START, LIMITS, END]);
    assert_eq!(status, 3, "{report}");
    assert!(report.contains("the step gpus was requested, and the program did not run it"), "{report}");
}

#[test]
fn a_line_that_is_not_accepted_leaves_the_run_incomplete() {
    let launch = r#"{"ncclcheck":1,"event":"launch","engine":"Docker","image":"x","image_id":"","command":"","gpus":false,"steps":["limits"]}"#;
    let (status, report, _) = judged(&[launch, HELLO, START, LIMITS, END]);
    assert_eq!(status, 0, "{report}");
    let again = [launch, HELLO, START, LIMITS, LIMITS, END];
    let (status, report, _) = judged(&again);
    assert_eq!(status, 3, "{report}");
    let why = report.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        why.contains("1 of the program's lines were not accepted, the first: line 5: the step limits does not run"),
        "{report}"
    );
}

#[test]
fn several_recordings_are_judged_in_one_run() {
    let path = |name: &str| format!("{}/fixtures/probe/h200-x2/{name}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let quick = path("quick");
    let hang = path("hang");
    let output = run(&["probe", "--from", &quick, "--from", &hang], None);
    let report = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), report.matches("torch:local: ").count()), (Some(1), 2), "{report}");
}

/// An engine is asked for what it supports, but the command line does not need one.
#[test]
fn tasks_with_a_gpu_of_their_own_are_judged_as_a_job() {
    let task = |number| format!("{}/fixtures/probe/h100-x2/task-{number}.jsonl", env!("CARGO_MANIFEST_DIR"));
    let table = |tasks: &[&str]| {
        let files = tasks.iter().flat_map(|file| ["--from", file]);
        let words: Vec<_> = ["probe", "--format", "csv"].into_iter().chain(files).collect();
        let output = run(&words, None);
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let (exit, both) = table(&[&task(0), &task(1)]);
    assert_eq!(exit, Some(3), "whether one GPU reaches the other is unknown: {both}");
    assert_eq!(both.matches("2.11.0+cu130,not read,2.28.9").count(), 2, "{both}");
    let (exit, alone) = table(&[&task(0)]);
    assert!(exit == Some(1) && alone.contains("runtime/gpus-hidden") && !both.contains("gpus-hidden"), "{alone}");
}

#[test]
fn the_command_line_needs_no_engine() {
    let nowhere = [("DOCKER_HOST", "unix:///nonexistent/docker.sock")];
    let output = run_with(&nowhere, &["probe", "--dry-run", "my/image"], None);
    let line = String::from_utf8(output.stdout).unwrap();
    let note = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{note}");
    assert!(line.contains("docker run --rm --interactive --gpus all "), "{line}");
    assert!(note.contains("note: no engine was asked"), "{note}");
}

#[test]
fn an_invalid_recording_is_an_error() {
    let output = run(&["probe", "--from", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("not a recording of a probe"));
}

/// Runs the printed program with the local Python.
#[test]
fn the_printed_program_runs() {
    let payload = run(&["probe", "--print-payload"], None).stdout;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("payload.py");
    std::fs::write(&file, payload).unwrap();
    let run = Command::new("python3").arg(&file).args(["--plan", r#"{"steps":["limits"]}"#]).output().unwrap();
    let lines: Vec<Value> = run
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["hello", "start", "result", "end"], "{}", String::from_utf8_lossy(&run.stderr));
}

#[test]
fn in_place() {
    let output = run(&["probe", "--in-place", "--steps", "limits", "--format", "json"], None);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["probe"]["steps"][0]["outcome"], "done");
    assert!(fact(&report, "run.processors").as_i64().unwrap() > 0);
}

#[test]
fn usage_errors_are_reported_before_anything_runs() {
    for (arguments, wanted) in [
        (&["--in-place", "--steps", "nccl"][..], "unknown step 'nccl'; available: limits, storage, gpus"),
        (&["--in-place", "--fail-for", "me"], "unknown owner 'me'; available: image, host, arrangement"),
        (&["--in-place", "--what-if", "NCCL_ALGO"], "expected NAME=VALUE"),
        (&["--in-place", "--expect", "/nonexistent"], "error: --expect /nonexistent: no such file or directory\n"),
        (&["oci:layout"], "a probe runs images of a container engine"),
        (&["--isolate-gpus", "--network", "bridge", "my/image"], "--network must be host"),
    ] {
        let output = run(&[&["probe"][..], arguments].concat(), None);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
        assert!(stderr.contains(wanted), "{stderr}");
    }
}
