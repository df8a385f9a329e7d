//! Policies, profiles, baselines and custom rules, as users run them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::registry::Artifact;
use crate::support::{run, run_in, stderr, world};

fn text(output: &std::process::Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/policies")
}

/// Exit status, and the rules that failed or are unknown.
fn judged(policy: &str, name: &str) -> (i32, Vec<String>) {
    let config = policies().join(policy).join("ncclcheck.yaml").display().to_string();
    let image = world(name).display().to_string();
    let output = run(&["check", "--format", "json", "--config", &config, &image], None);
    let report: serde_json::Value =
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    let open = report["judgements"].as_array().unwrap().iter();
    let open = open.filter(|judgement| matches!(judgement["outcome"].as_str(), Some("fail" | "unknown")));
    let open = open.map(|judgement| judgement["rule"].as_str().unwrap().to_owned()).collect();
    (output.status.code().unwrap(), open)
}

#[test]
fn tests_of_custom_rules_notice_every_mutation() {
    for policy in ["ci", "audit", "cluster"] {
        let rules = policies().join(policy).join("rules").display().to_string();
        let output = run(&["rules", "test", "--mutate", &rules], None);
        assert_eq!(output.status.code(), Some(0), "{policy}: {}{}", text(&output), stderr(&output));
        let told = text(&output);
        assert!(told.contains("3 rules, ") && told.contains(" mutants caught"), "{told}");
        assert!(!told.contains(" 0 of 0 mutants"), "{told}");
    }
}

#[test]
fn custom_policies_give_the_intended_results() {
    for (policy, image, exit, open) in [
        ("ci", "good", 0, &[][..]),
        ("ci", "no-nccl", 1, &["nccl/missing-library", "require/nccl-loaded-version-2-21-5"]),
        ("ci", "no-verbs", 0, &[]),
        ("ci", "debug-on", 1, &["env/debug-on"]),
        (
            "ci",
            "cpu-only",
            1,
            &["acme/build-options", "require/hopper", "require/nccl-loaded-version-2-21-5", "torch/cpu-only"],
        ),
        ("audit", "good", 0, &[]),
        // A waiver for this digest accepts one of two findings.
        ("audit", "env-disabled", 1, &["env/ib-disabled"]),
        // This waiver has expired.
        ("audit", "debug-on", 1, &["env/debug-on"]),
        ("audit", "env-unknown", 1, &["bank/unexplained-variable", "env/unknown-nccl-variable"]),
        ("audit", "two-nccl", 1, &["nccl/several-copies"]),
        ("cluster", "good", 0, &[]),
        ("cluster", "no-verbs", 1, &["rdma/libibverbs-missing", "require/mlx5-provider"]),
        ("cluster", "debug-on", 0, &[]),
        ("cluster", "env-unknown", 0, &[]),
        ("cluster", "two-nccl", 0, &["nccl/several-copies"]),
    ] {
        assert_eq!(judged(policy, image), (exit, open.iter().map(ToString::to_string).collect()), "{policy}, {image}");
    }
}

#[test]
fn a_policy_is_searched_upward_within_the_repository() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("repository/deep");
    fs::create_dir_all(deep.join("deeper")).unwrap();
    fs::write(folder.path().join("ncclcheck.yaml"), "profile: none\n").unwrap();
    fs::create_dir(folder.path().join("repository/.git")).unwrap();
    let check = |from: &Path, more: &[&str]| {
        let image = world("good").display().to_string();
        run_in(from, &[&["check", "--quiet", &*image], more].concat())
    };
    // The policy above the repository does not apply to it.
    assert_eq!(check(&deep, &[]).status.code(), Some(0));
    fs::write(deep.join("ncclcheck.yaml"), "require: [torch.version >= 99]\n").unwrap();
    let output = check(&deep.join("deeper"), &[]);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("torch.version is 2.9.0+cu128; ../ncclcheck.yaml:1 requires torch.version >= 99"), "{told}");
    assert_eq!(check(&deep, &["--no-config"]).status.code(), Some(0));
    fs::write(deep.join("ncclcheck.yaml"), "requires: []\n").unwrap();
    let output = check(&deep, &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("ncclcheck.yaml:1:1: unknown key 'requires'"), "{}", stderr(&output));
    assert!(stderr(&output).contains("did you mean require?"), "{}", stderr(&output));
}

