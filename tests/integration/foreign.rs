//! Foreign (nondistributable) layers, with and without their blobs, and diff IDs.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::media::{docker_archive, skopeo_folder};
use crate::platforms::{MANIFEST, blob, store};
use crate::registry::registry;
use crate::support::{check, layout, run, run_with, stderr};

const FOREIGN: &str = "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip";

fn top(layout: &Path) -> Value {
    serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap()
}

/// Changes the manifest and the configuration of the only image of a layout. Returns the new manifest.
fn change(layout: &Path, change: impl FnOnce(&mut Value, &mut Value)) -> Value {
    let mut index = top(layout);
    let mut manifest = blob(layout, &index["manifests"][0]);
    let mut config = blob(layout, &manifest["config"]);
    change(&mut manifest, &mut config);
    manifest["config"] = store(layout, &config, "application/vnd.oci.image.config.v1+json");
    index["manifests"][0] = store(layout, &manifest, MANIFEST);
    fs::write(layout.join("index.json"), index.to_string()).unwrap();
    manifest
}

pub(crate) fn blob_file(layout: &Path, descriptor: &Value) -> std::path::PathBuf {
    layout.join("blobs").join(descriptor["digest"].as_str().unwrap().replace(':', "/"))
}

/// A layout whose first layer is foreign.
pub(crate) fn foreign() -> (tempfile::TempDir, Value) {
    let folder = layout("good");
    let manifest = change(folder.path(), |manifest, _| {
        manifest["layers"][0]["mediaType"] = json!(FOREIGN);
        manifest["layers"][0]["urls"] = json!(["http://127.0.0.1:9/layer"]);
    });
    (folder, manifest)
}

fn assert_unknown((report, exit): (Value, i32), medium: &str) {
    assert_eq!((report["verdict"].as_str(), exit), (Some("incomplete"), 3), "{medium}");
    let gap = report["facts"]["nccl.loaded.version"]["gap"].as_str().unwrap();
    assert!(gap.starts_with("layer 1 of ") && gap.contains(" is a foreign layer"), "{medium}: {gap}");
    assert!(gap.contains("URLs are never contacted; check the image where that layer is present"), "{medium}: {gap}");
    assert_eq!(report["facts"]["image.platform"]["value"], "linux/amd64", "{medium}: the configuration is known");
    assert!(report["judgements"].as_array().unwrap().iter().all(|judgement| judgement["outcome"] != "fail"));
    let layer = &report["image"]["layers"][0];
    assert_eq!((&layer["read"], &layer["diff_id_verified"]), (&json!(0), &json!(false)), "{medium}");
    assert!(report["image"]["notes"].to_string().contains("is a foreign layer"), "{medium}");
}

#[test]
fn a_foreign_layer_is_read_where_it_is() {
    let good = layout("good");
    let expected = check(&format!("oci:{}", good.path().display()), None);
    let (folder, _) = foreign();
    let copy = skopeo_folder(folder.path(), &top(folder.path())["manifests"][0]);
    let (remote, _) = registry(folder.path().to_owned());
    for reference in [format!("oci:{}", folder.path().display()), format!("dir:{}", copy.path().display()), remote] {
        let (report, exit) = check(&reference, None);
        assert_eq!((&report["verdict"], exit), (&expected.0["verdict"], expected.1), "{reference}");
        assert_eq!(report["facts"]["nccl.loaded.version"], expected.0["facts"]["nccl.loaded.version"], "{reference}");
    }
}

#[test]
fn what_a_missing_foreign_layer_may_hold_is_unknown() {
    let (folder, manifest) = foreign();
    let path = folder.path();
    let copy = skopeo_folder(path, &top(path)["manifests"][0]);
    let (remote, _) = registry(path.to_owned());
    fs::remove_file(blob_file(path, &manifest["layers"][0])).unwrap();
    let hex = manifest["layers"][0]["digest"].as_str().unwrap().replacen("sha256:", "", 1);
    fs::remove_file(copy.path().join(hex)).unwrap();
    for reference in [format!("oci:{}", path.display()), format!("dir:{}", copy.path().display()), remote] {
        assert_unknown(check(&reference, None), &reference);
    }
    // Another layer that is missing is an error.
    fs::remove_file(blob_file(path, &manifest["layers"][1])).unwrap();
    let output = run(&["check", &format!("oci:{}", path.display())], None);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[test]
fn a_docker_archive_may_lack_a_foreign_layer() {
    let folder = layout("good");
    let manifest = blob(folder.path(), &top(folder.path())["manifests"][0]);
    let config = blob(folder.path(), &manifest["config"]);
    let archive = docker_archive(folder.path(), true);
    let mut builder = tar::Builder::new(Vec::new());
    for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        std::io::copy(&mut entry, &mut bytes).unwrap();
        if name == format!("{:064}/layer.tar", 0) {
            continue;
        }
        if name == "manifest.json" {
            let mut items: Value = serde_json::from_slice(&bytes).unwrap();
            let diff_id = config["rootfs"]["diff_ids"][0].as_str().unwrap();
            items[0]["LayerSources"] = json!({diff_id: {"mediaType": FOREIGN, "size": 1, "digest": diff_id}});
            bytes = items.to_string().into_bytes();
        }
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    let bytes = builder.into_inner().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), &bytes).unwrap();
    assert_unknown(check("-", Some(&bytes)), "standard input");
    assert_unknown(check(&format!("docker-archive:{}", file.path().display()), None), "a file");
}

