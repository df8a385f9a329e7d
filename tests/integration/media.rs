//! The same results through every medium that needs no service. Registries and engines are in
//! `fixtures/real/transports`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{check, layout, program, world};

/// The part of a report that must not depend on the medium: verdict, facts without digests, judgements.
fn comparable((report, exit): (Value, i32)) -> Value {
    let mut report = report;
    for fact in report["facts"].as_object_mut().unwrap().values_mut() {
        for site in fact.get_mut("at").and_then(Value::as_array_mut).into_iter().flatten() {
            site.as_object_mut().unwrap().remove("digest");
        }
    }
    let judgements: Vec<Value> = report["judgements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|judgement| json!([judgement["rule"], judgement["outcome"], judgement["message"]]))
        .collect();
    json!([exit, report["verdict"], report["facts"], judgements])
}

fn json_of(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn blob(layout: &Path, digest: &Value) -> std::path::PathBuf {
    layout.join("blobs").join(digest.as_str().unwrap().replace(':', "/"))
}

/// An archive as `docker save` of an old or a new version writes it: the members and their order.
pub(crate) fn docker_archive(layout: &Path, old: bool) -> Vec<u8> {
    let index = json_of(&layout.join("index.json"));
    let manifest = json_of(&blob(layout, &index["manifests"][0]["digest"]));
    let config = fs::read(blob(layout, &manifest["config"]["digest"])).unwrap();
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    let mut names = Vec::new();
    for (number, layer) in manifest["layers"].as_array().unwrap().iter().enumerate() {
        let stored = fs::read(blob(layout, &layer["digest"])).unwrap();
        let name = if old {
            format!("{number:064}/layer.tar")
        } else {
            layer["digest"].as_str().unwrap().replacen("sha256:", "blobs/sha256/", 1)
        };
        let bytes = if old { gunzip(&stored) } else { stored };
        members.push((name.clone(), bytes));
        names.push(name);
    }
    // Docker 20.10 writes layers unordered, before the configuration, and the manifest last.
    members.reverse();
    members.push(("config.json".to_owned(), config));
    let manifest = json!([{"Config": "config.json", "RepoTags": ["test:1"], "Layers": names}]);
    members.push(("manifest.json".to_owned(), manifest.to_string().into_bytes()));
    let mut builder = tar::Builder::new(Vec::new());
    for (name, bytes) in members {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, name, bytes.as_slice()).unwrap();
    }
    builder.into_inner().unwrap()
}

/// The folder that `skopeo copy --all oci:LAYOUT dir:` writes for the image or index of this descriptor.
pub(crate) fn skopeo_folder(layout: &Path, top: &Value) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let hex = |digest: &Value| digest.as_str().unwrap().replacen("sha256:", "", 1);
    let copy = |digest: &Value, name: &str| fs::copy(blob(layout, digest), folder.path().join(name)).unwrap();
    let copy_blobs = |manifest: &Value| {
        let manifest = json_of(&blob(layout, manifest));
        for descriptor in manifest["layers"].as_array().unwrap().iter().chain([&manifest["config"]]) {
            copy(&descriptor["digest"], &hex(&descriptor["digest"]));
        }
    };
    fs::write(folder.path().join("version"), "Directory Transport Version: 1.1\n").unwrap();
    copy(&top["digest"], "manifest.json");
    match json_of(&blob(layout, &top["digest"]))["manifests"].as_array() {
        None => copy_blobs(&top["digest"]),
        Some(manifests) => manifests.iter().for_each(|manifest| {
            copy(&manifest["digest"], &format!("{}.manifest.json", hex(&manifest["digest"])));
            copy_blobs(&manifest["digest"]);
        }),
    }
    fs::write(folder.path().join("signature-1"), "not read").unwrap();
    folder
}

pub(crate) fn gunzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    std::io::copy(&mut flate2::read::MultiGzDecoder::new(bytes), &mut out).unwrap();
    out
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// What a compressor of this machine makes of some bytes.
fn packed(program: &str, bytes: &[u8]) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("archive");
    fs::write(&path, bytes).unwrap();
    Command::new(program).args(["-1", "-c"]).arg(path).output().unwrap().stdout
}