#[test]
fn a_baseline_fails_only_for_new_findings() {
    let folder = tempfile::tempdir().unwrap();
    let known = folder.path().join("known.json").display().to_string();
    let bad = world("no-nccl").display().to_string();
    let other = world("use-nccl-off").display().to_string();
    let format = format!("json={known}");
    assert_eq!(run(&["check", "--format", &format, &bad], None).status.code(), Some(1));
    assert_eq!(run(&["check", "--baseline", &known, &bad], None).status.code(), Some(0));
    let output = run(&["check", "--baseline", &known, &other], None);
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("nccl/missing-library of {known} is fixed in this image")), "{words}");
    for (content, why) in [
        ("{\"schema\": \"ncclcheck/9\"}", ", line 1: its schema is 'ncclcheck/9'"),
        ("{\"schema\": 1}", ", line 1: not a report of `ncclcheck check --format json`"),
        ("{\n", ", line 1: not a report"),
    ] {
        fs::write(&known, content).unwrap();
        let output = run(&["check", "--baseline", &known, &bad], None);
        assert!(stderr(&output).contains(&format!("{known}{why}")), "{}", stderr(&output));
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn a_diff_shows_facts_and_findings() {
    let good = world("good").display().to_string();
    let bad = world("no-nccl").display().to_string();
    let output = run(&["diff", &good, &bad], None);
    assert_eq!(output.status.code(), Some(1));
    let told = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(told.contains("nccl.loaded.version - 2.27.5"), "{told}");
    assert!(told.contains("new nccl/missing-library (error): torch 2.9.0+cu128 needs libnccl.so.2"), "{told}");
    assert!(told.contains("WORSE: 1 new finding, 0 fixed"), "{told}");
    // A finding of a severity that does not fail an image makes none worse.
    let warned = world("debug-on").display().to_string();
    let output = run(&["diff", &good, &warned], None);
    assert_eq!(output.status.code(), Some(0));
    let counts = "NOT WORSE: 1 new finding (1 not counted with --fail-on error), 0 fixed";
    assert!(text(&output).contains(counts), "{}", text(&output));
    let output = run(&["diff", "--fail-on", "warning", &good, &warned], None);
    assert_eq!(output.status.code(), Some(1));
    let output = run(&["diff", "--format", "json", &bad, &good], None);
    assert_eq!(output.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["verdict"], "not-worse");
    assert_eq!(run(&["diff", &good, &good], None).status.code(), Some(0));
    assert_eq!(run(&["diff", &good], None).status.code(), Some(2));
}

#[test]
fn rules_and_facts_are_explained() {
    for (name, told) in [
        ("nccl/several-copies", "\nFix\n"),
        ("nccl.copies", "Type: a list of maps"),
        ("NCCL_IB_DISABLE", "\n- env/ib-disabled: "),
        ("nccl", "\n- nccl/missing-library: "),
        ("NCCL_IB_", "\n- NCCL_IB_GID_INDEX"),
        ("unhandled system error", "\n- runtime/shm-too-small: "),
        ("why is my all_reduce slow", "\n- runtime/bandwidth-low: "),
        ("slurm", "ncclcheck preflight --in-place"),
        ("kubernetes", "kubectl exec"),
        ("torchrun", "a process for each GPU"),
        ("efa", "check --profile efa: "),
        ("rdma", "\n- host/rdma-no-verbs: "),
        ("infiniband", "RDMA over InfiniBand and RoCE\n\nWhat you see\n"),
        ("shared memory", "/dev/shm and shared memory\n\nWhat you see\n"),
        ("my job is stuck", "Hangs and timeouts\n\nWhat you see\n"),
        ("probe", "\n- ncclcheck probe: "),
        ("Connection refused", "\n- runtime/virtual-interface: "),
        (
            "CDI device injection failed: unresolvable CDI devices nvidia.com/gpu=9",
            "\n- host/cdi-specification-broken: ",
        ),
        ("docker: could not select device driver \"\" with capabilities: [[gpu]]", "nvidia-ctk runtime configure"),
        ("OSError: libmpi.so.40: cannot open shared object file", "Open MPI"),
    ] {
        let output = run(&["explain", name], None);
        assert!(text(&output).contains(told) && output.status.success(), "{}", text(&output));
        assert!(text(&output).lines().all(|line| !line.starts_with('#')), "{}", text(&output));
    }
    let output = run(&["explain"], None);
    assert!(text(&output).contains("\n- ncclcheck explain acs: ACS and IOMMU\n"), "{}", text(&output));
    for unknown in ["the job was cancelled by its owner", "RuntimeError: frobnication of the blorb", "-"] {
        assert_eq!(run(&["explain", unknown], None).status.code(), Some(2), "{unknown}");
    }
    let output = run(&["explain", "nccl/several-copys"], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("did you mean nccl/several-copies?"), "{}", stderr(&output));
    let output = run(&["explain", "NCCL_IB_DISBALE"], None);
    assert!(stderr(&output).contains("did you mean NCCL_IB_DISABLE?"), "{}", stderr(&output));
    let config = policies().join("ci/ncclcheck.yaml").display().to_string();
    for (rule, told) in [("nccl/several-copies", "id: nccl/several-copies"), ("acme/nccl-owned", "id: acme/nccl-owned")]
    {
        let output = run(&["rules", "show", "--config", &config, rule], None);
        assert!(text(&output).contains(told) && output.status.success(), "{}", stderr(&output));
    }
    let output = run(&["rules", "list", "--profile", "sigle-node"], None);
    assert!(stderr(&output).contains("did you mean single-node?"), "{}", stderr(&output));
}

/// The rule that fails for `good.oci.tar` under a policy in `folder`, run there.
fn check_in(folder: &Path, more: &[&str]) -> std::process::Output {
    let image = world("good").display().to_string();
    run_in(folder, &[&["check", "--quiet", &*image], more].concat())
}

#[test]
fn policies_build_on_others() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("team")).unwrap();
    write("team/base.yaml", "fail-on: warning\nrequire: [torch.version >= 99]\n");
    write("team.yaml", "extends: [team/base.yaml]\nprofile: ci\n");
    write("own.yaml", "extends: [team.yaml]\nrules: {severity: {require/*: info}}\n");
    let status = |configs: &[&str]| {
        let options: Vec<_> = configs.iter().flat_map(|config| ["--config", config]).collect();
        check_in(folder.path(), &options).status.code()
    };
    assert_eq!(status(&["team.yaml"]), Some(1));
    assert_eq!(status(&["own.yaml"]), Some(0));
    write("soft.yaml", "rules: {severity: {require/*: off}}\n");
    assert_eq!(status(&["team.yaml", "soft.yaml"]), Some(0));
    write("loop.yaml", "extends: [loop.yaml]\n");
    let output = check_in(folder.path(), &["--config", "loop.yaml"]);
    assert!(stderr(&output).contains("loop.yaml:1:11: loop.yaml builds on itself"), "{}", stderr(&output));
    write("lost.yaml", "extends: [gone.yaml]\n");
    let output = check_in(folder.path(), &["--config", "lost.yaml"]);
    assert!(stderr(&output).contains("lost.yaml:1:11: gone.yaml: "), "{}", stderr(&output));
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_policy_that_was_found_names_nothing_outside_of_its_repository() {
    let outer = tempfile::tempdir().unwrap();
    let repository = outer.path().join("repository");
    fs::create_dir_all(repository.join(".git")).unwrap();
    fs::write(outer.path().join("secret.yaml"), "password: 1\n").unwrap();
    let refused = |message: &str| {
        let output = check_in(&repository, &[]);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
        assert!(!stderr(&output).contains("password"), "{}", stderr(&output));
    };
    let policy = repository.join("ncclcheck.yaml");
    fs::write(&policy, "extends: [../secret.yaml]\n").unwrap();
    refused("../secret.yaml: it is outside of this repository");
    fs::write(&policy, "rules: {folders: [..]}\n").unwrap();
    refused("..: it is outside of this repository");
    std::os::unix::fs::symlink("../secret.yaml", repository.join("inner.yaml")).unwrap();
    fs::write(&policy, "extends: [inner.yaml]\n").unwrap();
    refused("inner.yaml: it is outside of this repository");
    fs::remove_file(&policy).unwrap();
    std::os::unix::fs::symlink("../secret.yaml", &policy).unwrap();
    refused("ncclcheck.yaml: not a regular file");
    assert_eq!(check_in(&repository, &["--no-config"]).status.code(), Some(0));
}

#[test]
fn a_policy_of_a_registry_is_pinned_by_its_digest() {
    let policy = Artifact::serve(b"require: [torch.version >= 99]\n");
    let folder = tempfile::tempdir().unwrap();
    let pinned = policy.pinned();
    let output = check_in(folder.path(), &["--config", &pinned]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(text(&output).contains("requires torch.version >= 99"), "{}", text(&output));
    fs::write(folder.path().join("own.yaml"), format!("extends: ['{pinned}']\n")).unwrap();
    assert_eq!(check_in(folder.path(), &["--config", "own.yaml"]).status.code(), Some(1));
    let output = check_in(folder.path(), &["--config", &format!("oci://{}:1", policy.name)]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("has no digest, so its content could change"), "{}", stderr(&output));
    fs::write(policy.file, b"require: [torch.version >= 98]\n").unwrap();
    let output = check_in(folder.path(), &["--config", &pinned]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("is corrupt"), "{}", stderr(&output));
}
