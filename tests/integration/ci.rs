//! Options for jobs of a CI service: exit statuses, lists of images, comparison with a base image, and output files.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::foreign::{blob_file, foreign};
use crate::support::{run, stderr, text, world};

fn path(name: &str) -> String {
    world(name).display().to_string()
}

fn status(arguments: &[&str]) -> Option<i32> {
    run(&[&["check", "--quiet"], arguments].concat(), None).status.code()
}

#[test]
fn options_set_the_exit_status() {
    let bad = path("no-nccl");
    assert_eq!(status(&["--fail-on", "never", &bad]), Some(0));
    assert_eq!(status(&["--fail-on", "info", &bad]), Some(1));
    assert_eq!(status(&["--fail-on", "never", "nothing-here.tar"]), Some(2));
    let (folder, manifest) = foreign();
    fs::remove_file(blob_file(folder.path(), &manifest["layers"][0])).unwrap();
    let incomplete = &*format!("oci:{}", folder.path().display());
    assert_eq!(status(&[incomplete]), Some(3));
    assert_eq!(status(&["--incomplete", "pass", incomplete]), Some(0));
    assert_eq!(status(&["--incomplete", "fail", incomplete]), Some(1));
    assert_eq!(status(&["--fail-on", "never", incomplete]), Some(0));
    assert_eq!(status(&["--incomplete", "pass", &bad]), Some(1));
}

#[test]
fn images_of_a_list_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let list = folder.path().join("images.txt");
    let lines = format!("# ours\n\n  {}\n{}\n", path("good"), path("no-nccl"));
    fs::write(&list, &lines).unwrap();
    let list = list.display().to_string();
    let images = |arguments: &[&str], input: Option<&[u8]>| {
        let output = run(&[&["check", "--quiet", "--format", "json"], arguments].concat(), input);
        text(&output).lines().count()
    };
    assert_eq!(images(&["--list", &list], None), 2);
    assert_eq!(images(&["--list", "-"], Some(lines.as_bytes())), 2);
    assert_eq!(images(&["--list", &list, &path("use-nccl-off")], None), 3);
    let refused = |arguments: &[&str], input: &str, message: &str| {
        let output = run(&[&["check", "--quiet"], arguments].concat(), Some(input.as_bytes()));
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(message), "{}", stderr(&output));
    };
    refused(&["--list", "-"], "# nothing\n", "--list -: no line names an image\n  help: ");
    refused(
        &["--list", "-"],
        "image,team\n",
        "standard input:1: expected the name of an image or an existing file\n  help: a list ",
    );
    refused(&["--list", "-", "-"], &lines, "--list -: standard input cannot also be an image");
    refused(&["--list", "/nonexistent/list"], "", "/nonexistent/list");
}

#[test]
fn an_image_fails_only_for_what_its_base_does_not_have() {
    let good = path("good");
    let bad = path("no-nccl");
    let other = path("use-nccl-off");
    assert_eq!(status(&["--baseline", &bad, &bad]), Some(0));
    assert_eq!(status(&["--baseline", &good, &bad]), Some(1));
    assert_eq!(status(&["--baseline", "nothing-here.tar", &bad]), Some(2));
    let output = run(&["check", "--quiet", "--baseline", &bad, &bad, &other], None);
    assert_eq!(output.status.code(), Some(1));
    let words = text(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains(&format!("nccl/missing-library of {bad} is fixed in this image")), "{words}");
    assert!(words.contains("the image that it is compared with has it too"), "{words}");
}

#[test]
fn a_diff_is_written_for_pull_requests() {
    let good = path("good");
    let bad = path("no-nccl");
    let markdown = run(&["diff", "--quiet", "--format", "markdown", &good, &bad], None);
    assert!(
        text(&markdown).starts_with(&format!("### ❌ Worse: `{bad}` compared with `{good}`\n")),
        "{}",
        text(&markdown)
    );
    assert!(text(&markdown).contains("🔴 new error: <code>nccl/missing-library</code>"), "{}", text(&markdown));
    let github = run(&["diff", "--quiet", "--format", "github", &good, &bad], None);
    assert!(text(&github).starts_with("::error title=new%3A nccl/missing-library::torch 2.9.0"), "{}", text(&github));
    let fixed = run(&["diff", "--quiet", "--format", "github", &bad, &good], None);
    assert_eq!(text(&fixed), "");
    let refused = run(&["diff", "--format", "sarif", &good, &bad], None);
    assert!(stderr(&refused).contains("available formats: human, json, github, markdown"), "{}", stderr(&refused));
}

#[test]
fn documents_with_too_many_images_become_numbered_files() {
    let folder = tempfile::tempdir().unwrap();
    let good = path("good");
    let images = vec![&*good; 21];
    let output = run(&[&["check", "--quiet", "--format", "sarif"], &images[..]].concat(), None);
    assert_eq!(output.status.code(), Some(2));
    let told = stderr(&output);
    assert!(
        told.contains("a document holds at most 20 images, but there are 21") && told.contains("sarif=FILE"),
        "{told}"
    );
    let target = format!("sarif={}", folder.path().join("found.sarif").display());
    let output = run(&[&["check", "--quiet", "--format", &target], &images[..]].concat(), None);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let runs = |name: &str| {
        let document: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join(name)).unwrap()).unwrap();
        document["runs"].as_array().unwrap().len()
    };
    assert_eq!([runs("found-1.sarif"), runs("found-2.sarif")], [20, 1]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn output_files_are_readable_by_others_and_survive_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let first = folder.path().join("a.json");
    let second = folder.path().join("b");
    let json = format!("json={}", first.display());
    let sarif = format!("sarif={}", second.display());
    let formats = ["--format", &sarif, "--format", &json];
    let good = path("good");
    let arguments = [&["check", "--quiet"], &formats[..], &[&*good]].concat();
    assert_eq!(run(&arguments, None).status.code(), Some(0));
    let probe = folder.path().join("probe");
    fs::write(&probe, "").unwrap();
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!((mode(&first), mode(&second)), (mode(&probe), mode(&probe)));
    // One of two files cannot be written.
    fs::remove_file(&first).unwrap();
    fs::remove_file(&second).unwrap();
    symlink("/dev/full", &second).unwrap();
    let output = run(&arguments, None);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("writing ") && first.is_file(), "{}", stderr(&output));
}
