//! What machines say of themselves, and images judged by it.

use serde_json::Value;

use crate::support::{assert_judged, run, stderr, world};
use crate::tree;

/// The record of a machine whose files are recorded, and the report on an image there.
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

/// Rules that end so.
fn rules(report: &Value, outcome: &str) -> Vec<String> {
    let judgements = report["judgements"].as_array().unwrap().iter();
    let wanted = judgements.filter(|judgement| judgement["outcome"] == outcome);
    wanted.map(|judgement| judgement["rule"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_healthy_host_has_no_findings() {
    let (report, status) = judged("dgx", "good");
    assert_eq!((rules(&report, "fail"), status), (vec![], 0));
    // What NVML alone tells is not in the files.
    assert_eq!(rules(&report, "unknown"), ["host/mig", "host/persistence-off"]);
}

#[test]
fn what_is_wrong_with_a_host_is_found() {
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
fn a_host_without_hardware_is_asked_nothing() {
    let (report, status) = judged("virtual", "good");
    assert_eq!((rules(&report, "fail"), rules(&report, "unknown"), status), (vec![], vec![], 0));
}

#[test]
fn this_machine_tells_of_itself_in_every_form() {
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
fn what_is_no_record_is_a_usage_error() {
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
