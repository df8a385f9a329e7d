//! Archives with several images, and with both `index.json` and `manifest.json`, as files and on standard input.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::media::{docker_archive, gzip};
use crate::platforms::{blob, several};
use crate::support::{layout, run, stderr};

/// The platforms of the judged images, or the error message.
fn judged(reference: &str, options: &[&str], input: Option<&[u8]>) -> Result<Vec<String>, String> {
    let arguments: Vec<&str> =
        ["check", "--format", "json"].iter().chain(options).copied().chain([reference]).collect();
    let output = run(&arguments, input);
    if output.status.code() == Some(2) {
        return Err(stderr(&output));
    }
    let reports = String::from_utf8(output.stdout).unwrap();
    let platform = |line: &str| {
        let report: Value = serde_json::from_str(line).unwrap();
        report["image"]["platform"].as_str().unwrap().to_owned()
    };
    Ok(reports.lines().map(platform).collect())
}

fn append(builder: &mut tar::Builder<Vec<u8>>, name: &str, bytes: &[u8]) {
    let mut header = tar::Header::new_ustar();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o644);
    builder.append_data(&mut header, name, bytes).unwrap();
}

/// An archive of a layout with a `manifest.json` that lists these images (manifest descriptors with their names), as
/// `ctr images export` writes it.
fn dual(layout: &Path, listed: &[(&Value, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    append(&mut builder, "index.json", &fs::read(layout.join("index.json")).unwrap());
    for entry in fs::read_dir(layout.join("blobs/sha256")).unwrap() {
        let path = entry.unwrap().path();
        let name = format!("blobs/sha256/{}", path.file_name().unwrap().to_str().unwrap());
        append(&mut builder, &name, &fs::read(&path).unwrap());
    }
    let member = |digest: &Value| digest.as_str().unwrap().replacen("sha256:", "blobs/sha256/", 1);
    let items: Vec<_> = listed
        .iter()
        .map(|(descriptor, name)| {
            let manifest = blob(layout, descriptor);
            let layers = manifest["layers"].as_array().unwrap().iter().map(|layer| member(&layer["digest"]));
            json!({
                "Config": member(&manifest["config"]["digest"]),
                "RepoTags": [name],
                "Layers": layers.collect::<Vec<_>>(),
            })
        })
        .collect();
    append(&mut builder, "manifest.json", Value::from(items).to_string().as_bytes());
    builder.into_inner().unwrap()
}

/// The layout of [`several`] as an archive whose `manifest.json` lists its images for amd64 and riscv64.
fn both_indexes() -> Vec<u8> {
    let folder = several();
    let top: Value = serde_json::from_slice(&fs::read(folder.path().join("index.json")).unwrap()).unwrap();
    let inner = blob(folder.path(), &top["manifests"][0]);
    dual(folder.path(), &[(&inner["manifests"][1], "train:2"), (&top["manifests"][1], "other:2")])
}

#[test]
fn the_transport_decides_between_two_indexes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    fs::write(&path, both_indexes()).unwrap();
    let path = path.display().to_string();
    let all = ["linux/arm64", "linux/amd64", "linux/riscv64"].map(str::to_owned);
    for (reference, expected) in [
        (format!("oci-archive:{path}"), &all[..]),
        (path.clone(), &all),
        (format!("docker-archive:{path}"), &all[1..]),
        (format!("oci-archive:{path}:1"), &all[..2]),
        (format!("docker-archive:{path}:train:2"), &all[1..2]),
    ] {
        assert_eq!(judged(&reference, &["--platform", "all"], None).unwrap(), expected, "{reference}");
    }
    for reference in [format!("oci-archive:{path}"), path.clone()] {
        assert_eq!(judged(&reference, &["--platform", "linux/arm64"], None).unwrap(), ["linux/arm64"], "{reference}");
    }
    let error = judged(&format!("docker-archive:{path}"), &["--platform", "linux/arm64"], None).unwrap_err();
    assert!(error.contains("no linux/arm64 image; available: linux/amd64, linux/riscv64"), "{error}");
    let error = judged(&format!("oci-archive:{path}:train:2"), &[], None).unwrap_err();
    assert!(error.contains("no image ':train:2' in the index"), "{error}");
}

#[test]
fn an_index_without_images_gives_way_to_the_other() {
    let folder = several();
    let path = folder.path();
    let top: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    for none in [Value::Null, json!([])] {
        fs::write(path.join("index.json"), json!({"schemaVersion": 2, "manifests": none}).to_string()).unwrap();
        let bytes = dual(path, &[(&top["manifests"][1], "other:2")]);
        let file = path.join("a.tar");
        fs::write(&file, &bytes).unwrap();
        assert_eq!(judged(&file.display().to_string(), &[], None).unwrap(), ["linux/riscv64"]);
        assert_eq!(judged("-", &[], Some(&bytes)).unwrap(), ["linux/riscv64"]);
        let error = judged(&format!("oci-archive:{}", file.display()), &[], None).unwrap_err();
        assert!(error.contains("the index lists no images"), "{error}");
    }
}

#[test]
fn an_image_on_standard_input_is_selected() {
    let bytes = both_indexes();
    for (reference, options, expected) in [
        ("-", &["--platform", "all"][..], &["linux/arm64", "linux/amd64", "linux/riscv64"][..]),
        ("-", &["--platform", "linux/arm64"], &["linux/arm64"]),
        ("-:1", &["--platform", "linux/amd64"], &["linux/amd64"]),
        ("-:@0", &[], &["linux/arm64"]),
        ("-:@2", &[], &["linux/riscv64"]),
        // Only manifest.json has these names.
        ("-:train:2", &[], &["linux/amd64"]),
        ("-:docker.io/library/other:2", &[], &["linux/riscv64"]),
    ] {
        let expected: Vec<_> = expected.iter().map(|text| (*text).to_owned()).collect();
        assert_eq!(judged(reference, options, Some(&bytes)), Ok(expected), "{reference}");
    }
    assert_eq!(judged("-:train:2", &[], Some(&gzip(&bytes))).unwrap(), ["linux/amd64"]);
    let error = judged("-:lost", &[], Some(&bytes)).unwrap_err();
    assert!(error.starts_with("error: standard input: no image ':lost' in the index"), "{error}");
}

/// Two images of `docker save`, for this machine's platform.
fn two_images() -> Vec<u8> {
    let host = json!(ncclcheck::model::Platform::host().architecture);
    let folder = layout("good");
    let path = folder.path();
    let index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let mut images = Vec::new();
    for label in ["one", "two"] {
        let mut manifest = blob(path, &index["manifests"][0]);
        let mut config = blob(path, &manifest["config"]);
        config["architecture"] = host.clone();
        config["config"]["Labels"] = json!({"name": label});
        manifest["config"] = crate::platforms::store(path, &config, "application/vnd.oci.image.config.v1+json");
        images.push(crate::platforms::store(path, &manifest, crate::platforms::MANIFEST));
    }
    fs::remove_file(path.join("index.json")).unwrap();
    fs::write(path.join("index.json"), json!({"schemaVersion": 2, "manifests": []}).to_string()).unwrap();
    let bytes = dual(path, &[(&images[0], "one:1"), (&images[1], "two:1")]);
    // Docker before version 25 writes no index.json.
    let mut archive = tar::Archive::new(bytes.as_slice());
    let mut builder = tar::Builder::new(Vec::new());
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        std::io::copy(&mut entry, &mut bytes).unwrap();
        if name != "index.json" {
            append(&mut builder, &name, &bytes);
        }
    }
    builder.into_inner().unwrap()
}

#[test]
fn a_message_lists_references_that_work() {
    let bytes = two_images();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    fs::write(&path, &bytes).unwrap();
    for (reference, input) in [
        ("-".to_owned(), Some(&*bytes)),
        (path.display().to_string(), None),
        (format!("docker-archive:{}", path.display()), None),
    ] {
        let error = judged(&reference, &[], input).unwrap_err();
        assert!(error.contains("has several images that match:\n"), "{error}");
        let listed: Vec<_> = error.lines().filter(|line| line.contains(":@")).map(str::trim).collect();
        assert!(listed[0].contains("(one:1)") && listed[1].contains("(two:1)"), "{error}");
        for line in &listed[..2] {
            assert!(judged(line.split(' ').next().unwrap(), &[], input).is_ok(), "{line}");
        }
    }
}

#[test]
fn a_docker_archive_alone_has_no_other_index() {
    let bytes = docker_archive(layout("good").path(), false);
    assert_eq!(judged("-:test:1", &[], Some(&bytes)).unwrap(), ["linux/amd64"]);
    let error = judged("-:@1", &[], Some(&bytes)).unwrap_err();
    assert!(error.contains("no image ':@1' in standard input; available: 1 image, :@0"), "{error}");
}
