//! Partial reads through a SOCI index: trust in the index, and the effect of a missing or damaged one.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::partial::{Told, WORLDS, noise, told};
use crate::registry::{blob, read, registry, write};
use crate::support::{layout, run, stderr};
use crate::ztoc::convert;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Version {
    /// The image's manifest names the index.
    Second,
    /// The registry lists the index.
    FirstListed,
    /// The index is under the tag that replaces the list.
    FirstTagged,
}

/// A small test image whose layers have zTOCs, with `more` in the last layer, and its index.
fn converted(name: &str, version: Version, span: usize, more: Option<&[u8]>) -> (tempfile::TempDir, Value) {
    let folder = layout(name);
    let path = folder.path();
    let mut index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let mut manifest: Value = serde_json::from_slice(&read(path, &index["manifests"][0]["digest"])).unwrap();
    let mut config: Value = serde_json::from_slice(&read(path, &manifest["config"]["digest"])).unwrap();
    let layers = manifest["layers"].as_array_mut().unwrap();
    let last = layers.len() - 1;
    let mut tables = Vec::new();
    for (number, descriptor) in layers.iter_mut().enumerate() {
        let mut tar = Vec::new();
        flate2::read::MultiGzDecoder::new(&*read(path, &descriptor["digest"])).read_to_end(&mut tar).unwrap();
        if let Some(more) = more.filter(|_| number == last) {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_ustar();
            header.set_size(more.len() as u64);
            header.set_mode(0o644);
            builder.append_data(&mut header, "srv/more", more).unwrap();
            tar = [builder.into_inner().unwrap().strip_suffix(&[0; 1024]).unwrap(), &tar].concat();
        }
        let (layer, ztoc) = convert(&tar, span);
        write(path, &layer, descriptor);
        config["rootfs"]["diff_ids"][number] = crate::seekable::digest(&tar).into();
        let annotations = json!({"com.amazon.soci.image-layer-digest": descriptor["digest"]});
        // A prefetch artifact has the same annotation.
        let mut ahead =
            json!({"mediaType": "application/vnd.amazon.soci.prefetch.v1+json", "annotations": annotations});
        write(path, b"{}", &mut ahead);
        let mut table = json!({"mediaType": "application/octet-stream", "annotations": annotations});
        write(path, &ztoc.bytes(), &mut table);
        tables.extend([ahead, table]);
    }
    write(path, config.to_string().as_bytes(), &mut manifest["config"]);
    let kind = if version == Version::Second { "v2" } else { "v1" };
    let kind = format!("application/vnd.amazon.soci.index.{kind}+json");
    let mut empty = json!({"mediaType": kind});
    write(path, b"{}", &mut empty);
    let mut soci = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": empty, "layers": tables});
    let mut soci_descriptor = json!({"mediaType": MANIFEST, "artifactType": kind});
    if version == Version::Second {
        write(path, soci.to_string().as_bytes(), &mut soci_descriptor);
        manifest["annotations"] = json!({"com.amazon.soci.index-digest": soci_descriptor["digest"]});
        index["manifests"].as_array_mut().unwrap().push(soci_descriptor.clone());
    }
    write(path, manifest.to_string().as_bytes(), &mut index["manifests"][0]);
    if version != Version::Second {
        let subject = &index["manifests"][0];
        soci["subject"] = json!({"mediaType": MANIFEST, "digest": subject["digest"], "size": subject["size"]});
        write(path, soci.to_string().as_bytes(), &mut soci_descriptor);
        let other = json!({"mediaType": MANIFEST, "artifactType": "a/b", "digest": subject["digest"], "size": 2});
        let list = json!({"schemaVersion": 2, "manifests": [other, soci_descriptor]}).to_string();
        fs::write(path.join(if version == Version::FirstListed { "referrers" } else { "tag" }), list).unwrap();
    }
    fs::write(path.join("index.json"), index.to_string()).unwrap();
    (folder, soci_descriptor)
}

