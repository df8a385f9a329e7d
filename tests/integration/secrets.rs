//! Secrets in an image, its Dockerfile, its launch file, a recording and the files of options: no output has one, in
//! any format.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::support::{layout, run_in, run_with, stderr};

/// What every planted secret contains, unless its form has no room for it.
const MARK: &str = "zq7Xw";

/// Secrets that are recognized by their form alone.
const TOKENS: [&str; 8] = [
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
    "hf_AbCdEfGhIjKlMnOpQrStUvWxYz012345",
    "sk-proj-AbCdEfGh0123456789ijklmn",
    "AKIAIOSFODNN7EXAMPLE",
    "glpat-AbCdEfGh0123456789ij",
    "xoxb-123456789012-AbCdEfGhIjKl",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
];

const FORMATS: [&str; 12] = [
    "human",
    "table",
    "json",
    "csv",
    "sarif",
    "junit",
    "github",
    "gitlab",
    "markdown",
    "html",
    "prometheus",
    "in-toto",
];

const SCRIPT: &str = "#!/bin/sh
export NVIDIA_NGC_API_KEY=zq7Xw-script-key NCCL_DEBUG=INFO
export CUDA_URL=https://me:zq7Xw-script-url@example.com/
. /missing --token zq7Xw-script-source
exec env TORCH_TOKEN=zq7Xw-script-env python3 /train.py --hub-token zq7Xw-script-option \"$@\"
";

const LAUNCH: &str = "#!/bin/sh
export NVIDIA_API_KEY=zq7Xw-launch-key NCCL_NET_PLUGIN=https://me:zq7Xw-launch-url@example.com/
source setup.sh --password zq7Xw-launch-source
docker run -e HF_TOKEN=zq7Xw-launch-docker -e NCCL_IB_DISABLE=1 x
";