#[test]
fn pipes_are_read_as_streams() {
    let layout = layout("good");
    let archive = docker_archive(layout.path(), true);
    let expected = comparable(check(&format!("oci:{}", layout.path().display()), None));
    for reference in ["docker-archive:/dev/stdin", "/dev/stdin", "docker-archive:/dev/fd/0:test:1"] {
        assert_eq!(comparable(check(reference, Some(&archive))), expected, "{reference}");
    }
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let path = folder.path().join("a.tar");
    fs::write(&path, &archive).unwrap();
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    for reference in [fifo.display().to_string(), format!("docker-archive:{}", fifo.display())] {
        let mut writer = Command::new("cp").args([&path, &fifo]).spawn().unwrap();
        assert_eq!(comparable(check(&reference, None)), expected, "{reference}");
        assert!(writer.wait().unwrap().success());
    }
    let script = format!("{} check --quiet <(cat {})", program().display(), path.display());
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let script = format!("{} check <(true)", program().display());
    let output = Command::new("bash").args(["-c", &script]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.ends_with(" is empty\n"), "{said}");
}

/// Checks an image through every medium.
fn check_through_media(name: &str) {
    let layout = layout(name);
    let expected = comparable(check(&format!("oci:{}", layout.path().display()), None));
    let archive = world(name).display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let mut references = BTreeMap::new();
    let copy = skopeo_folder(layout.path(), &json_of(&layout.path().join("index.json"))["manifests"][0]);
    references.insert("dir", format!("dir:{}", copy.path().display()));
    references.insert("bare path of a dir", copy.path().display().to_string());
    references.insert("oci-archive", format!("oci-archive:{archive}"));
    references.insert("bare path", archive.clone());
    for (kind, bytes) in [
        ("docker-archive, old", docker_archive(layout.path(), true)),
        ("docker-archive, new", docker_archive(layout.path(), false)),
        ("docker-archive, compressed", gzip(&docker_archive(layout.path(), true))),
        ("docker-archive, xz", packed("xz", &docker_archive(layout.path(), true))),
        ("docker-archive, bzip2", packed("bzip2", &docker_archive(layout.path(), false))),
        ("oci-archive, xz", packed("xz", &fs::read(world(name)).unwrap())),
    ] {
        let path = folder.path().join(kind.replace(", ", "-"));
        fs::write(&path, &bytes).unwrap();
        references.insert(kind, format!("docker-archive:{}", path.display()));
        let from_stdin = comparable(check("-", Some(&bytes)));
        assert_eq!(from_stdin, expected, "{name} through standard input, {kind}");
    }
    for (kind, reference) in references {
        assert_eq!(comparable(check(&reference, None)), expected, "{name} through {kind}");
    }
    let from_stdin = comparable(check("-", Some(&fs::read(world(name)).unwrap())));
    assert_eq!(from_stdin, expected, "{name} through standard input");
}

#[test]
fn every_medium_gives_the_same_results() {
    check_through_media("good");
}

#[test]
fn every_medium_gives_the_same_results_without_nccl() {
    check_through_media("no-nccl");
}

#[test]
fn every_medium_gives_the_same_results_with_two_nccl() {
    check_through_media("two-nccl");
}

#[test]
fn an_image_in_an_archive_is_chosen_by_name_or_position() {
    let layout = layout("good");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.tar");
    fs::write(&path, docker_archive(layout.path(), true)).unwrap();
    for selector in ["", ":test:1", ":@0", ":docker.io/test:1"] {
        let (report, _) = check(&format!("docker-archive:{}{selector}", path.display()), None);
        assert_eq!(report["verdict"], "pass", "{selector}");
    }
}

#[test]
fn an_unpacked_root_gives_the_results_of_its_image() {
    let layout = layout("good");
    let root = tempfile::tempdir().unwrap();
    let index = json_of(&layout.path().join("index.json"));
    let manifest = json_of(&blob(layout.path(), &index["manifests"][0]["digest"]));
    for layer in manifest["layers"].as_array().unwrap() {
        let tar = gunzip(&fs::read(blob(layout.path(), &layer["digest"])).unwrap());
        tar::Archive::new(tar.as_slice()).unpack(root.path()).unwrap();
    }
    let (image, _) = check(&format!("oci:{}", layout.path().display()), None);
    let (unpacked, _) = check(&format!("root:{}", root.path().display()), None);
    for (name, fact) in image["facts"].as_object().unwrap() {
        // Facts from the configuration are unknown without one.
        if unpacked["facts"][name]["state"] != "unknown" && !name.starts_with("start.") {
            assert_eq!(unpacked["facts"][name]["value"], fact["value"], "{name}");
        }
    }
    assert_eq!(unpacked["facts"]["nccl.loaded.version"]["value"], "2.27.5");
    assert_eq!(unpacked["facts"]["image.env"]["state"], "unknown");
}

