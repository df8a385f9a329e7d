//! `check --fix`: the diff, its effects, and whether an image that is built from the changed Dockerfile bears them out.

use std::fmt::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{layout, run_in, stderr};

/// The steps of the small test images up to their own variables.
const BASE: &str =
    "FROM debian:12\nRUN apt-get install -y --no-install-recommends python3 libibverbs1 ibverbs-providers\n";

/// Stores a document as a blob and returns its descriptor's digest and size.
fn store(folder: &Path, document: &Value) -> (String, usize) {
    let bytes = document.to_string().into_bytes();
    let digest = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    std::fs::write(folder.join("blobs/sha256").join(&digest), &bytes).unwrap();
    (format!("sha256:{digest}"), bytes.len())
}

fn blob(folder: &Path, descriptor: &Value) -> Value {
    let name = descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:");
    serde_json::from_slice(&std::fs::read(folder.join("blobs/sha256").join(name)).unwrap()).unwrap()
}

/// Gives the image of a layout these variables over its own, as a build does: an `ENV` step each.
fn with_variables(folder: &Path, variables: &[(&str, &str)]) {
    let mut index: Value = serde_json::from_slice(&std::fs::read(folder.join("index.json")).unwrap()).unwrap();
    let mut manifest = blob(folder, &index["manifests"][0]);
    let mut config = blob(folder, &manifest["config"]);
    for (name, value) in variables {
        let own = config["config"]["Env"].as_array_mut().unwrap();
        own.retain(|entry| entry.as_str().unwrap().split('=').next() != Some(name));
        own.push(json!(format!("{name}={value}")));
        let step = json!({"created_by": format!("ENV {name}={value}"), "empty_layer": true});
        config["history"].as_array_mut().unwrap().push(step);
    }
    let (digest, size) = store(folder, &config);
    manifest["config"]["digest"] = json!(digest);
    manifest["config"]["size"] = json!(size);
    let (digest, size) = store(folder, &manifest);
    index["manifests"][0]["digest"] = json!(digest);
    index["manifests"][0]["size"] = json!(size);
    std::fs::write(folder.join("index.json"), index.to_string()).unwrap();
}

/// The image `world` with these variables, in a folder with the Dockerfile.
fn built(world: &str, variables: &[(&str, &str)], dockerfile: &str) -> tempfile::TempDir {
    let folder = layout(world);
    with_variables(folder.path(), variables);
    std::fs::write(folder.path().join("Dockerfile"), dockerfile).unwrap();
    folder
}

/// The diff and the summary.
fn fix(folder: &Path, more: &[&str]) -> (String, String) {
    let output =
        run_in(folder, &[&["check", "--cache", "off", "--fix", "--dockerfile", "Dockerfile", "oci:."], more].concat());
    (String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
}

/// The Dockerfile of the folder after git applied the diff.
fn applied(folder: &Path, diff: &str) -> String {
    let mut git = Command::new("git");
    let mut git = git.args(["apply", "-p0", "-"]).current_dir(folder).stdin(Stdio::piped()).spawn().unwrap();
    std::io::Write::write_all(&mut git.stdin.take().unwrap(), diff.as_bytes()).unwrap();
    assert!(git.wait().unwrap().success(), "{diff}");
    std::fs::read_to_string(folder.join("Dockerfile")).unwrap()
}

fn failing(folder: &Path) -> Vec<String> {
    let output = run_in(folder, &["check", "--cache", "off", "--format", "json", "oci:."]);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let judgements = report["judgements"].as_array().unwrap().iter();
    judgements.filter(|one| one["outcome"] == "fail").map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
}

/// The rules below a heading of the summary.
fn rules<'s>(summary: &'s str, heading: &str) -> Vec<&'s str> {
    let lines = summary.lines().skip_while(|line| !line.starts_with(heading)).skip(1);
    let lines = lines.take_while(|line| line.starts_with("  "));
    lines.filter_map(|line| Some(line.split_once('[')?.1.split_once(']')?.0)).collect()
}