const DOCKERFILE: &str = "FROM debian:12
RUN apt-get install -y --no-install-recommends python3 libibverbs1 ibverbs-providers
ENV NVIDIA_API_KEY=zq7Xw-env-0 NCCL_P2P_DISABLE=1
ENV NCCL_IB_DISABLE=1 HF_TOKEN=zq7Xw-dockerfile
RUN pip install torch==2.9.0 --extra-index-url https://me:zq7Xw-step-url@example.com/
ENTRYPOINT [\"/entry.sh\", \"--password\", \"zq7Xw-entrypoint\"]
";

fn store(folder: &Path, bytes: &[u8]) -> Value {
    let digest = Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    fs::write(folder.join("blobs/sha256").join(&digest), bytes).unwrap();
    json!({"digest": format!("sha256:{digest}"), "size": bytes.len()})
}

fn blob(folder: &Path, descriptor: &Value) -> Value {
    let name = descriptor["digest"].as_str().unwrap().trim_start_matches("sha256:");
    serde_json::from_slice(&fs::read(folder.join("blobs/sha256").join(name)).unwrap()).unwrap()
}

/// Adds a layer with the script.
fn add_script(folder: &Path, manifest: &mut Value, config: &mut Value) {
    let mut tar = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_ustar();
    header.set_size(SCRIPT.len() as u64);
    header.set_mode(0o755);
    tar.append_data(&mut header, "entry.sh", SCRIPT.as_bytes()).unwrap();
    let mut layer = store(folder, &tar.into_inner().unwrap());
    config["rootfs"]["diff_ids"].as_array_mut().unwrap().push(layer["digest"].clone());
    layer["mediaType"] = json!("application/vnd.oci.image.layer.v1.tar");
    manifest["layers"].as_array_mut().unwrap().push(layer);
}

/// An image with secrets in each part of its configuration and in a script, and the files beside it.
fn planted() -> tempfile::TempDir {
    let image = layout("env-disabled");
    let folder = image.path();
    let mut index: Value = serde_json::from_slice(&fs::read(folder.join("index.json")).unwrap()).unwrap();
    let mut manifest = blob(folder, &index["manifests"][0]);
    let mut config = blob(folder, &manifest["config"]);
    add_script(folder, &mut manifest, &mut config);
    let variables =
        ["NVIDIA_API_KEY", "TORCH_HUB_TOKEN", "CUDA_PASSWORD", "HF_TOKEN", "NCCL_SECRET", "UCX_AUTH", "LD_PASS"];
    let variables = variables.iter().enumerate().map(|(number, name)| json!(format!("{name}={MARK}-env-{number}")));
    config["config"]["Env"].as_array_mut().unwrap().extend(variables);
    let url = json!("TORCH_HOME=https://me:zq7Xw-env-url@example.com/");
    config["config"]["Env"].as_array_mut().unwrap().push(url);
    config["config"]["Entrypoint"] = json!(["/entry.sh", "--password", "zq7Xw-entrypoint"]);
    config["config"]["Cmd"] = json!([
        "--api-key",
        "zq7Xw-cmd",
        "--token=zq7Xw-cmd-token",
        "https://me:zq7Xw-cmd-url@example.com/",
        TOKENS[3]
    ]);
    config["config"]["Labels"] =
        json!({"api_key": "zq7Xw-label", "source": "https://me:zq7Xw-label-url@example.com/x"});
    let history = config["history"].as_array_mut().unwrap();
    history[2]["created_by"] = json!(format!(
        "RUN |2 HF_TOKEN=zq7Xw-arg WANDB_API_KEY=\"zq7Xw arg\" /bin/sh -c curl -u me:zq7Xw-curl -H 'Authorization: Bearer \
         zq7Xw-header' https://x && docker login -u me -p zq7Xw-login r.io && echo {} # buildkit",
        TOKENS.join(" ")
    ));
    history[6]["created_by"] = json!("ENV NVIDIA_API_KEY=zq7Xw-env-0 NCCL_P2P_DISABLE=1");
    history[7]["created_by"] = json!("/bin/sh -c #(nop) ENV NCCL_IB_DISABLE=1 GIT_TOKEN=zq7Xw-step-env");
    history[8]["created_by"] = json!(
        "RUN /bin/sh -c pip install torch==2.9.0 --extra-index-url https://me:zq7Xw-step-url@example.com/ # buildkit"
    );
    history.push(json!({"created_by": "COPY entry.sh / # password=zq7Xw-step-copy"}));
    for (name, document) in [("config", &config), ("manifest", &Value::Null)] {
        let bytes = if name == "config" { document.to_string() } else { manifest.to_string() };
        let stored = store(folder, bytes.as_bytes());
        let descriptor = if name == "config" { &mut manifest["config"] } else { &mut index["manifests"][0] };
        descriptor["digest"] = stored["digest"].clone();
        descriptor["size"] = stored["size"].clone();
    }
    fs::write(folder.join("index.json"), index.to_string()).unwrap();
    fs::write(folder.join("Dockerfile"), DOCKERFILE).unwrap();
    fs::write(folder.join("job.sh"), LAUNCH).unwrap();
    image
}

/// Asserts that an output has no secret, and some text.
fn assert_clean(what: &str, text: &str) {
    for secret in [MARK].iter().chain(&TOKENS) {
        let place = text.find(secret).map(|at| text.get(at.saturating_sub(80)..).unwrap_or(text).chars().take(160));
        assert!(place.is_none(), "{what}: {}", place.unwrap().collect::<String>());
    }
}

/// Runs a command, and returns its standard output.
fn clean_run(folder: &Path, arguments: &[&str]) -> String {
    let output = run_in(folder, arguments);
    assert_clean_output(arguments, &output)
}

fn assert_clean_output(arguments: &[&str], output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_clean(&arguments.join(" "), &stderr(output));
    assert_clean(&arguments.join(" "), &text);
    text
}

#[test]
fn no_output_about_an_image_has_its_secrets() {
    let image = planted();
    let folder = image.path();
    let reports: Vec<_> =
        FORMATS.iter().map(|format| format!("{format}=report.{}", format.replace('/', "-"))).collect();
    let formats = reports.iter().flat_map(|report| ["--format", report]).collect::<Vec<_>>();
    let options = ["-v", "--cache", "off", "--no-config", "--dockerfile", "Dockerfile", "--launch", "job.sh"];
    let job = ["--env", "NCCL_AUTH=zq7Xw-option", "--env", "HF_TOKEN=zq7Xw-other"];
    clean_run(folder, &[&["check", "oci:."], &options[..], &job, &formats].concat());
    for format in FORMATS {
        let file = format!("report.{}", format.replace('/', "-"));
        let text = fs::read_to_string(folder.join(&file)).unwrap();
        assert_clean(&file, &text);
        assert!(!text.is_empty(), "{file}");
    }
    // What is concealed is there.
    let report: Value = serde_json::from_slice(&fs::read(folder.join("report.json")).unwrap()).unwrap();
    let facts = &report["facts"];
    assert_eq!(facts["image.entrypoint"]["value"], json!(["/entry.sh", "--password", "<secret>"]));
    assert_eq!(facts["image.labels"]["value"]["api_key"], "<secret>");
    assert_eq!(facts["image.env"]["value"]["TORCH_HOME"], "https://<secret>@example.com/");
    assert_eq!(facts["image.env"]["value"]["NCCL_P2P_DISABLE"], "1");
    let step = report["image"]["layers"][1]["history"].as_str().unwrap();
    assert!(
        step.starts_with("RUN |2 HF_TOKEN=<secret> WANDB_API_KEY=\"<secret>\" /bin/sh -c curl -u me:<secret>"),
        "{step}"
    );

    clean_run(folder, &["report", "-v", "report.json"]);
    clean_run(folder, &["report", "--format", "html", "report.json"]);
    clean_run(folder, &["inspect", "-v", "--cache", "off", "--launch", "job.sh", "oci:."]);
    clean_run(folder, &["inspect", "--cache", "off", "--format", "json", "oci:."]);
    assert!(clean_run(folder, &["inspect", "--cache", "off", "--files", "oci:."]).contains("/entry.sh"));
    clean_run(folder, &["inspect", "--cache", "off", "--explain", "libnccl.so.2", "oci:."]);
    let good = crate::support::world("good").display().to_string();
    clean_run(folder, &["diff", "--cache", "off", &good, "oci:."]);
    clean_run(folder, &["diff", "--cache", "off", "--format", "markdown", "oci:.", &good]);
}

#[test]
fn a_change_of_a_dockerfile_has_no_secrets() {
    let image = planted();
    let folder = image.path();
    let fix = ["check", "--fix", "--cache", "off", "--no-config", "--dockerfile", "Dockerfile", "oci:."];
    // Both have a value of HF_TOKEN, and not the same.
    let output = run_in(folder, &fix);
    assert_clean_output(&fix, &output);
    assert!(
        stderr(&output).contains("sets HF_TOKEN to '<secret>', but the image has '<secret>'"),
        "{}",
        stderr(&output)
    );
    fs::write(folder.join("Dockerfile"), DOCKERFILE.replace(" HF_TOKEN=zq7Xw-dockerfile", "")).unwrap();
    let output = run_in(folder, &fix);
    let diff = assert_clean_output(&fix, &output);
    assert!(diff.contains("-ENV NVIDIA_API_KEY=<secret> NCCL_P2P_DISABLE=1\n"), "{diff}{}", stderr(&output));
    assert!(stderr(&output).contains("note: a line with a secret is shown as <secret>"), "{}", stderr(&output));
}

#[test]
fn a_recording_has_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/probe/h100-x2/user-unknown.jsonl");
    let recorded = fs::read_to_string(recorded).unwrap();
    let planted = recorded.replace(
        r#""HOME":null"#,
        r#""HOME":null,"NVIDIA_API_KEY":"zq7Xw-env","TORCH_HOME":"https://me:zq7Xw-url@example.com/""#,
    );
    assert_ne!(planted, recorded);
    let (hello, rest) = planted.split_once('\n').unwrap();
    let noise = format!("export HF_TOKEN=zq7Xw-noise\nlogged in with {}", TOKENS[2]);
    fs::write(folder.path().join("planted.jsonl"), format!("{noise}\n{hello}\n{rest}")).unwrap();
    let python = folder.path().join("python");
    fs::write(&python, "#!/bin/sh\nexec cat planted.jsonl\n").unwrap();
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).unwrap();
    let python = python.to_str().unwrap();
    let probe = ["probe", "--in-place", "--steps", "limits,storage", "--no-config", "--record", "recording.jsonl"];
    let reports = ["--python", python, "--format", "json=report.json", "--format", "human", "-v"];
    clean_run(folder.path(), &[&probe[..], &reports].concat());
    for name in ["recording.jsonl", "report.json"] {
        let text = fs::read_to_string(folder.path().join(name)).unwrap();
        assert_clean(name, &text);
        assert!(text.contains("<secret>"), "{name}");
    }
    let lines = fs::read_to_string(folder.path().join("recording.jsonl")).unwrap();
    let events = lines.lines().filter(|line| line.starts_with('{'));
    assert!(events.clone().count() > 2 && events.into_iter().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    // A recording that another program wrote may have them.
    let formats = ["--format", "json", "--format", "html=report.html", "--format", "markdown=report.md"];
    clean_run(folder.path(), &[&["probe", "--no-config", "--from", "planted.jsonl"], &formats[..]].concat());
    for name in ["report.html", "report.md"] {
        assert_clean(name, &fs::read_to_string(folder.path().join(name)).unwrap());
    }
}

