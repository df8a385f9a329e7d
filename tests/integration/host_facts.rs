//! Recorded hosts, and images judged for them.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{assert_judged, run, stderr, world};
use crate::tree;

/// Records a host from its files, and judges an image for it; returns the report and the exit status.
fn judged(host: &str, image: &str) -> (Value, i32) {
    judged_under(tree::host(host).path(), "preflight", image)
}

/// Records a host from the files in a folder, and judges an image for it under a profile.
fn judged_under(machine: &Path, profile: &str, image: &str) -> (Value, i32) {
    let root = machine.display().to_string();
    let file = machine.join("record.json").display().to_string();
    let recorded = run(&["host", "--root", &root, "--format", &format!("json={file}")], None);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let image = world(image).display().to_string();
    let output = run(&["check", "--format", "json", "--profile", profile, "--host", &file, &image], None);
    let report = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_judged(&report);
    (report, output.status.code().unwrap())
}

/// The rules with this outcome.
fn rules(report: &Value, outcome: &str) -> Vec<String> {
    let judgements = report["judgements"].as_array().unwrap().iter();
    let wanted = judgements.filter(|judgement| judgement["outcome"] == outcome);
    wanted.map(|judgement| judgement["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_healthy_host_has_no_findings() {
    let (report, status) = judged("dgx", "good");
    assert_eq!((rules(&report, "fail"), status), (vec![], 0));
    // Facts that only NVML reports are not in the files.
    assert_eq!(rules(&report, "unknown"), ["host/mig", "host/persistence-off"]);
}

#[test]
fn faults_of_a_host_are_found() {
    let (report, status) = judged("pcie", "good");
    assert_eq!(status, 1);
    assert_eq!(
        rules(&report, "fail"),
        [
            "host/acs-enabled",
            "host/cdi-specification-broken",
            "host/driver-library-mismatch",
            "host/gpu-direct-missing",
            "host/iommu-translating",
            "host/memlock-low",
            "host/minor-version-compatibility",
            "host/rdma-no-verbs",
            "host/requirement-unmet",
            "host/roce-mtu-low",
            "host/uvm-missing",
            "nccl/cumem-host-numa",
        ]
    );
}

#[test]
fn a_host_without_gpus_fails() {
    let (report, status) = judged("virtual", "good");
    assert_eq!((rules(&report, "fail"), status), (vec!["host/no-gpu".to_owned(), "host/no-rdma-device".to_owned()], 1));
    assert_eq!(rules(&report, "unknown"), Vec::<String>::new());
}

#[test]
fn faults_of_a_rack_are_found() {
    let (report, status) = judged("rack", "good");
    assert_eq!(
        (rules(&report, "fail"), status),
        (
            [
                "host/container-toolkit-missing",
                "host/imex-channels-missing",
                "host/imex-not-running",
                "host/nofile-low",
                "host/remove-ipc",
                "host/stack-unlimited",
            ]
            .map(ToOwned::to_owned)
            .to_vec(),
            1
        )
    );
}

/// Takes something from a healthy host, and names the rules of the host that then fail under a profile.
#[test]
fn a_host_without_what_a_job_needs_fails() {
    type Change = fn(&Path);
    let cases: [(&str, Change, &str, &[&str]); 10] = [
        ("driver", no_driver, "preflight", &["host/driver-not-loaded"]),
        ("device nodes", no_gpu_nodes, "preflight", &["host/gpu-nodes-missing"]),
        ("toolkit", no_toolkit, "preflight", &["host/container-toolkit-missing"]),
        ("RDMA nodes", |host| remove(host, "dev/infiniband"), "multi-node-rdma", &["host/rdma-no-device-node"]),
        ("active ports", ports_down, "multi-node-rdma", &["host/rdma-no-active-port"]),
        ("active ports", ports_down, "efa", &["host/rdma-no-active-port", "require/efa-device"]),
        ("active ports", ports_down, "single-node", &[]),
        ("NIC", no_nic, "multi-node-rdma", &["host/no-rdma-device"]),
        ("NIC", no_nic, "efa", &["host/no-rdma-device", "require/efa-device"]),
        ("NIC", no_nic, "multi-node-tcp", &[]),
    ];
    for (what, change, profile, expected) in cases {
        let machine = tree::host("dgx");
        change(machine.path());
        let (report, _) = judged_under(machine.path(), profile, "good");
        let failed = report["judgements"].as_array().unwrap().iter().filter(|judgement| {
            judgement["outcome"] == "fail" && judgement["severity"] == "error" && judgement["owner"] == "host"
        });
        let failed: Vec<_> = failed.map(|judgement| judgement["rule"].as_str().unwrap()).collect();
        assert_eq!(failed, expected, "without {what} under {profile}");
    }
}

fn remove(machine: &Path, path: &str) {
    fs::remove_dir_all(machine.join(path)).unwrap();
}

fn no_driver(machine: &Path) {
    remove(machine, "proc/driver");
    remove(machine, "sys/module/nvidia");
}

fn no_gpu_nodes(machine: &Path) {
    for name in ["nvidiactl", "nvidia0", "nvidia1", "nvidia2", "nvidia3", "nvidia4", "nvidia5", "nvidia6", "nvidia7"] {
        fs::remove_file(machine.join("dev").join(name)).unwrap();
    }
}

fn no_toolkit(machine: &Path) {
    fs::remove_file(machine.join("etc/nvidia-container-runtime/config.toml")).unwrap();
    fs::write(machine.join("etc/docker/daemon.json"), "{}").unwrap();
}

fn ports_down(machine: &Path) {
    for number in 0..8 {
        fs::write(machine.join(format!("sys/class/infiniband/mlx5_{number}/ports/1/state")), "1: DOWN").unwrap();
    }
}

fn no_nic(machine: &Path) {
    remove(machine, "sys/class/infiniband");
}

#[test]
fn this_machine_is_described_in_every_format() {
    let page = String::from_utf8(run(&["host"], None).stdout).unwrap();
    for subject in ["system\n", "driver\n", "gpus\n", "rdma\n", "limits\n"] {
        assert!(page.contains(subject), "{page}");
    }
    let folder = tempfile::tempdir().unwrap();
    let image = world("good").display().to_string();
    let facts: Vec<Value> = ["json", "yaml"]
        .iter()
        .map(|form| {
            let file = folder.path().join(form).display().to_string();
            assert!(run(&["host", "--format", &format!("{form}={file}")], None).status.success());
            let output = run(&["check", "--format", "json", "--host", &file, &image], None);
            let report: Value =
                serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
            report["facts"].clone()
        })
        .collect();
    assert_eq!(facts[0], facts[1]);
    assert!(facts[0].to_string().contains("host.modules"));
}

#[test]
fn a_record_in_several_formats() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let formats = [format!("json={}", file("a.json")), format!("yaml={}", file("a.yaml"))];
    let output = run(&["host", "--quiet", "--format", &formats[0], "--format", &formats[1], "--format", "human"], None);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("system\n"));
    let record: Value = serde_json::from_slice(&std::fs::read(file("a.json")).unwrap()).unwrap();
    assert_eq!(record["schema"], "ncclcheck-host/1");
    assert!(std::fs::read_to_string(file("a.yaml")).unwrap().contains("ncclcheck-host/1"));

    for (arguments, why) in [
        (&["host", "--format", "sarif"][..], "available formats: human, json, yaml"),
        (&["host", "-o", "yaml"], "a similar argument exists: '--format <FORMAT[=FILE]>'"),
    ] {
        let output = run(arguments, None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn an_invalid_record_is_a_usage_error() {
    for (content, why) in [
        ("# ncclcheck-host/1\n{}", "the key 'schema' is missing"),
        ("schema: ncclcheck-host/9", "unknown value 'ncclcheck-host/9'"),
        ("schema: ncclcheck-host/1\ngpu: {}", "unknown key 'gpu'"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record").display().to_string();
        std::fs::write(&file, content).unwrap();
        let output = run(&["check", "--host", &file, "x.tar"], None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}