#[test]
fn what_is_called_settled_is_settled_when_the_image_is_built_again() {
    for (before, env, after, env_after) in [
        // Several to a line, quotes, comments, a variable that stays.
        (
            "ENV NCCL_P2P_DISABLE=1 PYTHONUNBUFFERED=1 \\\n    # until the switch is fixed\n    NCCL_IB_DISABLE=\"1\"\nCMD [\"x\"]\n",
            &[("NCCL_P2P_DISABLE", "1"), ("PYTHONUNBUFFERED", "1"), ("NCCL_IB_DISABLE", "1")][..],
            "ENV PYTHONUNBUFFERED=1\nCMD [\"x\"]\n",
            &[("PYTHONUNBUFFERED", "1")][..],
        ),
        // The old form, and a value that stops the job.
        ("ENV NCCL_ALGO Rign\nENV NCCL_PROTO=LL128\n", &[("NCCL_ALGO", "Rign"), ("NCCL_PROTO", "LL128")], "", &[]),
        ("ENV NCCL_SOCKET_IFNAME=lo\n", &[("NCCL_SOCKET_IFNAME", "lo")], "", &[]),
        ("ENV NCCL_NET=Socket NCCL_SHM_DISABLE=1\n", &[("NCCL_NET", "Socket"), ("NCCL_SHM_DISABLE", "1")], "", &[]),
        (
            "ENV NVIDIA_VISIBLE_DEVICES=void\nENV NVIDIA_DRIVER_CAPABILITIES='utility'\n",
            &[("NVIDIA_VISIBLE_DEVICES", "void"), ("NVIDIA_DRIVER_CAPABILITIES", "utility")],
            "ENV NVIDIA_VISIBLE_DEVICES=all\nENV NVIDIA_DRIVER_CAPABILITIES=compute,utility\n",
            &[("NVIDIA_VISIBLE_DEVICES", "all"), ("NVIDIA_DRIVER_CAPABILITIES", "compute,utility")],
        ),
        ("ENV NCCL_DEBUG=INFO\n", &[("NCCL_DEBUG", "INFO")], "ENV NCCL_DEBUG=WARN\n", &[("NCCL_DEBUG", "WARN")]),
    ] {
        let text = format!("{BASE}{before}");
        let image = built("good", env, &text);
        let had = failing(image.path());
        let (diff, summary) = fix(image.path(), &[]);
        assert_eq!(applied(image.path(), &diff), format!("{BASE}{after}"), "{summary}");
        let settled = rules(&summary, "settled, judged again with this change:");
        assert_eq!(settled.len() + rules(&summary, "remaining:").len(), had.len(), "{summary}");
        assert!(!settled.is_empty() && rules(&summary, "new with").is_empty(), "{summary}");
        let rebuilt = built("good", env_after, "");
        let has = failing(rebuilt.path());
        for rule in &had {
            assert_eq!(settled.contains(&&**rule), !has.contains(rule), "{rule}: {summary}");
        }
    }
}

#[test]
fn a_variable_of_the_base_image_is_overridden() {
    let text = "FROM lab/base\nENV A=1\nCMD [\"x\"]\n";
    let image = built("env-disabled", &[("A", "1")], text);
    let (diff, summary) = fix(image.path(), &[]);
    assert_eq!(
        applied(image.path(), &diff),
        "FROM lab/base\nENV NCCL_IB_DISABLE=\nENV NCCL_P2P_DISABLE=\nENV A=1\nCMD [\"x\"]\n"
    );
    assert_eq!(rules(&summary, "settled"), ["env/ib-disabled", "env/p2p-disabled"]);
    // The Dockerfile sets it too: without its line, the base image's value would count.
    let both = built("env-disabled", &[("NCCL_P2P_DISABLE", "1")], "FROM lab/base\nENV NCCL_P2P_DISABLE=1\n");
    let (diff, _) = fix(both.path(), &[]);
    assert!(applied(both.path(), &diff).contains("ENV NCCL_P2P_DISABLE=\n"), "{diff}");
}

