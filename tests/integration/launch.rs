//! Launch variables: their sources, how the image's NCCL reads them, and the rules that use them.

use std::io::Write as _;

use serde_json::Value;

use crate::support::{run, stderr, world};

fn report(command: &str, arguments: &[&str]) -> Value {
    let image = world("good").display().to_string();
    let output = run(&[&[command, "--format", "json", &image], arguments].concat(), None);
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)))
}

fn failed(report: &Value) -> Vec<&str> {
    let judgements = report["judgements"].as_array().unwrap().iter();
    judgements.filter(|one| one["outcome"] == "fail").map(|one| one["rule"].as_str().unwrap()).collect()
}

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

#[test]
fn a_script_is_judged_by_the_copy_of_nccl_in_the_image() {
    let script = file(
        "#!/bin/bash\n#SBATCH --nodes=2\nexport NCCL_IB_HAC=mlx5_0 NCCL_GIN_PLUGIN=x NCCL_CUDA_PATH=/x\nexport API_TOKEN=secret\n\
         srun --export=ALL,NCCL_CUMEM_ENABLE=0 docker run -e NCCL_NCHANNELS=4 -e NCCL_BUFFSIZE=4M -e NCCL_ASYNC_ERROR_HANDLING=1 x\n",
    );
    let path = script.path().to_str().unwrap();
    let report = report("check", &["--launch", path]);
    assert_eq!(
        failed(&report),
        [
            "env/cumem-disabled",
            "env/deprecated-torch-variable",
            "env/misspelt-variable",
            "env/removed-variable",
            "env/unknown-nccl-variable",
            "env/value-refused",
            "env/variable-not-yet-read",
        ]
    );
    let misspelt = &report["facts"]["env.misspelt"];
    assert_eq!(misspelt["value"], serde_json::json!(["NCCL_IB_HAC (did you mean NCCL_IB_HCA?)"]));
    assert_eq!(misspelt["at"], serde_json::json!([{"launch": path, "line": 3, "variable": "NCCL_IB_HAC"}]));
    assert_eq!(report["facts"]["nccl.unknown_variables"]["value"].as_array().unwrap().len(), 4);
    assert!(!report.to_string().contains("secret"));
}

#[test]
fn a_job_may_set_what_an_image_may_not() {
    let job = [
        "-e",
        "NCCL_DEBUG=INFO",
        "-e",
        "NCCL_SOCKET_IFNAME=eth0",
        "-e",
        "MASTER_ADDR=10.0.0.1",
        "-e",
        "NCCL_IB_HCA=mlx5",
    ];
    assert_eq!(failed(&report("check", &job)), [""; 0]);
    let off = report("check", &["-e", "NCCL_IB_DISABLE=1", "-e", "NCCL_IB_HCA=mlx5"]);
    assert_eq!(failed(&off), ["env/contradiction", "launch/transport-off"]);
    let on_rdma = ["-e", "NCCL_IB_DISABLE=1", "--host", "driver=570.86.15,rdma=mlx5"];
    assert!(failed(&report("check", &on_rdma)).contains(&"env/ib-disabled"));
}

#[test]
fn what_only_the_launch_brings_about_belongs_to_the_arrangement() {
    let answer = |image: &str, arguments: &[&str], rule: &str| {
        let image = world(image).display().to_string();
        let output = run(&[&["check", "--format", "json", &image], arguments].concat(), None);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let judgement =
            report["judgements"].as_array().unwrap().iter().find(|one| one["rule"] == rule).unwrap().clone();
        ["outcome", "owner"].map(|key| judgement[key].as_str().unwrap().to_owned())
    };
    let script = file("#!/bin/bash\nexport NCCL_SHM_DISABLE=1\nexport NCCL_ALGO=$X\npython train.py\n");
    let script = ["--launch", script.path().to_str().unwrap()];
    assert_eq!(answer("good", &["-e", "NCCL_SHM_DISABLE=1"], "env/shm-disabled"), ["fail", "arrangement"]);
    assert_eq!(answer("good", &script, "env/shm-disabled"), ["fail", "arrangement"]);
    assert_eq!(answer("good", &script, "env/value-refused"), ["unknown", "arrangement"]);
    assert_eq!(answer("good", &script, "env/p2p-disabled"), ["pass", "image"]);
    // The image has the problem by itself.
    assert_eq!(answer("env-disabled", &["-e", "RANK=1"], "env/ib-disabled"), ["fail", "image"]);
}

#[test]
fn options_override_files_and_files_override_the_image() {
    let first = file("NCCL_DEBUG=INFO\nNCCL_NTHREADS=128\n");
    let second = file("services:\n  train:\n    environment: {NCCL_DEBUG: TRACE}\n");
    let path = |file: &tempfile::NamedTempFile| file.path().display().to_string();
    let first = path(&first);
    let second = path(&second);
    let report = report("inspect", &["--launch", &first, "--launch", &second, "-e", "NCCL_NTHREADS=256"]);
    let environment = &report["facts"]["image.env"]["value"];
    assert_eq!((&environment["NCCL_DEBUG"], &environment["NCCL_NTHREADS"]), (&"TRACE".into(), &"256".into()));
}

#[test]
fn unreadable_files_are_reported() {
    let broken = file("kind: Pod\n  a: [\n");
    let path = broken.path().display().to_string();
    for (arguments, why) in [
        (["--launch", "/nonexistent"], "--launch /nonexistent: no such file or directory\n"),
        (["--launch", &path], ":2:4: invalid YAML:"),
    ] {
        let output = run(&[&["check", "x"], &arguments[..]].concat(), None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}