/// Options that read a file, each with what comes before and after the path.
const OPTIONS: [&[&str]; 13] = [
    &["check", "good", "--dockerfile", "FILE"],
    &["check", "good", "--launch", "FILE"],
    &["check", "good", "--host", "@FILE"],
    &["check", "good", "--host", "FILE"],
    &["check", "good", "--config", "FILE"],
    &["check", "--list", "FILE"],
    &["check", "good", "--baseline", "FILE"],
    &["rules", "test", "FILE"],
    &["report", "FILE"],
    &["probe", "--from", "FILE"],
    &["preflight", "--in-place", "--expect", "FILE"],
    &["audit", "plan", "--store", "store", "--pods", "FILE"],
    &["check", "docker://registry.invalid/x", "--authfile", "FILE"],
];

const REFUSED: &str =
    "a link leads outside of this repository or into its .git\n  help: name the file itself to allow it";

fn with(option: &[&str], file: &str) -> Vec<String> {
    let good = crate::support::world("good").display().to_string();
    option.iter().map(|word| if *word == "good" { good.clone() } else { word.replace("FILE", file) }).collect()
}

#[test]
fn an_error_about_a_file_of_another_form_does_not_quote_it() {
    let folder = tempfile::tempdir().unwrap();
    let contents = [
        format!("zq7Xw-token\n{}\n", TOKENS[0]),
        "GITHUB_TOKEN=zq7Xw-a\0HOME=/root\0NPM_TOKEN=zq7Xw-b\0".to_owned(),
        "{\"auths\": {\"ghcr.io\": {\"auth\": \"zq7Xw-auth\"}}}\n".to_owned(),
        "\"zq7Xw-json\"\n".to_owned(),
    ];
    // These compile all rules, so one content must do.
    let is_slow =
        |option: &&[&str]| ["--launch", "--from", "--pods", "--authfile"].iter().any(|slow| option.contains(slow));
    let mut refused = 0;
    for (number, content) in contents.iter().enumerate() {
        fs::write(folder.path().join("file.yaml"), content).unwrap();
        for option in OPTIONS.into_iter().filter(|option| number == 1 || !is_slow(option)) {
            let arguments = with(option, "file.yaml");
            let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
            let output = run_in(folder.path(), &arguments);
            assert_clean(&format!("{content:?} {}", arguments.join(" ")), &stderr(&output));
            assert_clean(&arguments.join(" "), &String::from_utf8_lossy(&output.stdout));
            refused += usize::from(stderr(&output).contains("file.yaml"));
        }
    }
    assert!(refused > 20, "{refused}");
}