#[test]
fn a_wrong_diff_id_is_an_error() {
    let cache = tempfile::tempdir().unwrap();
    let home = cache.path().display().to_string();
    let read = |reference: &str, input: Option<&[u8]>| run_with(&[("HOME", &home)], &["check", reference], input);
    let good = layout("good");
    // The second run finds the scans of the layers in the cache.
    for _ in 0..2 {
        assert_eq!(read(&format!("oci:{}", good.path().display()), None).status.code(), Some(0));
    }
    let folder = layout("good");
    let path = folder.path();
    let manifest = change(path, |_, config| config["rootfs"]["diff_ids"][1] = config["rootfs"]["diff_ids"][0].clone());
    let config = blob(path, &manifest["config"]);
    let short = |digest: &Value| digest.as_str().unwrap()[..19].to_owned();
    let good_config = blob(good.path(), &blob(good.path(), &top(good.path())["manifests"][0])["config"]);
    let says = format!(
        "its tar has the digest {}, but the image configuration says {}\n  help: ",
        short(&good_config["rootfs"]["diff_ids"][1]),
        short(&config["rootfs"]["diff_ids"][1]),
    );
    let copy = skopeo_folder(path, &top(path)["manifests"][0]);
    let (remote, _) = registry(path.to_owned());
    let archive = docker_archive(path, false);
    for (reference, input) in [
        (format!("oci:{}", path.display()), None),
        (format!("dir:{}", copy.path().display()), None),
        (remote, None),
        ("-".to_owned(), Some(&*archive)),
    ] {
        for output in [run(&["check", &reference], input), read(&reference, input)] {
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{reference}: {error}");
            let name = if reference == "-" { "standard input" } else { &reference };
            assert!(error.starts_with(&format!("error: {name}: layer 2 of ")) && error.contains(&says), "{error}");
        }
    }
}

#[test]
fn the_report_says_what_was_read_and_verified() {
    let home = tempfile::tempdir().unwrap();
    let home = home.path().display().to_string();
    let folder = layout("good");
    let reference = format!("oci:{}", folder.path().display());
    for is_cached in [false, true] {
        let output = run_with(&[("HOME", &home)], &["check", "--format", "json", &reference], None);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        let layers = report["image"]["layers"].as_array().unwrap();
        assert_eq!(layers.len(), 3);
        for layer in layers {
            let read = if is_cached { json!(0) } else { layer["size"].clone() };
            assert_eq!(
                (&layer["read"], &layer["cached"], &layer["diff_id_verified"]),
                (&read, &json!(is_cached), &json!(true))
            );
        }
    }
}

#[test]
fn errors_name_the_image_and_the_file_inside_it() {
    let damaged = layout("good");
    fs::write(damaged.path().join("index.json"), "{").unwrap();
    let flipped = layout("good");
    let manifest = blob(flipped.path(), &top(flipped.path())["manifests"][0]);
    let layer = blob_file(flipped.path(), &manifest["layers"][0]);
    let mut bytes = fs::read(&layer).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&layer, bytes).unwrap();
    let references = [damaged.path(), flipped.path()].map(|path| format!("oci:{}", path.display()));
    let output = run(&["check", &references[0], &references[1]], None);
    let error = stderr(&output);
    let path = damaged.path().display();
    assert!(
        error.contains(&format!("error: oci:{path}: index.json of {path} is not JSON of the expected form: ")),
        "{error}"
    );
    assert!(error.contains(&format!("error: {}: layer 1 of ", references[1])), "{error}");
}
