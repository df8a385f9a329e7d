//! Many images in one run.

use std::fs;
use std::process::Output;

use serde_json::Value;

use crate::support::{run, run_with, stderr, text, world};

fn path(name: &str) -> String {
    world(name).display().to_string()
}

fn reports(output: &Output) -> Vec<Value> {
    text(output).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn reports_have_the_order_of_the_references_and_an_object_for_each_image_that_could_not_be_opened() {
    let names = ["no-nccl", "good", "env-disabled", "good", "no-nccl"];
    let mut images: Vec<String> = names.iter().map(|name| path(name)).collect();
    images.insert(2, "nothing-here.tar".to_owned());
    let arguments: Vec<&str> = ["check", "--quiet", "--jobs", "4", "--format", "json"]
        .into_iter()
        .chain(images.iter().map(String::as_str))
        .collect();
    let output = run(&arguments, None);
    assert_eq!(output.status.code(), Some(2));
    let reports = reports(&output);
    let found: Vec<_> = reports.iter().map(|report| report["image"]["reference"].as_str().unwrap()).collect();
    assert_eq!(found, images);
    let verdicts: Vec<_> = reports.iter().map(|report| report["verdict"].as_str().unwrap()).collect();
    assert_eq!(verdicts, ["fail", "pass", "error", "fail", "pass", "fail"]);
    assert!(reports[2]["error"].as_str().unwrap().contains("no such file"), "{}", reports[2]);
    assert_eq!(reports[0]["asked"]["command"], "check");
    assert_eq!(reports[0]["rules"]["digest"], reports[1]["rules"]["digest"]);
    assert!(reports[0]["time"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn one_job_and_several_give_the_same() {
    let images = [path("good"), path("no-nccl"), path("use-nccl-off"), path("good")];
    let of = |jobs: &str| {
        let mut arguments = vec!["check", "--quiet", "--jobs", jobs, "--format", "table"];
        arguments.extend(images.iter().map(String::as_str));
        text(&run(&arguments, None))
    };
    let alone = of("1");
    assert!(alone.ends_with("FAILED: 4 images: 2 failed, 2 passed\n"), "{alone}");
    assert_eq!(alone, of("4"));
}

#[test]
fn an_image_that_cannot_be_opened_hides_no_failure() {
    let good = path("good");
    let bad = path("no-nccl");
    let output = run(&["check", "--quiet", "nothing-here.tar", &bad, &good], None);
    assert_eq!(output.status.code(), Some(2));
    let text = text(&output);
    let errors = stderr(&output);
    assert!(text.contains("error[nccl/missing-library]:"), "{text}");
    let rows: Vec<_> = text
        .lines()
        .skip_while(|line| !line.starts_with("verdict "))
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    let verdicts: Vec<_> = rows.iter().filter(|word| ["pass", "fail", "error"].contains(word)).collect();
    assert_eq!(verdicts, [&"pass", &"fail", &"error"], "the worst is last: {text}");
    assert!(text.ends_with("ERROR: 3 images: 1 could not be opened, 1 failed, 1 passed\n"), "{text}");
    assert!(errors.contains("nothing-here.tar"), "{errors}");
}

#[test]
fn verbose_reports_on_each_image_before_the_table() {
    let good = path("good");
    let bad = path("no-nccl");
    let text = text(&run(&["check", "--quiet", "--verbose", &bad, &good], None));
    assert_eq!(text.matches(" layers, ").count(), 2, "{text}");
    assert!(text.ends_with("FAILED: 2 images: 1 failed, 1 passed\n"), "{text}");
}

#[test]
fn an_invalid_policy_stops_every_image() {
    let folder = tempfile::tempdir().unwrap();
    let policy = folder.path().join("policy.yaml");
    fs::write(&policy, "nonsense: true\n").unwrap();
    let good = path("good");
    let config = policy.display().to_string();
    let output = run(&["check", "--quiet", "--config", &config, "--jobs", "3", &good, &good, &good, &good], None);
    assert_eq!((output.status.code(), text(&output)), (Some(2), String::new()));
}

#[test]
fn images_with_a_common_layer_scan_it_once() {
    let cache = tempfile::tempdir().unwrap();
    let folder = cache.path().display().to_string();
    let good = path("good");
    let arguments = ["check", "--quiet", "--jobs", "4", "--format", "json", &good, &good, &good, &good];
    let output = run_with(&[("NCCLCHECK_CACHE", &folder)], &arguments, None);
    let reports = reports(&output);
    let layers = reports[0]["image"]["layers"].as_array().unwrap().len();
    assert!(reports.len() == 4 && layers > 1, "{}", text(&output));
    let scanned = reports.iter().flat_map(|report| report["image"]["layers"].as_array().unwrap());
    assert_eq!(scanned.filter(|layer| layer["cached"] == false).count(), layers);
}

#[test]
fn stored_reports_are_presented_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("reports.json").display().to_string();
    let images = [path("good"), path("no-nccl"), "nothing-here.tar".to_owned(), path("env-disabled")];
    let mut arguments = vec!["check", "--quiet", "--no-config"];
    let json = format!("json={stored}");
    arguments.extend(["--format", &json, "--format", "table"]);
    arguments.extend(images.iter().map(String::as_str));
    let direct = run(&arguments, None);
    let presented = run(&["report", &stored, "--format", "table"], None);
    assert_eq!(text(&presented), text(&direct));
    assert_eq!((direct.status.code(), presented.status.code()), (Some(2), Some(2)));
    for format in ["junit", "gitlab", "github", "markdown", "csv", "human"] {
        let direct = run(
            &[&["check", "--quiet", "--no-config", "--format", format][..], &images.each_ref().map(|image| &**image)]
                .concat(),
            None,
        );
        let presented = run(&["report", &stored, "--format", format], None);
        assert_eq!(text(&presented), text(&direct), "{format}");
    }
    let input = fs::read(&stored).unwrap();
    let again = run(&["report", "-", "--format", "json"], Some(&input));
    assert_eq!(again.stdout, input, "a report is written as it was read");
}

#[test]
fn hosts_of_one_image_are_presented_together() {
    let folder = tempfile::tempdir().unwrap();
    let stored = folder.path().join("reports.json").display().to_string();
    let good = path("good");
    let json = format!("json={stored}");
    let hosts = ["--host", "driver=450.80", "--host", "driver=580.65"];
    let arguments =
        [&["check", "--quiet", "--no-config", &good, "--format", &json, "--format", "human"][..], &hosts].concat();
    let direct = run(&arguments, None);
    let presented = run(&["report", &stored], None);
    assert_eq!(fs::read_to_string(&stored).unwrap().lines().count(), 2);
    let heads = |output: &Output| text(output).lines().filter(|line| line.contains("2 hosts")).count();
    assert_eq!((heads(&direct), heads(&presented)), (2, 2), "{}", text(&presented));
}

#[test]
fn what_is_no_report_is_an_error_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.json");
    fs::write(&file, "\n{\"schema\":\"ncclcheck/1\"}\n").unwrap();
    let output = run(&["report", &file.display().to_string()], None);
    assert_eq!(output.status.code(), Some(2));
    let errors = stderr(&output);
    assert!(errors.contains("x.json, line 2: its schema is 'ncclcheck/1'") && errors.contains("help:"), "{errors}");
    fs::write(&file, vec![b'x'; (64 << 20) + 1]).unwrap();
    let output = run(&["report", &file.display().to_string()], None);
    assert!(stderr(&output).contains("x.json, line 1: more than 64 MiB"), "{}", stderr(&output));
    fs::write(&file, "\n").unwrap();
    let output = run(&["report", &file.display().to_string()], None);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("x.json: it contains no report"), "{}", stderr(&output));
    let output = run(&["report", "/nonexistent/reports.json"], None);
    assert!(stderr(&output).contains("/nonexistent/reports.json"), "{}", stderr(&output));
}

#[test]
fn no_report_begins_with_a_blank_line_and_parts_have_one_between() {
    let good = path("good");
    let bad = path("no-nccl");
    let missing = ["nothing-here.tar", "nor-here.tar"];
    for arguments in [&[&*bad, &good, &bad][..], &[&good, &good], &missing, &["--verbose", missing[0], missing[1]]] {
        let text = text(&run(&[&["check", "--quiet"], arguments].concat(), None));
        assert!(!text.trim().is_empty() && !text.starts_with('\n'), "{arguments:?}: {text}");
        assert!(!text.contains("\n\n\n"), "{arguments:?}: {text}");
    }
    let text = text(&run(&["check", "--quiet", "--verbose", &good, &bad], None));
    assert!(text.contains("\n\nFAIL ") && text.contains("\n\nverdict "), "{text}");
}
