//! Recorded hosts, and images judged for them.

use serde_json::Value;

use crate::support::{assert_judged, run, stderr, world};
use crate::tree;

/// Records a host from its files, and judges an image for it; returns the report and the exit status.
fn judged(host: &str, image: &str) -> (Value, i32) {
    let machine = tree::host(host);
    let (root, file) = (machine.path().display().to_string(), machine.path().join("record.json").display().to_string());
    let recorded = run(&["host", "--root", &root, "--format", "json", "-o", &file], None);
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let image = world(image).display().to_string();
    let output = run(&["check", "--format", "json", "--host-facts", &file, &image], None);
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
fn a_host_without_hardware_has_no_findings() {
    let (report, status) = judged("virtual", "good");
    assert_eq!((rules(&report, "fail"), rules(&report, "unknown"), status), (vec![], vec![], 0));
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
            assert!(run(&["host", "--format", form, "-o", &file], None).status.success());
            let output = run(&["check", "--format", "json", "--host-facts", &file, &image], None);
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
    let output = run(
        &["host", "--no-progress", "--quiet", "--format", &formats[0], "--format", &formats[1], "--format", "human"],
        None,
    );
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(String::from_utf8_lossy(&output.stdout).contains("system\n"));
    let record: Value = serde_json::from_slice(&std::fs::read(file("a.json")).unwrap()).unwrap();
    assert_eq!(record["schema"], "ncclcheck-host/1");
    assert!(std::fs::read_to_string(file("a.yaml")).unwrap().contains("ncclcheck-host/1"));

    for (arguments, why) in [
        (&["host", "--format", "sarif"][..], "available formats: human, json, yaml"),
        (&["host", "-o", "yaml"], "write --format yaml, or -o ./yaml"),
    ] {
        let output = run(arguments, None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn an_invalid_record_is_a_usage_error() {
    for (content, why) in [
        ("{}", "missing field `schema`"),
        ("schema: ncclcheck-host/9", "unknown variant `ncclcheck-host/9`"),
        ("schema: ncclcheck-host/1\ngpu: {}", "unknown field `gpu`"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("record").display().to_string();
        std::fs::write(&file, content).unwrap();
        let output = run(&["check", "--host-facts", &file, "x.tar"], None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}
