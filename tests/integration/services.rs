//! Reports for CI services, several at once, on the small test images.

use serde_json::Value;

use crate::support::{run, stderr, world};

#[test]
fn several_formats_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name);
    let formats: Vec<String> = ["json", "sarif", "junit", "gitlab", "markdown"]
        .iter()
        .map(|form| format!("{form}={}", file(form).display()))
        .chain(["github".to_owned()])
        .collect();
    let images = ["debug-on", "no-nccl"].map(|name| world(name).display().to_string());
    let mut arguments = vec!["check"];
    arguments.extend(formats.iter().flat_map(|format| ["--format", format]));
    arguments.extend(images.iter().map(String::as_str));
    arguments.push("/nowhere.tar");
    let output = run(&arguments, None);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));

    let read = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let reports: Vec<Value> = read("json").lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdicts: Vec<_> = reports.iter().map(|report| report["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["pass", "fail", "error"]);
    let sarif: Value = serde_json::from_str(&read("sarif")).unwrap();
    let rules: Vec<_> = sarif["runs"].as_array().unwrap().iter().map(|run| &run["results"][0]["ruleId"]).collect();
    assert_eq!(rules, [&Value::from("env/debug-on"), &"nccl/missing-library".into(), &Value::Null]);
    let gitlab: Value = serde_json::from_str(&read("gitlab")).unwrap();
    let severities: Vec<_> =
        gitlab.as_array().unwrap().iter().map(|issue| issue["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["blocker", "critical", "major"]);
    let junit = read("junit");
    assert!(junit.contains("failures=\"1\" errors=\"1\">"), "{junit}");
    assert!(read("markdown").contains("<code>nccl/missing-library</code>"));
    let commands = String::from_utf8(output.stdout).unwrap();
    let kinds: Vec<_> = commands.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(kinds, ["::error", "::error", "::warning"]);
}

#[test]
fn findings_point_to_lines_of_the_dockerfile() {
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let dockerfile = folder.path().join("Dockerfile");
    std::fs::write(
        &dockerfile,
        "FROM debian:12\nRUN pip install \\\n  torch==2.9.0\nENV X=1 \\\n    NCCL_DEBUG=INFO\n",
    )
    .unwrap();
    let path = dockerfile.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
    for (name, line) in [("debug-on", 5), ("no-nccl", 2)] {
        let image = world(name).display().to_string();
        let output = run(&["check", "--format", "sarif", "--dockerfile", &path, &image], None);
        let sarif: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", stderr(&output)));
        let place = &sarif["runs"][0]["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"], line, "{place}");
        assert_eq!(place["artifactLocation"]["uri"], path.as_str());
    }
}

#[test]
fn usage_errors_are_reported_before_the_check() {
    let image = world("good").display().to_string();
    for (arguments, why) in [
        (&["inspect", "--format", "sarif", &image][..], "--format sarif: available formats: human, json"),
        (&["check", "--dockerfile", "/etc/hostname", &image], "must be inside the current directory"),
        (&["check", "--dockerfile", "LICENSE", &image], "--dockerfile LICENSE: "),
        (&["check", "--dockerfile", "nowhere", &image], "nowhere: no such file or directory\n"),
    ] {
        let output = run(arguments, None);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}
