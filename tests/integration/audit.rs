//! `ncclcheck audit`: plan, workers, merge, trend.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::registry::{registry, write};
use crate::support::{program, run, stderr, world};

/// A folder with a layout of `count` images, made of the small worlds.
fn layout(folder: &Path, count: usize) -> PathBuf {
    let layout = folder.join("layout");
    let generate = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/audit/generate");
    let made = Command::new(generate).arg(&layout).args(["--images", &count.to_string()]).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    layout
}

fn audit(arguments: &[&str]) -> (i32, String, String) {
    let output = run(&[&["audit"], arguments].concat(), None);
    (output.status.code().unwrap(), String::from_utf8(output.stdout.clone()).unwrap(), stderr(&output))
}

/// Plans a run of a layout in `folder/store`.
fn planned(folder: &Path, layout: &Path, run: &str, more: &[&str]) -> String {
    let store = folder.join("store").to_str().unwrap().to_owned();
    let image = format!("oci:{}", layout.display());
    let (status, out, err) = audit(&[&["plan", "--no-config", "--store", &store, "--run", run, &image], more].concat());
    assert_eq!(status, 0, "{out}{err}");
    store
}

fn merged(store: &str, run: &str) -> (Vec<u8>, Value) {
    let output = crate::support::run(&["audit", "merge", "--store", store, "--run", run, "--format", "json"], None);
    let document = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    (output.stdout, document)
}

/// The document without the name and the time of the run.
fn images(document: &Value) -> Vec<Value> {
    ["images", "counts", "layers", "rules"].map(|key| document[key].clone()).to_vec()
}

#[test]
fn workers_agree_whatever_their_number() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), 70);
    let mut documents = Vec::new();
    for (run, shards) in [("one", 1), ("three", 3)] {
        let store = planned(folder.path(), &layout, run, &[]);
        for shard in 0..shards {
            let shard = format!("{shard}/{shards}");
            let (status, _, err) = audit(&["run", "--store", &store, "--run", run, "--shard", &shard, "--jobs", "1"]);
            assert_eq!(status, 0, "{err}");
        }
        let (_, document) = merged(&store, run);
        assert_eq!(document["counts"]["images"], 70);
        assert_eq!(document["counts"]["pending"], 0);
        assert!(document["counts"]["fail"].as_u64().unwrap() > 5, "{}", document["counts"]);
        documents.push(images(&document));
    }
    assert_eq!(documents[0], documents[1]);
    // The same as `check` says of an image alone.
    let first = &documents[0][0][0];
    let id = first["manifest"].as_str().unwrap();
    let output = run(&["check", "--no-config", "--format", "json", &format!("oci:{}@{id}", layout.display())], None);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], first["verdict"]);
}

#[test]
fn a_layer_is_blamed_for_what_it_brings() {
    let folder = tempfile::tempdir().unwrap();
    let store = planned(folder.path(), &layout(folder.path(), 42), "a", &[]);
    assert_eq!(audit(&["run", "--store", &store]).0, 0);
    let owners = folder.path().join("owners.yaml");
    std::fs::write(&owners, "- {images: 'registry.example/team-*/**', team: apps}\n").unwrap();
    let (status, out, err) = audit(&["merge", "--store", &store, "--owners", owners.to_str().unwrap()]);
    assert_eq!(status, 1, "{err}");
    for expected in ["42 images: ", "Layers that bring findings", "Rules", "nccl/", "Teams", "apps"] {
        assert!(out.contains(expected), "{expected}: {out}");
    }
    let (_, document) = merged(&store, "a");
    assert_eq!(document["teams"], Value::Array(Vec::new()), "without owners");
    let layers = document["layers"].as_array().unwrap();
    assert!(layers.iter().any(|layer| layer["images"].as_u64().unwrap() >= 3), "{layers:?}");
    let sums: u64 = document["rules"].as_array().unwrap().iter().map(|rule| rule["images"].as_u64().unwrap()).sum();
    let findings = document["images"].as_array().unwrap().iter().map(|image| {
        let rules = image["findings"]
            .as_array()
            .map_or(Vec::new(), |all| all.iter().map(|one| one["rule"].to_string()).collect());
        rules.into_iter().collect::<std::collections::BTreeSet<_>>().len() as u64
    });
    assert_eq!(sums, findings.sum::<u64>());
}