fn tell(references: &[String], options: &[&str]) -> Vec<Told> {
    let words = ["check", "--format", "json"].into_iter().chain(options.iter().copied());
    let output = run(&words.chain(references.iter().map(String::as_str)).collect::<Vec<_>>(), None);
    let lines = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let told: Vec<_> = lines.map(|line| told(&serde_json::from_slice(line).unwrap())).collect();
    assert_eq!(told.len(), references.len(), "{}", stderr(&output));
    told
}

fn one(reference: &str, options: &[&str]) -> Told {
    tell(&[reference.to_owned()], options).remove(0)
}

#[test]
fn every_world_gives_the_same_results() {
    let folders: Vec<_> = WORLDS.iter().map(|world| converted(world, Version::Second, 5000, None).0).collect();
    let references: Vec<_> = folders.iter().map(|folder| format!("oci:{}", folder.path().display())).collect();
    let (parts, wholes) = (tell(&references, &["--in-part"]), tell(&references, &[]));
    for (world, (part, whole)) in WORLDS.iter().zip(parts.iter().zip(&wholes)) {
        assert_eq!(part.0, whole.0, "{world}");
        let notes = part.2.iter().filter(|note| note.ends_with(" read (SOCI)")).count();
        assert_eq!(notes, part.1.len(), "{world}: {:?}", part.2);
        assert!(!part.2.iter().chain(&whole.2).any(|note| note.contains("skipped")), "{:?}", part.2);
        assert!(whole.1.iter().all(|(read, size)| read == size));
    }
}

#[test]
fn a_registry_sends_only_the_requested_ranges() {
    for version in [Version::Second, Version::FirstListed, Version::FirstTagged] {
        let (folder, index) = converted("good", version, 1 << 20, Some(&noise()));
        let (image, sent) = registry(folder.path().to_owned(), true);
        let whole = one(&image, &["--unverified"]);
        let size: u64 = whole.1.iter().map(|(_, size)| size).sum();
        assert!(sent.swap(0, Ordering::SeqCst) >= size);
        let options: &[&str] = if version == Version::Second { &["--in-part"] } else { &["--in-part", "--unverified"] };
        let part = one(&image, options);
        let bytes = sent.swap(0, Ordering::SeqCst);
        assert_eq!(part.0, whole.0);
        // Including the tables.
        assert!(bytes < size / 3, "{bytes} of {size}");
        if version == Version::Second {
            continue;
        }
        let unverified = part.2.iter().filter(|note| note.contains(" read (SOCI, unverified)")).count();
        assert_eq!(unverified, part.1.len(), "{:?}", part.2);
        let said = format!("by the SOCI index {} are not verified", index["digest"].as_str().unwrap());
        assert!(part.2.iter().any(|note| note.contains(&said)), "{:?}", part.2);
        // Without --unverified, the index is not used.
        let careful = one(&image, &["--in-part"]);
        assert_eq!(careful.0, whole.0);
        assert!(careful.1.iter().all(|(read, size)| read == size) && careful.2.is_empty(), "{careful:?}");
    }
}

#[test]
fn a_missing_or_wrong_index_is_reported_once() {
    let (folder, index) = converted("good", Version::Second, 5000, None);
    let reference = format!("oci:{}", folder.path().display());
    let place = blob(folder.path(), index["digest"].as_str().unwrap());
    let kept = fs::read(&place).unwrap();
    fs::remove_file(&place).unwrap();
    let (image, _) = registry(folder.path().to_owned(), true);
    for reference in [&reference, &image] {
        let part = one(reference, &["--in-part"]);
        assert!(part.1.iter().all(|(read, size)| read == size));
        assert_eq!(part.2.len(), 1, "{:?}", part.2);
        assert!(part.2[0].starts_with("the SOCI index cannot be used: "), "{:?}", part.2);
    }
    let mut damaged = kept;
    damaged[20] ^= 1;
    fs::write(&place, damaged).unwrap();
    fails(&reference, "is corrupt: its bytes have the digest sha256:");
    // Of another type, or of another image.
    for (version, key, value, why) in [
        (Version::Second, "/config/mediaType", "a/b", "has the type a/b"),
        (Version::FirstTagged, "/subject/digest", index["digest"].as_str().unwrap(), "belongs to another image"),
    ] {
        let (folder, index) = converted("good", version, 5000, None);
        let mut other: Value = serde_json::from_slice(&read(folder.path(), &index["digest"])).unwrap();
        *other.pointer_mut(key).unwrap() = value.into();
        rename(folder.path(), &index, &other, version);
        let (image, _) = registry(folder.path().to_owned(), true);
        let part = one(&image, &["--in-part", "--unverified"]);
        assert!(part.1.iter().all(|(read, size)| read == size));
        assert!(part.2.len() == 1 && part.2[0].contains(why), "{:?}", part.2);
    }
}