#[test]
fn a_package_is_put_back_and_not_called_settled() {
    let text = "FROM debian:12\nRUN pip install torch==2.9.0\nRUN pip uninstall -y nvidia-nccl-cu12\nUSER 1000:1000\nCMD [\"x\"]\n";
    let image = built("no-nccl", &[], text);
    let (diff, summary) = fix(image.path(), &[]);
    let wheel = "RUN pip install --force-reinstall --no-deps nvidia-nccl-cu12==2.27.5\n";
    assert_eq!(applied(image.path(), &diff), text.replace("USER", &format!("{wheel}USER")));
    assert!(
        rules(&summary, "changed, and to be judged again after a build:").contains(&"nccl/missing-library"),
        "{summary}"
    );
    assert!(!rules(&summary, "settled").contains(&"nccl/missing-library"));
}

#[test]
fn the_folder_of_an_older_nccl_leaves_the_list() {
    let text = "FROM debian:12\nENV LD_LIBRARY_PATH=/opt/nccl/lib:/usr/local/nvidia/lib\n";
    let image = built("shadowed-nccl", &[("LD_LIBRARY_PATH", "/opt/nccl/lib:/usr/local/nvidia/lib")], text);
    let (diff, summary) = fix(image.path(), &[]);
    assert_eq!(applied(image.path(), &diff), text.replace("/opt/nccl/lib:", ""));
    assert!(rules(&summary, "settled").contains(&"nccl/shadowed-by-ld-library-path"), "{summary}");
}

#[test]
fn settings_of_the_job_are_not_in_the_dockerfile() {
    let image = built("good", &[("A", "1")], "FROM debian:12\nENV A=1\n");
    let (diff, summary) = fix(image.path(), &["--env", "NCCL_SHM_DISABLE=1"]);
    assert_eq!(diff, "");
    assert!(summary.contains("[env/shm-disabled]"), "{summary}");
    assert!(summary.contains("it is set in --env (NCCL_SHM_DISABLE), not by the Dockerfile"), "{summary}");
    assert!(summary.contains("nothing in Dockerfile can be changed mechanically"), "{summary}");
}

#[test]
fn a_dockerfile_of_another_image_is_refused() {
    let image = built("good", &[("NCCL_DEBUG", "INFO")], "FROM debian:12\nENV NCCL_DEBUG=WARN\n");
    let output = run_in(image.path(), &["check", "--cache", "off", "--fix", "--dockerfile", "Dockerfile", "oci:."]);
    assert_eq!(output.status.code(), Some(2));
    let why = "Dockerfile is not the Dockerfile of oci:.: line 2 of Dockerfile sets NCCL_DEBUG to 'WARN', but the image has 'INFO'";
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
    std::fs::write(image.path().join("Dockerfile"), "FROM golang\nRUN make\n").unwrap();
    let output = run_in(image.path(), &["check", "--cache", "off", "--fix", "--dockerfile", "Dockerfile", "oci:."]);
    assert!(
        stderr(&output).contains("nothing in the image shows that it was built from Dockerfile"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn the_diff_needs_a_dockerfile_and_one_image() {
    let image = built("good", &[("A", "1")], "FROM debian:12\nENV A=1\n");
    for (arguments, why) in [
        (&["--fix", "oci:."][..], "name one with --dockerfile or --launch"),
        (&["--fix", "--dockerfile", "Dockerfile", "--format", "json", "oci:."], "cannot be used with '--format"),
        (&["--fix", "--dockerfile", "Dockerfile", "oci:.", "oci:."], "--fix is for one image: name one"),
    ] {
        let output = run_in(image.path(), &[&["check", "--cache", "off"], arguments].concat());
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        assert!(output.stdout.is_empty());
    }
    assert_eq!(std::fs::read_to_string(image.path().join("Dockerfile")).unwrap(), "FROM debian:12\nENV A=1\n");
}
