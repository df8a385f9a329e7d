//! Bad input: exit status 2, a clear message, no verdict, no leftover files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::media::skopeo_folder;
use crate::support::{layout, run, run_in, stderr, world};

/// Runs `check` and expects a failure whose message contains all of `texts`.
fn refused(arguments: &[&str], input: Option<&[u8]>, texts: &[&str]) {
    let arguments: Vec<&str> = ["check"].iter().chain(arguments).copied().collect();
    let output = run(&arguments, input);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stdout));
    for text in texts {
        assert!(said.contains(text), "{arguments:?} does not say '{text}': {said}");
    }
}

/// The largest blob of a layout, which is its largest layer.
fn layer(layout: &Path) -> PathBuf {
    let blobs = fs::read_dir(layout.join("blobs/sha256")).unwrap().map(|entry| entry.unwrap().path());
    blobs.max_by_key(|path| fs::metadata(path).unwrap().len()).unwrap()
}

#[test]
fn files_of_another_kind_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let good = world("good").display().to_string();
    let recording = format!("{}/fixtures/probe/h200-x2/quick.jsonl", env!("CARGO_MANIFEST_DIR"));
    for (name, bytes) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n"[..]),
        ("a.elf", b"\x7fELF\x02\x01\x01"),
        ("empty", b""),
        ("a.html", b"<!DOCTYPE html>\n<title>Log in</title>\n"),
        ("a.json", b"{\"name\": 1}\n"),
        ("list.json", b"[1, 2]\n"),
    ] {
        fs::write(at(name), bytes).unwrap();
    }
    fs::create_dir(at("folder")).unwrap();
    assert!(run(&["check", "--quiet", "--format", &format!("json={}", at("report")), &good], None).status.success());
    assert!(run(&["host", "--format", &format!("json={}", at("record"))], None).status.success());
    fs::copy(&good, at("image.tar")).unwrap();
    fs::copy(&recording, at("recording")).unwrap();
    let files = [
        ("a.png", "a PNG image"),
        ("a.elf", "an ELF file"),
        ("empty", "an empty file"),
        ("a.html", "an HTML page"),
        ("folder", "a folder"),
        ("report", "a report of ncclcheck"),
        ("record", "a record of `ncclcheck host`"),
        ("recording", "a recording of `ncclcheck probe`"),
        ("image.tar", "a tar archive"),
        ("a.json", ""),
        ("list.json", ""),
    ];
    let check: &[&str] = &["check", &good];
    let probe: &[&str] = &["probe", "--from", &recording];
    for (command, option, taken) in [
        (check, "--baseline", &["folder", "report", "image.tar"][..]),
        (check, "--config", &[]),
        (check, "--host", &["record"]),
        (check, "--rules", &[]),
        (probe, "--expect", &[]),
        (probe, "--reference", &["recording"]),
    ] {
        for (name, kind) in files.iter().filter(|(name, _)| !taken.contains(name)) {
            let path = at(name);
            let output = run(&[command, &[option, &path]].concat(), None);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{option} {name}: {said}");
            let begin = if kind.is_empty() { String::new() } else { format!("error: {option} {path}: {kind}, not ") };
            assert!(said.starts_with(&begin) && said.contains(&path), "{option} {name}: {said}");
            // A text of no known kind is refused by the reader of the option, which says what the option takes.
            let is_explained = !kind.is_empty() || matches!(option, "--baseline" | "--config" | "--host");
            assert!(!is_explained || said.contains("\n  help: "), "{option} {name}: {said}");
        }
    }
    for (name, kind) in
        [("image.tar", "a tar archive, not a report"), ("recording", "not a report"), ("a.json", "line 1: not a")]
    {
        let output = run(&["report", &at(name)], None);
        let said = stderr(&output);
        assert!(said.contains(kind) && said.contains("\n  help: ncclcheck check --format json=FILE IMAGE"), "{said}");
        assert_eq!(output.status.code(), Some(2), "{said}");
    }
}

#[test]
fn texts_of_windows() {
    let folder = tempfile::tempdir().unwrap();
    let good = world("good").display().to_string();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let list = at("list.txt", format!("\u{feff}{good}\r\n{}\r\n", world("debug-on").display()).as_bytes());
    let output = run(&["check", "--format", "csv", "--list", &list], None);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 3);
    at("Dockerfile", "\u{feff}FROM x\r\nENV NCCL_DEBUG=INFO\r\n".as_bytes());
    let image = world("debug-on").display().to_string();
    let check = |format| run_in(folder.path(), &["check", "--format", format, "--dockerfile", "Dockerfile", &image]);
    let shown = String::from_utf8(check("human").stdout).unwrap();
    assert!(shown.contains(" Dockerfile:2\n"), "{shown}");
    let document: serde_json::Value = serde_json::from_slice(&check("json").stdout).unwrap();
    let found = document["judgements"].as_array().unwrap().iter().filter(|one| !one["dockerfile"].is_null());
    let found: Vec<_> = found.map(|one| (one["rule"].as_str().unwrap(), one["dockerfile"].as_str().unwrap())).collect();
    assert_eq!(found, [("env/debug-on", "Dockerfile:2")]);
    let utf16: Vec<u8> = std::iter::once(0xfeff).chain("a:1\r\n".encode_utf16()).flat_map(u16::to_le_bytes).collect();
    refused(&["--list", &at("utf16.txt", &utf16)], None, &["utf16.txt: UTF-16 and not UTF-8: save it as UTF-8"]);
}