#[test]
fn a_registry_without_ranges_is_read_whole_with_a_note() {
    let (folder, _) = converted("good", Version::Second, 5000, None);
    let (image, _) = registry(folder.path().to_owned(), false);
    let (_, layers, notes) = one(&image, &["--in-part"]);
    assert!(layers.iter().all(|(read, size)| read == size), "{layers:?}");
    let why = "read whole: its SOCI table cannot be used: its source only provides whole blobs";
    assert_eq!(notes.iter().filter(|note| note.contains(why)).count(), layers.len(), "{notes:?}");
}

/// Replaces one index with another.
fn rename(path: &Path, index: &Value, other: &Value, version: Version) {
    let mut descriptor = index.clone();
    write(path, other.to_string().as_bytes(), &mut descriptor);
    let (old, new) = (index["digest"].as_str().unwrap(), descriptor["digest"].as_str().unwrap());
    if version != Version::Second {
        let list = fs::read_to_string(path.join("tag")).unwrap();
        fs::write(path.join("tag"), list.replace(old, new)).unwrap();
        return;
    }
    let mut top: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let manifest = String::from_utf8(read(path, &top["manifests"][0]["digest"])).unwrap();
    write(path, manifest.replace(old, new).as_bytes(), &mut top["manifests"][0]);
    fs::write(path.join("index.json"), top.to_string()).unwrap();
}

fn fails(reference: &str, why: &str) {
    let output = run(&["check", "--in-part", reference], None);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains(why), "{}", stderr(&output));
    assert_eq!(output.stdout, b"", "no verdict");
}

#[test]
fn a_missing_or_large_ztoc_is_skipped_and_a_damaged_one_is_fatal() {
    let (folder, index) = converted("good", Version::Second, 5000, None);
    let reference = format!("oci:{}", folder.path().display());
    let part = one(&reference, &["--in-part", "--limit", "toc=100000"]);
    let why = "its SOCI table cannot be used: it has ";
    let large = part.2.iter().filter(|note| note.contains(why) && note.contains("raise it with --limit toc=N")).count();
    let whole = part.1.iter().filter(|(read, size)| read == size).count();
    assert!(large > 0 && large == whole, "{part:?}");
    let soci: Value = serde_json::from_slice(&read(folder.path(), &index["digest"])).unwrap();
    // Every second entry is a prefetch artifact.
    let place = blob(folder.path(), soci["layers"][1]["digest"].as_str().unwrap());
    let mut bytes = fs::read(&place).unwrap();
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    fs::write(&place, bytes).unwrap();
    fails(&reference, "(sha256:");
    fails(&reference, "reading its SOCI table: blob sha256:");
    fs::remove_file(&place).unwrap();
    let part = one(&reference, &["--in-part"]);
    assert!(
        part.2.iter().any(|note| note.contains("layer 1: read whole: its SOCI table cannot be fetched: ")),
        "{:?}",
        part.2
    );
}

#[test]
fn a_damaged_span_ends_the_check() {
    let (folder, _) = converted("good", Version::Second, 5000, None);
    let path = folder.path();
    let index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let manifest: Value = serde_json::from_slice(&read(path, &index["manifests"][0]["digest"])).unwrap();
    let place = blob(path, manifest["layers"][2]["digest"].as_str().unwrap());
    let mut bytes = fs::read(&place).unwrap();
    bytes[1000] ^= 1;
    fs::write(&place, bytes).unwrap();
    fails(&format!("oci:{}", path.display()), "its span has the digest sha256:");
}