#[test]
fn a_killed_worker_loses_and_repeats_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), 80);
    let store = planned(folder.path(), &layout, "killed", &[]);
    let work = || {
        let arguments = ["audit", "run", "--store", &store, "--lease", "2s", "--jobs", "1"];
        Command::new(program()).args(arguments).env_clear().stderr(Stdio::null()).spawn().unwrap()
    };
    for _ in 0..3 {
        let mut child = work();
        std::thread::sleep(Duration::from_millis(400));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let begun = Instant::now();
    assert!(work().wait().unwrap().success());
    assert!(begun.elapsed() < Duration::from_mins(2), "{:?}", begun.elapsed());
    let (_, killed) = merged(&store, "killed");
    assert_eq!(killed["counts"]["images"], 80);
    assert_eq!((&killed["counts"]["pending"], &killed["counts"]["unavailable"]), (&0.into(), &0.into()));
    planned(folder.path(), &layout, "quiet", &[]);
    assert_eq!(audit(&["run", "--store", &store, "--run", "quiet"]).0, 0);
    assert_eq!(images(&killed), images(&merged(&store, "quiet").1));
}

#[test]
fn what_cannot_be_judged_is_unavailable_or_pending() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), 3);
    let store = planned(folder.path(), &layout, "a", &[]);
    let document = merged(&store, "a").1;
    assert_eq!(document["counts"]["pending"], 3, "{document}");
    let layer = document["images"][0]["manifest"].as_str().unwrap().replace("sha256:", "blobs/sha256/");
    std::fs::remove_file(layout.join(layer)).unwrap();
    let (status, out, _) = audit(&["status", "--store", &store]);
    assert_eq!(status, 75, "{out}");
    let (status, _, err) = audit(&["run", "--store", &store]);
    assert_eq!(status, 0, "{err}");
    let document = merged(&store, "a").1;
    assert_eq!(document["counts"]["unavailable"], 1);
    assert_eq!(document["images"][0]["unavailable"]["kind"], "not-found");
    assert_eq!(audit(&["status", "--store", &store]).0, 0);
}

#[test]
fn other_rules_are_refused_and_a_trend_books_them_to_the_rules() {
    let folder = tempfile::tempdir().unwrap();
    let image = format!("oci-archive:{}", world("no-nccl").display());
    let store = folder.path().join("store").to_str().unwrap().to_owned();
    let policy = folder.path().join("policy.yaml");
    let rule = folder.path().join("own/acme/no-conda.yaml");
    std::fs::create_dir_all(rule.parent().unwrap()).unwrap();
    let own = "id: acme/no-conda\ntitle: PyTorch is installed by conda\nseverity: warning\nowner: image\n\
        check: \"!torch.path.contains('/conda/')\"\nmessage: m\nwhy: w\nfix: f\n";
    std::fs::write(&rule, own).unwrap();
    std::fs::write(&policy, "rules: {folders: [own], severity: {nccl/missing-library: off}}\n").unwrap();
    let named = policy.to_str().unwrap();
    for (run, rules) in [("before", &["--config", named][..]), ("after", &["--no-config"])] {
        let (status, out, err) = audit(&[&["plan", "--store", &store, "--run", run, &image], rules].concat());
        assert_eq!(status, 0, "{out}{err}");
    }
    // The policy is in the plan, and its rules are not.
    std::fs::remove_file(&policy).unwrap();
    for run in ["before", "after"] {
        let (status, _, err) = audit(&["run", "--store", &store, "--run", run]);
        assert_eq!(status, 0, "{err}");
    }
    std::fs::write(&rule, own.replace("warning", "error")).unwrap();
    let (status, _, err) = audit(&["run", "--store", &store, "--run", "before"]);
    assert_eq!(status, 2);
    assert!(err.contains("these rules differ from the plan's: acme/no-conda"), "{err}");
    let (status, out, err) =
        audit(&["trend", "--store", &store, "--run", "after", "--since", "before", "--format", "json"]);
    assert_eq!(status, 0, "{err}");
    let trend: Value = serde_json::from_str(&out).unwrap();
    let change = &trend["changes"][0];
    assert_eq!(change["cause"], "rules", "{trend}");
    assert!(change["newly_failing"].as_array().unwrap().contains(&"nccl/missing-library".into()), "{trend}");
    for (form, expected) in [("csv", ",newly-failing,rules,pass,fail,"), ("html", "<h2>Newly failing ")] {
        let out = audit(&["trend", "--store", &store, "--run", "after", "--since", "before", "--format", form]).1;
        assert!(out.contains(expected), "{out}");
    }
}