#[test]
fn paths_and_names() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    refused(&["/nonexistent/image.tar"], None, &["error: no such file or folder: /nonexistent/image.tar\n  help: "]);
    at("torch.tar", b"x");
    for (name, help) in [("troch.tar", "did you mean "), ("a/b.sif", "check the path")] {
        let path = folder.path().join(name).display().to_string();
        refused(&[&path], None, &[&format!("error: no such file or folder: {path}\n  help: {help}")]);
    }
    // Neither an engine nor a registry is asked.
    let output = run(&["check", "nosuch.tar"], None);
    assert_eq!(
        stderr(&output),
        "error: no such file or folder: nosuch.tar\n  help: if it is the name of an image, write \
         docker-daemon:nosuch.tar or docker://nosuch.tar\n"
    );
    refused(&["oci-archive:nosuch.tar"], None, &[": no such file: nosuch.tar\n"]);
    let sources = folder.path().join("sources.tar").display().to_string();
    let arguments = ["-cf", &sources, "-C", &folder.path().display().to_string(), "torch.tar"];
    assert!(Command::new("tar").args(arguments).status().unwrap().success());
    refused(&[&sources], None, &["it has neither manifest.json nor index.json\n  help: docker save", "root:FOLDER"]);
    refused(&[&at("empty", b"")], None, &["is empty\n  help: docker save -o FILE NAME"]);
    let not_archive =
        "is not an image archive (not tar, gzip, zstd, xz or bzip2)\n  help: docker save -o FILE NAME writes";
    refused(&[&at("text", b"hello\n")], None, &[not_archive]);
    fs::create_dir(folder.path().join("pictures")).unwrap();
    let pictures = folder.path().join("pictures").display().to_string();
    refused(&[&pictures], None, &["contains neither an image layout", "\n  help: name the image, such as "]);
    for (name, help) in [
        ("team/torch 1", "in lower case and without spaces"),
        ("Team/Torch:V1", "write it in lower case: team/torch:V1"),
        ("team/torch@sha256:e984d49eb3d3", "write a whole digest behind @"),
        ("team/torch@latest", "write a whole digest behind @"),
    ] {
        refused(&[name], None, &[&format!("'{name}' is not an image name: "), help]);
    }
    for (name, command) in [("x.tar", "check"), ("job.log", "log")] {
        let path = at(name, b"");
        let help = format!("error: --launch {path}: not a launch file\n  help: ncclcheck {command} {path}\n");
        refused(&["--launch", &path], None, &[&help]);
    }
    refused(&["-"], Some(b"hello\n"), &["standard input is not an image archive"]);
    refused(&["-"], Some(b""), &["standard input is empty"]);
    refused(&["/etc/passwd"], None, &["/etc/passwd is not an image archive (not tar, gzip, zstd, xz or bzip2)"]);
    refused(
        &[&format!("oci:{}", folder.path().display())],
        None,
        &["is not an OCI image layout: it has no index.json"],
    );
    let layout = layout("good");
    refused(&[&format!("oci:{}:other", layout.path().display())], None, &["no image ':other' in the index"]);
    refused(&[&format!("oci:{}", world("good").display())], None, &["is a file, not a folder: write oci-archive:"]);
    refused(&["docker:debian"], None, &["write docker://NAME"]);
    refused(&["root:/nonexistent"], None, &["is not a folder"]);
    refused(&["--format", "pdf", "x"], None, &["available formats: human, table, json"]);
    refused(&["-o", "json", "x"], None, &["a similar argument exists: '--format <FORMAT[=FILE]>'"]);
    refused(&["--severity", "high", "x"], None, &["a similar argument exists: '--fail-on <SEVERITY>'"]);
    refused(&["--limit", "entires=1", "x"], None, &["unknown limit 'entires'; did you mean entries?"]);
    refused(
        &["--limit", "entries=3", world("good").to_str().unwrap()],
        None,
        &["): 4 entries, the limit is 3\n  help: raise it with --limit entries=N"],
    );
    refused(&["--env", "NCCL_DEBUG", "x"], None, &["--env NCCL_DEBUG: expected NAME=VALUE"]);
}

