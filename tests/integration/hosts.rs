//! One image, judged for hosts that are described, not present.

use serde_json::Value;

use crate::support::{run, stderr, world};

/// Verdict of each host, and the host rules that do not pass; also the exit status.
fn judged(world_name: &str, hosts: &[&str]) -> (Vec<(String, Vec<String>)>, i32) {
    let image = world(world_name).display().to_string();
    let mut arguments = vec!["check", "--format", "json"];
    arguments.extend(hosts.iter().flat_map(|host| ["--host", host]));
    arguments.push(&image);
    let output = run(&arguments, None);
    let reports = String::from_utf8(output.stdout.clone()).unwrap();
    let reports = reports.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let told = |report: Value| {
        let failed = report["judgements"].as_array().unwrap().iter().filter(|judgement| {
            judgement["rule"].as_str().unwrap().starts_with("host/")
                && matches!(judgement["outcome"].as_str(), Some("fail" | "unknown"))
        });
        let failed = failed.map(|judgement| judgement["rule"].as_str().unwrap().to_owned()).collect();
        (report["verdict"].as_str().unwrap().to_owned(), failed)
    };
    (reports.map(told).collect(), output.status.code().unwrap())
}

#[test]
fn each_host_has_its_verdict() {
    let hosts = [
        "driver=570.124.06,gpu=h100x8,fabric=nvswitch,rdma=mlx5,kernel=5.15.0-91-generic",
        "driver=550.54.15,gpu=a100x8",
        "driver=470.57.02,gpu=k80x4,rdma=efa",
        "driver=999.1.1,gpu=h100",
    ];
    let expected: [(&str, &[&str]); 4] = [
        ("pass", &[]),
        ("fail", &["host/minor-version-compatibility", "host/requirement-unmet"]),
        (
            "fail",
            &[
                "host/driver-too-old",
                "host/efa-plugin-missing",
                "host/nccl-no-code-for-gpu",
                "host/requirement-unmet",
                "host/torch-no-code-for-gpu",
            ],
        ),
        // A driver newer than the tables is at least as new as the newest in them.
        ("pass", &[]),
    ];
    let (judged, status) = judged("good", &hosts);
    for ((host, (verdict, rules)), (said, failed)) in hosts.iter().zip(expected).zip(&judged) {
        assert_eq!(
            (said.as_str(), failed.iter().map(String::as_str).collect::<Vec<_>>()),
            (verdict, rules.to_vec()),
            "{host}"
        );
    }
    assert_eq!((judged.len(), status), (4, 1));
}

#[test]
fn hosts_come_from_a_file_too() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    std::io::Write::write_all(&mut file, b"- {name: one, driver: 570.124.06, gpu: h100x8}\n- {gpu: b200}\n").unwrap();
    let path = file.path().display().to_string();
    let (reports, status) = judged("good", &[&path]);
    assert_eq!(reports.len(), 2);
    assert_eq!(status, 0, "{reports:?}");
}

#[test]
fn an_invalid_host_is_a_usage_error() {
    let output = run(&["check", "--host", "gpu=h1000", "x.tar"], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("unknown GPU 'h1000'; did you mean h100?"), "{}", stderr(&output));
}

#[test]
fn one_consequence_is_counted_in_the_singular() {
    let image = world("no-verbs").display().to_string();
    let output = run(&["check", "--host", "driver=580.65.06,gpu=h100x8,rdma=mlx5", &image], None);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("FAILED: 1 error, 0 warnings, 1 consequence, 0 unknown"), "{text}");
}