/// Facts that are decided by the runtime of an image without layers, or by places in it.
const OF_THE_RUNTIME: [&str; 8] = [
    "env.variables",
    "image.env",
    "image.labels",
    "image.other_env",
    "image.user",
    "image.working_directory",
    "nccl.conf_files",
    "start.user",
];

#[test]
fn squashfs_images_give_the_results_of_their_image() {
    let values = |reference: &str| {
        let (report, exit) = check(reference, None);
        let facts = report["facts"].as_object().unwrap().iter();
        let facts = facts.filter(|(name, _)| !OF_THE_RUNTIME.contains(&&***name));
        let facts: BTreeMap<_, _> =
            facts.map(|(name, fact)| (name.clone(), json!([fact["state"], fact["value"], fact["gap"]]))).collect();
        let outcomes = report["judgements"].as_array().unwrap().iter();
        let outcomes: Vec<_> = outcomes.map(|judgement| json!([judgement["rule"], judgement["outcome"]])).collect();
        (json!([exit, report["verdict"], facts, outcomes]), report)
    };
    let (expected, _) = values(&world("good").display().to_string());
    for (file, prefix, library_path) in
        [("good.sif", "sif:", Some("/.singularity.d/libs")), ("good.sqsh", "sqsh:", None)]
    {
        let path = format!("{}/fixtures/squashfs/{file}", env!("CARGO_MANIFEST_DIR"));
        let (found, report) = values(&format!("{prefix}{path}"));
        assert_eq!(found, expected, "{file}");
        assert_eq!(values(&path).0, expected, "{file} without its prefix");
        let env = &report["facts"]["image.env"]["value"];
        assert_eq!(env["NVIDIA_REQUIRE_CUDA"], "cuda>=12.8", "{file}");
        assert_eq!(env["LD_LIBRARY_PATH"].as_str(), library_path, "{file}");
        assert_eq!(report["facts"]["image.user"]["state"], "unknown", "{file}");
        assert_eq!(report["image"]["platform"], "linux/amd64", "{file}");
    }
}

#[test]
fn a_store_gives_the_results_of_its_image() {
    let layout = layout("good");
    let expected = comparable(check(&format!("oci:{}", layout.path().display()), None));
    let store = tempfile::tempdir().unwrap();
    let index = json_of(&layout.path().join("index.json"));
    let manifest = json_of(&blob(layout.path(), &index["manifests"][0]["digest"]));
    let config = json_of(&blob(layout.path(), &manifest["config"]["digest"]));
    let mut layers = Vec::new();
    let mut parent = Value::Null;
    for (layer, diff_id) in
        manifest["layers"].as_array().unwrap().iter().zip(config["rootfs"]["diff_ids"].as_array().unwrap())
    {
        let id = diff_id.as_str().unwrap().replace("sha256:", "");
        let tar = gunzip(&fs::read(blob(layout.path(), &layer["digest"])).unwrap());
        tar::Archive::new(tar.as_slice()).unpack(store.path().join("overlay").join(&id).join("diff")).unwrap();
        layers.push(json!({"id": id, "parent": parent, "diff-digest": diff_id}));
        parent = json!(id);
    }
    let id = manifest["config"]["digest"].as_str().unwrap().replace("sha256:", "");
    let images = json!([{"id": id, "layer": parent, "names": ["localhost/good:1"]}]);
    let documents = store.path().join("overlay-images");
    fs::create_dir_all(documents.join(&id)).unwrap();
    fs::create_dir(store.path().join("overlay-layers")).unwrap();
    fs::write(documents.join("images.json"), images.to_string()).unwrap();
    fs::write(store.path().join("overlay-layers/layers.json"), json!(layers).to_string()).unwrap();
    fs::copy(blob(layout.path(), &index["manifests"][0]["digest"]), documents.join(&id).join("manifest")).unwrap();
    fs::copy(blob(layout.path(), &manifest["config"]["digest"]), documents.join(&id).join("=YQ==")).unwrap();
    let reference = format!("containers-storage:[overlay@{}]good:1", store.path().display());
    let found = comparable(check(&reference, None));
    assert_eq!(found, expected);
}