#[test]
fn damaged_archives_and_layouts() {
    let whole = fs::read(world("good")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let cut = folder.path().join("cut.tar");
    fs::write(&cut, &whole[..whole.len() / 3]).unwrap();
    refused(&[cut.to_str().unwrap()], None, &["is truncated"]);
    refused(&["-"], Some(&whole[..whole.len() / 3]), &["the stream ends", "before the end of the member"]);

    let layout = layout("good");
    let reference = format!("oci:{}", layout.path().display());
    let path = layer(layout.path());
    let good = fs::read(&path).unwrap();
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    refused(&[&reference], None, &["layer ", "bytes, its descriptor says"]);
    let mut longer = good.clone();
    longer.push(0);
    fs::write(&path, longer).unwrap();
    refused(&[&reference], None, &["has more than"]);
    // The last byte lies after everything that a reader of the tar inside needs.
    for at in [good.len() / 2, good.len() - 1] {
        let mut flipped = good.clone();
        flipped[at] ^= 1;
        fs::write(&path, flipped).unwrap();
        refused(&[&reference], None, &["is corrupt", "have the digest sha256:"]);
    }
    fs::remove_file(&path).unwrap();
    refused(&[&reference], None, &["has no blob sha256:"]);
}

#[test]
fn damaged_copies_by_skopeo() {
    let layout = layout("good");
    let index: serde_json::Value =
        serde_json::from_slice(&fs::read(layout.path().join("index.json")).unwrap()).unwrap();
    let folder = skopeo_folder(layout.path(), &index["manifests"][0]);
    let bare = folder.path().display().to_string();
    let reference = format!("dir:{bare}");
    let help = "help: copy the image again: skopeo copy SOURCE dir:PATH";

    let name = layer(layout.path()).file_name().unwrap().to_owned();
    let path = folder.path().join(name);
    let good = fs::read(&path).unwrap();
    let mut flipped = good.clone();
    *flipped.last_mut().unwrap() ^= 1;
    for (bytes, text) in [(&good[..good.len() / 2], "its descriptor says"), (&flipped, "is corrupt")] {
        fs::write(&path, bytes).unwrap();
        refused(&[&reference], None, &["layer ", text]);
    }
    fs::remove_file(&path).unwrap();
    refused(&[&reference], None, &[&format!("{} is missing", path.display()), help]);

    let manifest = folder.path().join("manifest.json");
    fs::write(&manifest, "{").unwrap();
    refused(&[&reference], None, &[&format!("{} is not JSON: EOF", manifest.display()), help]);
    fs::remove_file(&manifest).unwrap();
    for reference in [&reference, &bare] {
        refused(&[reference], None, &[&format!("{} is missing", manifest.display()), help]);
    }
    // A file named `version` with other content is not a mark.
    fs::write(folder.path().join("version"), "1.0\n").unwrap();
    refused(&[&bare], None, &["contains neither an image layout (index.json) nor a copy by skopeo (version) nor"]);
}

#[test]
fn missing_platforms() {
    let layout = layout("good");
    let reference = format!("oci:{}", layout.path().display());
    let texts = ["no linux/arm64 image; available: linux/amd64", "--platform"];
    refused(&["--platform", "linux/arm64", &reference], None, &texts);
    refused(&["--platform", "arm64", &reference], None, &["'arm64' is not a platform"]);
}

#[test]
fn documents_that_are_something_else() {
    let layout = layout("good");
    let reference = format!("oci:{}", layout.path().display());
    let index = layout.path().join("index.json");
    for (document, text) in [
        ("{}", "neither an image manifest nor an index"),
        ("[]", "is not JSON of the expected form"),
        (r#"{"schemaVersion":1,"fsLayers":[]}"#, "schema 1"),
        (r#"{"schemaVersion":2,"manifests":[],"layers":[],"config":{}}"#, "ambiguous"),
        (r#"{"schemaVersion":2,"manifests":[]}"#, "the index lists no images"),
    ] {
        fs::write(&index, document).unwrap();
        refused(&[&reference], None, &[text]);
    }
}

#[test]
fn engines_and_registries_that_do_not_answer() {
    refused(&["docker-daemon:x"], None, &["/nonexistent/docker.sock", "set DOCKER_HOST"]);
    // Nothing listens on port 1 of this machine.
    refused(&["docker://127.0.0.1:1/x"], None, &[": no registry answers at 127.0.0.1:1: connection refused\n  help: "]);
    refused(
        &["127.0.0.1:1/x"],
        None,
        &["no image '127.0.0.1:1/x' was found", "engine: ", "registry docker://127.0.0.1:1/x"],
    );
    let id = "ab12cd34ef56";
    let help = "path: no such file or folder\n    help: the name looks like the ID of an image";
    refused(&[id], None, &[&format!("no image '{id}' was found"), help]);
}

#[test]
fn reports_that_cannot_be_written_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let image = world("good").display().to_string();
    let report = folder.path().join("none/report.json").display().to_string();
    refused(&["--format", &format!("human={report}"), &image], None, &["writing ", "there is no folder "]);
    let report = folder.path().join("report.json");
    let output = run(&["check", "--format", &format!("json={}", report.display()), "/nonexistent/x.tar", &image], None);
    assert_eq!(output.status.code(), Some(2), "one image of two cannot be opened");
    assert!(fs::read_to_string(&report).unwrap().contains("\"verdict\":\"pass\""));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