#[test]
fn a_link_does_not_lead_out_of_a_repository() {
    let outer = tempfile::tempdir().unwrap();
    let repository = outer.path().join("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::create_dir(repository.join("folder")).unwrap();
    fs::write(outer.path().join("outside"), "FROM x\nRUN y\n").unwrap();
    fs::write(repository.join(".git/config"), "FROM x\n").unwrap();
    fs::write(repository.join("inside"), "FROM x\n").unwrap();
    symlink("../outside", repository.join("out")).unwrap();
    symlink("/proc/self/environ", repository.join("environ")).unwrap();
    symlink(outer.path(), repository.join("folder/up")).unwrap();
    symlink(".git/config", repository.join("config")).unwrap();
    symlink("inside", repository.join("in")).unwrap();
    let said = |option: &[&str], file: &str| {
        let arguments = with(option, file);
        stderr(&run_in(&repository, &arguments.iter().map(String::as_str).collect::<Vec<_>>()))
    };
    for option in OPTIONS.iter().filter(|option| !option.contains(&"--authfile") && !option.contains(&"test")) {
        let said = said(option, "environ");
        assert!(said.contains(REFUSED), "{option:?}: {said}");
    }
    let launch: &[&str] = &["check", "good", "--launch", "FILE"];
    for file in ["out", "folder/up/outside", "config"] {
        assert!(said(launch, file).contains(REFUSED), "{file}: {}", said(launch, file));
    }
    // What the repository holds, and what the user names, is read.
    let outside = outer.path().join("outside").display().to_string();
    for file in ["in", "inside", "../outside", &outside, ".git/config"] {
        assert!(!said(launch, file).contains("error"), "{file}: {}", said(launch, file));
    }
    let stdin = run_with(&[], &["check", "--list", "-"], Some(b"zq7Xw=\n"));
    assert!(
        stderr(&stdin).contains("standard input:1: expected the name of an image or an existing file"),
        "{}",
        stderr(&stdin)
    );
}

#[test]
fn in_ci_a_checkout_needs_no_git_folder() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    symlink("/proc/self/environ", &link).unwrap();
    let good = crate::support::world("good").display().to_string();
    let ci = |variables: &[(&str, &str)]| {
        let script = format!("cd '{}' && exec \"$0\" \"$@\"", folder.path().display());
        let program = crate::support::program();
        let mut command = std::process::Command::new("sh");
        command.args(["-c", &script]).arg(program).args(["check", "--launch", "link", &good]).env_clear();
        let output = command.envs(variables.iter().copied()).output().unwrap();
        stderr(&output)
    };
    assert!(ci(&[("CI", "true")]).contains("a link leads outside of this repository"), "{}", ci(&[("CI", "true")]));
    assert!(!ci(&[]).contains("a link leads outside"), "{}", ci(&[]));
}
