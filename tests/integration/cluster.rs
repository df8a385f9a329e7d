//! The nodes of a job, by stand-ins for the program on them.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use super::support::{run, run_with, stderr};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A command that starts a stand-in named for what it does, without the number behind its name.
fn launch(recording: &str) -> String {
    let agent = format!("'{ROOT}/tests/cluster/agent'");
    format!("n={{node}}; {agent} \"${{n%-*}}\" '{ROOT}/fixtures/probe/h100-x2/{recording}.jsonl'")
}

fn first_line(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_record_gives_the_same_report() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.jsonl").display().to_string();
    let launch = launch("both-healthy");
    let nodes = "sound-1,sound-2,absent-1,lying-1";
    let path = [("PATH", "/usr/bin:/bin")];
    let arguments = ["cluster", "--nodes", nodes, "--launch", &launch, "--record", &record, "--quiet"];
    let output = run_with(&path, &arguments, None);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let expected = "FAIL  4 nodes; 2 odd nodes: absent-1: absent: its program did not start: its command ended with \
                    exit status: 7; lying-1: failed: 3 lines of its output cannot be of the probe's program, the first: \
                    line 1: only ncclcheck itself writes this event";
    assert_eq!(first_line(&output.stdout), expected);
    let again = run(&["cluster", "--from", &record], None);
    assert_eq!((again.status.code(), again.stdout), (Some(1), output.stdout));
    let json = run(&["cluster", "--from", &record, "--format", "json"], None);
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&report["schema"], &report["verdict"]), (&"ncclcheck-cluster/1".into(), &"fail".into()));
    let ends: Vec<_> = report["nodes"].as_array().unwrap().iter().map(|node| &node["end"]).collect();
    assert_eq!(ends, ["ended", "ended", "absent", "failed"]);
}

#[test]
fn a_lost_node_shortens_the_tests_of_sound_ones() {
    let folder = tempfile::tempdir().unwrap();
    let beginning = folder.path().join("beginning");
    std::fs::write(&beginning, "{\"ncclcheck\":1,\"event\":\"hello\"}\n").unwrap();
    let launch = |kind: &str| {
        let stand_in = format!("'{ROOT}/tests/cluster/stand-in' {{node}}");
        format!(
            "case {{node}} in n3) kind={kind} ;; *) kind=sound ;; esac; exec {stand_in} $kind '{}'",
            beginning.display()
        )
    };
    let nodes = "n0,n1,n2,n3,n4,n5,n6,n7";
    let tests = |kind: &str| {
        let launch = launch(kind);
        let steps = ["--steps", "between-nodes", "--format", "json", "--quiet"];
        let arguments = [&["cluster", "--nodes", nodes, "--launch", &launch][..], &steps].concat();
        let output = run_with(&[("PATH", "/usr/bin:/bin")], &arguments, None);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["network"]["tests"].as_array().unwrap().len()
    };
    assert_eq!(tests("sound"), 24);
    assert_eq!(tests("half"), 24, "a slow node is not lost");
    // All rounds would have 19: four tests, and three in each of the five that follow.
    let count = tests("dies");
    assert!(count < 19, "{count}");
}

#[test]
fn recordings_of_several_nodes_are_compared() {
    let recording = |name: &str| format!("{ROOT}/fixtures/probe/h100-x2/{name}.jsonl");
    let files = ["both-healthy", "shm-off", "shm-small"].map(recording);
    let output = run(&["cluster", "--from", &files[0], &files[1], &files[2]], None);
    let expected = "FAIL  3 nodes; 2 odd nodes: shm-off: variable NCCL_SHM_DISABLE is 1, and unset on 2 of 3 nodes; \
                    shm-small: size of /dev/shm is 1 MiB, and 64 MiB on 2 of 3 nodes";
    assert_eq!(first_line(&output.stdout), expected, "{}", stderr(&output));
}

/// srun and scontrol that start stand-ins, one a node, and label and cut what these write as srun does.
const SRUN: &str = r#"#!/bin/sh
case $0 in *scontrol) printf 'sound-1\nsound-2\ndead-1\n'; exit ;; esac
cut() { awk -v task="$1" '{ do { print task ": " substr($0, 1, 1024); $0 = substr($0, 1025) } while (length($0)) }'; }
for task in 0 1 2; do
  case $task in 2) node=dead ;; *) node=sound ;; esac
  { AGENT $node RECORDING 2>&3 < /dev/null | cut $task; } 3> /dev/null
done
echo 'srun: error: dead-1: task 2: Exited with exit code 3' >&2
"#;

#[test]
fn a_step_of_slurm_has_a_task_on_each_node() {
    let folder = tempfile::tempdir().unwrap();
    let script = SRUN.replace("AGENT", &format!("'{ROOT}/tests/cluster/agent'"));
    let script = script.replace("RECORDING", &format!("'{ROOT}/fixtures/probe/h100-x2/both-healthy.jsonl'"));
    for name in ["srun", "scontrol"] {
        let path = folder.path().join(name);
        std::fs::write(&path, &script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:/usr/bin:/bin", folder.path().display());
    let variables = [("PATH", path.as_str()), ("SLURM_JOB_NODELIST", "sound-[1-2],dead-1")];
    let output = run_with(&variables, &["cluster", "registry.example#train", "--quiet"], None);
    let expected = "FAIL  3 nodes; the odd node is dead-1: failed: its program began the step limits, and then srun reported \
                    `Exited with exit code 3`";
    assert_eq!((first_line(&output.stdout).as_str(), output.status.code()), (expected, Some(1)), "{}", stderr(&output));
}

#[test]
fn what_reaches_no_node_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().join("record.jsonl");
    std::fs::write(&record, "{}\n").unwrap();
    let record = record.display().to_string();
    for arguments in [
        &["cluster"][..],
        &["cluster", "--nodes", "a,b", "--launch", "ssh"],
        &["cluster", "--nodes", "a,a", "--launch", "ssh {node}"],
        &["cluster", "--nodes", "a"],
        &["cluster", "--from", &record],
        &["cluster", "--from", &record, &record],
        &["cluster", "--nodes", "a", "--launch", "ssh {node}", "--steps", "nccl"],
    ] {
        let output = run(arguments, None);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        assert!(stderr(&output).starts_with("error: "), "{arguments:?}");
    }
}
