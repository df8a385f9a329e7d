//! Indexes: multi-platform images, nested indexes, attestations, names.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::media::skopeo_folder;
use crate::support::{layout, run, stderr};

/// Stores a document as a blob and returns its descriptor.
pub(crate) fn store(layout: &Path, document: &Value, media_type: &str) -> Value {
    let bytes = document.to_string().into_bytes();
    let mut hasher = ncclcheck::model::Hasher::sha256();
    hasher.update(&bytes);
    let digest = hasher.finish();
    fs::write(layout.join("blobs/sha256").join(digest.hex()), &bytes).unwrap();
    json!({"mediaType": media_type, "digest": digest.as_str(), "size": bytes.len()})
}

pub(crate) fn blob(layout: &Path, descriptor: &Value) -> Value {
    let path = layout.join("blobs").join(descriptor["digest"].as_str().unwrap().replace(':', "/"));
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub(crate) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// A layout with a nested index (the image `good` for amd64 and arm64, and an attestation) and another image beside it.
pub(crate) fn several() -> tempfile::TempDir {
    let folder = layout("good");
    let path = folder.path();
    let index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let manifest = blob(path, &index["manifests"][0]);
    let described = |architecture: &str| {
        let mut config = blob(path, &manifest["config"]);
        config["architecture"] = json!(architecture);
        let mut manifest = manifest.clone();
        manifest["config"] = store(path, &config, "application/vnd.oci.image.config.v1+json");
        let mut descriptor = store(path, &manifest, MANIFEST);
        descriptor["platform"] = json!({"os": "linux", "architecture": architecture});
        descriptor
    };
    let mut attestation = described("unknown");
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let inner = json!({"schemaVersion": 2, "manifests": [described("arm64"), described("amd64"), attestation]});
    let mut inner = store(path, &inner, INDEX);
    inner["annotations"] = json!({"org.opencontainers.image.ref.name": "localhost/team/train:1"});
    let mut other = described("riscv64");
    other["annotations"] = json!({"org.opencontainers.image.ref.name": "other"});
    let top = json!({"schemaVersion": 2, "manifests": [inner, other]});
    fs::write(path.join("index.json"), top.to_string()).unwrap();
    folder
}

/// The platforms judged for a layout, or the error message.
fn judged(layout: &Path, selector: &str, options: &[&str]) -> Result<Vec<String>, String> {
    judged_of(&format!("oci:{}{selector}", layout.display()), options)
}

/// Like [`judged`], for any reference.
fn judged_of(reference: &str, options: &[&str]) -> Result<Vec<String>, String> {
    let arguments: Vec<&str> =
        ["check", "--format", "json"].iter().chain(options).copied().chain([reference]).collect();
    let output = run(&arguments, None);
    if output.status.code() == Some(2) {
        return Err(stderr(&output));
    }
    let lines = String::from_utf8(output.stdout).unwrap();
    Ok(lines
        .lines()
        .map(|line| {
            let report: Value = serde_json::from_str(line).unwrap();
            let is_alone = reference.ends_with(":other") || reference.ends_with(":twin") || reference.contains('@');
            assert!(report["image"]["notes"].to_string().contains("attestation manifest") || is_alone);
            report["image"]["platform"].as_str().unwrap().to_owned()
        })
        .collect())
}

#[test]
fn names_of_other_systems_mean_the_same_platform() {
    let folder = several();
    for (name, platform) in [("Linux/AMD64", "linux/amd64"), ("linux/aarch64", "linux/arm64")] {
        assert_eq!(judged(folder.path(), "", &["--platform", name]).unwrap(), [platform], "{name}");
    }
}

#[test]
fn a_platform_can_be_chosen() {
    let folder = several();
    let path = folder.path();
    assert_eq!(judged(path, ":1", &["--platform", "linux/amd64"]).unwrap(), ["linux/amd64"]);
    assert_eq!(judged(path, ":1", &["--platform", "linux/arm64/v8"]).unwrap(), ["linux/arm64"]);
    assert_eq!(
        judged(path, ":localhost/team/train:1", &["--platform", "all"]).unwrap(),
        ["linux/arm64", "linux/amd64"]
    );
    assert_eq!(judged(path, ":other", &[]).unwrap(), ["linux/riscv64"], "the only image of its name");
    let error = judged(path, ":1", &["--platform", "linux/s390x"]).unwrap_err();
    assert!(error.contains("no linux/s390x image; available: linux/arm64, linux/amd64"), "{error}");
    let error = judged(path, ":lost", &[]).unwrap_err();
    assert!(error.contains("no image ':lost' in the index; available: localhost/team/train:1, other"), "{error}");
}

#[test]
fn without_a_name_every_image_is_a_candidate() {
    let folder = several();
    let platforms = judged(folder.path(), "", &["--platform", "all"]).unwrap();
    assert_eq!(platforms, ["linux/arm64", "linux/amd64", "linux/riscv64"]);
    let error = judged(folder.path(), "", &["--platform", "linux/s390x"]).unwrap_err();
    assert!(error.contains("linux/riscv64"), "{error}");
}

/// Adds another image for riscv64, with different bytes and these annotations.
fn add_twin(layout: &Path, annotations: &Value) {
    let mut top: Value = serde_json::from_slice(&fs::read(layout.join("index.json")).unwrap()).unwrap();
    let mut twin = blob(layout, &top["manifests"][1]);
    let mut config = blob(layout, &twin["config"]);
    config["config"]["Labels"] = json!({"team": "other"});
    twin["config"] = store(layout, &config, "application/vnd.oci.image.config.v1+json");
    let mut twin = store(layout, &twin, MANIFEST);
    twin["annotations"] = annotations.clone();
    top["manifests"].as_array_mut().unwrap().push(twin);
    fs::write(layout.join("index.json"), top.to_string()).unwrap();
}

#[test]
fn one_of_several_names_must_be_chosen() {
    let folder = several();
    let path = folder.path();
    add_twin(path, &json!({"org.opencontainers.image.ref.name": "twin"}));
    let error = judged(path, "", &["--platform", "linux/riscv64"]).unwrap_err();
    assert!(
        error.contains("several images match:\n  oci:") && error.contains("\n  help: choose one of these"),
        "{error}"
    );
    assert!(error.contains(":other  linux/riscv64") && error.contains(":twin  linux/riscv64"), "{error}");
    for name in [":other", ":twin"] {
        assert_eq!(judged(path, name, &["--platform", "linux/riscv64"]).unwrap(), ["linux/riscv64"], "{name}");
    }
}

#[test]
fn two_images_for_one_platform_are_ambiguous() {
    let folder = several();
    let path = folder.path();
    add_twin(path, &json!({}));
    let error = judged(path, "", &["--platform", "linux/riscv64"]).unwrap_err();
    assert!(error.contains("several images match") && error.contains(":other  linux"), "{error}");
    let lines: Vec<_> = error.lines().filter_map(|line| line.trim().strip_prefix("oci:")).collect();
    assert_eq!(lines.len(), 2, "{error}");
    for line in lines {
        let reference = format!("oci:{}", line.split(' ').next().unwrap());
        assert_eq!(judged_of(&reference, &["--platform", "linux/riscv64"]).unwrap(), ["linux/riscv64"]);
    }
}

#[test]
fn an_index_that_skopeo_copied_to_a_folder() {
    let layout = several();
    let index: Value = serde_json::from_slice(&fs::read(layout.path().join("index.json")).unwrap()).unwrap();
    let folder = skopeo_folder(layout.path(), &index["manifests"][0]);
    let reference = format!("dir:{}", folder.path().display());
    assert_eq!(judged_of(&reference, &["--platform", "linux/arm64"]).unwrap(), ["linux/arm64"]);
    assert_eq!(judged_of(&reference, &["--platform", "all"]).unwrap(), ["linux/arm64", "linux/amd64"]);
    // Without --all, skopeo may copy an index with only one of its images.
    let inner = blob(layout.path(), &index["manifests"][0]);
    let arm64 = inner["manifests"][0]["digest"].as_str().unwrap().replacen("sha256:", "", 1);
    let lost = folder.path().join(format!("{arm64}.manifest.json"));
    fs::remove_file(&lost).unwrap();
    assert_eq!(judged_of(&reference, &["--platform", "linux/amd64"]).unwrap(), ["linux/amd64"]);
    let error = judged_of(&reference, &["--platform", "linux/arm64"]).unwrap_err();
    assert!(error.contains(&format!("{} is missing", lost.display())), "{error}");
    assert!(error.contains("help: copy every image of the index: skopeo copy --all"), "{error}");
}