/// The samples of metrics that are not 0, but for those of each image.
fn samples(metrics: &str) -> Vec<&str> {
    let is_sample = |line: &&str| !line.starts_with('#') && !line.ends_with(" 0") && !line.contains("_findings{");
    metrics.lines().filter(is_sample).collect()
}

#[test]
fn a_trend_is_since_the_finished_run_before_and_has_metrics() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), 6);
    let store = planned(folder.path(), &layout, "1", &[]);
    let trend = |run: &str, more: &[&str]| audit(&[&["trend", "--store", &store, "--run", run], more].concat());
    let (status, out, err) = trend("1", &["--format", "prometheus"]);
    assert_eq!((status, &*out), (3, ""), "{err}");
    assert!(err.contains("nothing is compared: ") && err.contains(" has no finished run before 1"), "{err}");
    assert_eq!(trend("1", &["--report-only"]).0, 0);
    assert_eq!(audit(&["run", "--store", &store, "--run", "1"]).0, 0);
    planned(folder.path(), &layout, "2", &[]);

    // A name that meant an image that passes now means one that fails.
    let index = layout.join("index.json");
    let mut document: Value = serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
    for key in ["digest", "size"] {
        document["manifests"][0][key] = document["manifests"][4][key].clone();
    }
    std::fs::write(&index, document.to_string()).unwrap();
    planned(folder.path(), &layout, "3", &[]);
    assert_eq!(audit(&["run", "--store", &store, "--run", "3"]).0, 0);
    let (status, out, err) = trend("3", &["--format", "prometheus"]);
    assert_eq!(status, 1, "{err}");
    assert_eq!(samples(&out), [r#"ncclcheck_audit_changes{kind="newly-failing",cause="image"} 1"#], "{out}");
    assert!(out.contains(r#"ncclcheck_audit_changes{kind="fixed",cause="rules"} 0"#), "{out}");
    let (status, out, err) = trend("3", &["--report-only"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.starts_with("since 1: run 3\n"), "{out}");

    // Each name has a series, and an image without a result is no pass.
    let metrics = |run: &str| audit(&["merge", "--store", &store, "--run", run, "--format", "prometheus"]);
    let (status, out, err) = metrics("3");
    assert_eq!(status, 1, "{err}");
    for name in ["team-0/app-0", "team-4/app-4"] {
        let series = format!(
            r#"ncclcheck_image_verdict{{repository="registry.example/{name}",tag="1",platform="linux/amd64",verdict="fail"}} 1"#
        );
        assert!(samples(&out).contains(&&*series), "{out}");
    }
    let plan: Value = serde_json::from_slice(&std::fs::read(folder.path().join("store/3/plan.json")).unwrap()).unwrap();
    let planned: jiff::Timestamp = plan["created"].as_str().unwrap().parse().unwrap();
    let time = format!("ncclcheck_last_run_timestamp_seconds {}", planned.as_second());
    assert!(samples(&out).contains(&&*time), "{out}");
    let (status, out, _) = metrics("2");
    assert_eq!(status, 3);
    assert!(samples(&out).contains(&r#"ncclcheck_images{verdict="error"} 6"#), "{out}");
    assert_eq!(audit(&["merge", "--store", &store, "--run", "3", "--report-only"]).0, 0);
}

#[test]
fn a_name_that_cannot_be_resolved_does_not_stop_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").to_str().unwrap().to_owned();
    let image = format!("oci-archive:{}", world("good").display());
    let plan = |run: &str, more: &[&str]| {
        let (status, _, err) = audit(
            &[&["plan", "--no-config", "--store", &store, "--run", run, &image, "oci-archive:/nowhere.tar"], more]
                .concat(),
        );
        assert!(err.contains("not resolved: oci-archive:/nowhere.tar: "), "{err}");
        status
    };
    assert_eq!([plan("a", &[]), plan("b", &["--report-only"])], [3, 0]);
    assert!(merged(&store, "b").1["unresolved"].get("oci-archive:/nowhere.tar").is_some());
}

#[test]
fn signatures_beside_images_are_left_out_of_a_repository() {
    let layout = crate::support::layout("good");
    let path = layout.path().join("index.json");
    let mut index: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    // As cosign 2 stores it by a tag of its own, and cosign 3 in an index.
    let kind = "application/vnd.dev.cosign.simplesigning.v1+json";
    let mut config = json!({"mediaType": "application/vnd.oci.image.config.v1+json"});
    write(
        layout.path(),
        br#"{"architecture": "", "os": "", "rootfs": {"type": "layers", "diff_ids": []}}"#,
        &mut config,
    );
    let mut payload = json!({"mediaType": kind});
    write(layout.path(), b"{}", &mut payload);
    let mut signature = json!({"mediaType": "application/vnd.oci.image.manifest.v1+json"});
    let document = json!({"schemaVersion": 2, "config": config, "layers": [payload]});
    write(layout.path(), document.to_string().as_bytes(), &mut signature);
    let mut of_signatures = json!({"mediaType": "application/vnd.oci.image.index.v1+json"});
    let document = json!({"schemaVersion": 2, "manifests": [signature]});
    write(layout.path(), document.to_string().as_bytes(), &mut of_signatures);
    index["manifests"].as_array_mut().unwrap().extend([signature, of_signatures]);
    std::fs::write(&path, index.to_string()).unwrap();
    let (image, _) = registry(layout.path().to_owned());
    let repository = image.trim_start_matches("docker://").trim_end_matches(":1");

    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").to_str().unwrap().to_owned();
    let plan =
        ["plan", "--no-config", "--tls-verify=false", "--store", &store, "--run", "a", "--repository", repository];
    let (status, out, err) = audit(&plan);
    assert_eq!((status, &*out), (0, "run a: 1 image in 1 chunk\n"), "{err}");
    assert_eq!(err, format!("left out 2 tags of artifacts, such as docker://{repository}:2\n"));
    // A reference that someone wrote is expected to be an image.
    let named = format!("docker://{repository}:3");
    let (status, _, err) =
        audit(&["plan", "--no-config", "--tls-verify=false", "--store", &store, "--run", "b", &image, &named]);
    assert_eq!(status, 3, "{err}");
    assert!(err.starts_with(&format!("not resolved: {named}: ")), "{err}");
}

#[test]
fn plans_are_immutable_and_stores_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let layout = layout(folder.path(), 2);
    let store = planned(folder.path(), &layout, "a", &[]);
    let image = format!("oci:{}", layout.display());
    let (status, _, err) = audit(&["plan", "--no-config", "--store", &store, "--run", "a", &image]);
    assert_eq!(status, 2);
    assert!(err.contains("has a run 'a' already"), "{err}");
    let (status, _, err) = audit(&["plan", "--no-config", "--store", "http://127.0.0.1:1/x", &image]);
    assert_eq!(status, 2);
    assert!(err.contains("a web server cannot keep an audit"), "{err}");
    let (status, _, err) = audit(&["merge", "--store", &store, "--run", "b"]);
    assert_eq!(status, 2);
    assert!(err.contains("no run 'b'"), "{err}");
    // The same images again, without naming them.
    let (status, out, err) = audit(&["plan", "--no-config", "--store", &store, "--run", "b", "--again", "a"]);
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("run b: 2 images"), "{out}");
}

#[test]
fn manifests_have_every_shard() {
    let common = ["--store", "s3://bucket/audit", "--run", "r", "--shards", "5"];
    let (status, out, err) = audit(&[&["manifest", "slurm"][..], &common, &["--", "--lease", "a b"]].concat());
    assert_eq!(status, 0, "{err}");
    assert!(out.contains("#SBATCH --array=0-4\n") && out.contains("--deadline 55m") && out.contains("'a b'"), "{out}");
    let (status, out, err) = audit(&[&["manifest", "kubernetes", "--image", "reg.example/n:1"][..], &common].concat());
    assert_eq!(status, 0, "{err}");
    let job: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((&job["spec"]["completions"], &job["spec"]["completionMode"]), (&5.into(), &"Indexed".into()));
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!(pod["automountServiceAccountToken"], false);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["containers"][0]["securityContext"]["readOnlyRootFilesystem"], true);
    let folder = ["--store", "/shared", "--run", "r"];
    let (status, _, err) = audit(&[&["manifest", "kubernetes", "--image", "i"][..], &folder].concat());
    assert_eq!(status, 2);
    assert!(err.contains("--claim"), "{err}");
}

#[test]
fn a_summary_counts_what_it_leaves_out_and_images_of_no_team() {
    let folder = tempfile::tempdir().unwrap();
    let store = planned(folder.path(), &layout(folder.path(), 70), "a", &[]);
    assert_eq!(audit(&["run", "--store", &store]).0, 0);
    let owners = folder.path().join("owners.yaml");
    std::fs::write(&owners, "- {images: 'registry.example/team-3/**', team: apps}\n").unwrap();
    let merge = ["merge", "--store", &store, "--owners", owners.to_str().unwrap(), "--format"];
    let document: Value = serde_json::from_str(&audit(&[&merge[..], &["json"]].concat()).1).unwrap();
    let sum = |key: &str| {
        document["teams"].as_array().unwrap().iter().map(|team| team["counts"][key].as_u64().unwrap()).sum::<u64>()
    };
    for key in ["images", "fail", "pass"] {
        assert_eq!(sum(key), document["counts"][key].as_u64().unwrap(), "{key}: {document}");
    }
    let teams: Vec<_> = document["teams"].as_array().unwrap().iter().map(|team| &team["team"]).collect();
    assert_eq!(teams, [&Value::Null, &"apps".into()]);
    let failing = document["counts"]["fail"].as_u64().unwrap();
    assert!(failing > 20, "{failing}");
    for (form, row) in [("human", "  (no team)  60 "), ("markdown", "| (no team) | 60 |")] {
        let out = audit(&[&merge[..], &[form]].concat()).1;
        assert!(out.contains(row), "{out}");
        assert!(out.contains(&format!("and {} more: --format json has all", failing - 20)), "{out}");
    }
    let records = audit(&[&merge[..], &["csv"]].concat()).1;
    let teams = records.lines().skip(1).filter(|line| line.split(',').nth(4) == Some("apps"));
    assert_eq!((records.lines().count(), teams.count()), (71, 10), "{records}");
    let page = audit(&[&merge[..], &["html"]].concat()).1;
    for target in page.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(page.contains(&format!(" id=\"{target}\"")), "nothing has the name {target}");
    }
    for rule in document["rules"].as_array().unwrap() {
        let summary = page.split(&format!("<code>{}</code> ", rule["rule"].as_str().unwrap())).nth(1).unwrap();
        let images = format!("<span class=\"n\">{} images</span>", rule["images"]);
        assert!(summary.split("</summary>").next().unwrap().contains(&images), "{rule}: {summary}");
    }
    assert!(page.contains(&format!("{failing} failed</span>")) && page.contains("By team"), "{page}");
}

#[test]
fn a_status_counts_the_failures_that_it_does_not_show() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("store").to_str().unwrap().to_owned();
    let image = format!("oci-archive:{}", world("no-nccl").display());
    assert_eq!(audit(&["plan", "--no-config", "--store", &store, "--run", "a", &image]).0, 0);
    for number in 0..12 {
        let failed = Path::new(&store).join(format!("a/failed/{number:064x}"));
        std::fs::create_dir_all(&failed).unwrap();
        std::fs::write(failed.join("one-0"), "no answer").unwrap();
        std::fs::write(failed.join("other-0"), "no answer").unwrap();
    }
    let (_, out, _) = audit(&["status", "--store", &store]);
    assert_eq!(out.matches(": no answer\n").count(), 10, "{out}");
    assert!(out.ends_with("failed, to be tried again: 2 more\n"), "{out}");
}
