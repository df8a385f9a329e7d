//! Partial reads of layers: the results equal those of whole reads, through every medium that supports ranges.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use crate::registry::{read, registry, write};
use crate::seekable::{Form, convert};
use crate::support::{assert_judged, check, layout, run, stderr, world};

pub(crate) const WORLDS: [&str; 14] = [
    "cpu-only",
    "cudart-mix",
    "debug-on",
    "env-disabled",
    "env-unknown",
    "good",
    "gpu-hidden",
    "no-nccl",
    "no-provider",
    "no-torch",
    "no-verbs",
    "shadowed-nccl",
    "two-nccl",
    "use-nccl-off",
];

/// A small test image in another format; `more` is added to its last layer.
fn converted(name: &str, form: Form, chunk: usize, more: Option<&[u8]>) -> tempfile::TempDir {
    with_tables(name, form, chunk, more, &|_| {})
}

/// The same, where `edit` changes each layer's table.
fn with_tables(
    name: &str,
    form: Form,
    chunk: usize,
    more: Option<&[u8]>,
    edit: &dyn Fn(&mut Value),
) -> tempfile::TempDir {
    let folder = layout(name);
    let path = folder.path();
    let mut index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let mut manifest: Value = serde_json::from_slice(&read(path, &index["manifests"][0]["digest"])).unwrap();
    let mut config: Value = serde_json::from_slice(&read(path, &manifest["config"]["digest"])).unwrap();
    let layers = manifest["layers"].as_array_mut().unwrap();
    let last = layers.len() - 1;
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
        let layer = convert(&tar, form, chunk, edit);
        let media_type = if form == Form::EStargz { "gzip" } else { "zstd" };
        descriptor["mediaType"] = format!("application/vnd.oci.image.layer.v1.tar+{media_type}").into();
        descriptor["annotations"] = json!(layer.annotations);
        write(path, &layer.blob, descriptor);
        config["rootfs"]["diff_ids"][number] = layer.diff_id.into();
    }
    write(path, config.to_string().as_bytes(), &mut manifest["config"]);
    write(path, manifest.to_string().as_bytes(), &mut index["manifests"][0]);
    fs::write(path.join("index.json"), index.to_string()).unwrap();
    folder
}

/// Verdict, facts and judgements without those about tables of contents, how much of each layer was read, and notes.
pub(crate) type Told = (Value, Vec<(u64, u64)>, Vec<String>);

pub(crate) fn told(report: &Value) -> Told {
    assert_judged(report);
    let mut facts = report["facts"].as_object().unwrap().clone();
    facts.remove("image.tables_of_contents").unwrap();
    let judgements = report["judgements"].as_array().unwrap().iter();
    let judgements: Vec<_> =
        judgements.filter(|judgement| !judgement["rule"].as_str().unwrap().starts_with("image/")).collect();
    let layers = report["image"]["layers"].as_array().unwrap();
    assert!(!layers.is_empty());
    let number = |layer: &Value, key| layer[key].as_u64().unwrap();
    let notes = report["image"]["notes"].as_array().unwrap();
    (
        json!([report["verdict"], facts, judgements]),
        layers.iter().map(|layer| (number(layer, "read"), number(layer, "size"))).collect(),
        notes.iter().map(|note| note.as_str().unwrap().to_owned()).collect(),
    )
}

fn tell(references: &[String], in_part: bool) -> Vec<Told> {
    let mut words = vec!["check", "--format", "json"];
    words.extend(in_part.then_some("--in-part"));
    words.extend(references.iter().map(String::as_str));
    let output = run(&words, None);
    let lines: Vec<Value> = output
        .stdout
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    assert_eq!(lines.len(), references.len(), "{}", stderr(&output));
    lines.iter().map(told).collect()
}

fn every_world_says_the_same(form: Form, name: &str) {
    let folders: Vec<_> = WORLDS.iter().map(|world| converted(world, form, 4096, None)).collect();
    let references: Vec<_> = folders.iter().map(|folder| format!("oci:{}", folder.path().display())).collect();
    for (world, (part, whole)) in WORLDS.iter().zip(tell(&references, true).iter().zip(tell(&references, false))) {
        assert_eq!(part.0, whole.0, "{world}");
        assert!(part.1.iter().all(|(read, size)| (1..=*size).contains(read)), "{world}: {:?}", part.1);
        assert!(whole.1.iter().all(|(read, size)| read == size));
        let notes = part.2.iter().filter(|note| note.ends_with(&format!(" read ({name})"))).count();
        assert_eq!(notes, part.1.len(), "{world}: {:?}", part.2);
        assert!(!whole.2.iter().any(|note| note.contains(" read (")), "{:?}", whole.2);
    }
}

#[test]
fn every_world_gives_the_same_results_as_estargz() {
    every_world_says_the_same(Form::EStargz, "eStargz");
}

#[test]
fn every_world_gives_the_same_results_as_zstd_chunked() {
    every_world_says_the_same(Form::ZstdChunked, "zstd:chunked");
}

#[test]
fn the_list_of_worlds_is_complete() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/images");
    let all = fs::read_dir(folder)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().path().extension().is_some_and(|end| end == "tar"));
    assert_eq!(all.count(), WORLDS.len());
    assert!(WORLDS.iter().all(|name| world(name).exists()));
}

/// Bytes of a file that no fact needs.
pub(crate) fn noise() -> Vec<u8> {
    let mut noise = fastrand::Rng::with_seed(1);
    std::iter::repeat_with(|| noise.u8(..)).take(12 << 20).collect()
}

#[test]
fn an_archive_is_read_in_part() {
    let folder = converted("good", Form::EStargz, 1 << 18, Some(&noise()));
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut builder = tar::Builder::new(file.reopen().unwrap());
    builder.append_dir_all(".", folder.path()).unwrap();
    builder.into_inner().unwrap().flush().unwrap();
    let archive = [format!("oci-archive:{}", file.path().display())];
    let (part, whole) = (tell(&archive, true).remove(0), tell(&archive, false).remove(0));
    assert_eq!(part.0, whole.0);
    let (read, size) = *part.1.last().unwrap();
    assert!(read < size / 4, "{read} of {size}");
}

#[test]
fn a_registry_sends_only_the_requested_ranges() {
    for form in [Form::EStargz, Form::ZstdChunked] {
        let folder = converted("good", form, 1 << 18, Some(&noise()));
        let (image, sent) = registry(folder.path().to_owned(), true);
        let image = [image];
        let part = tell(&image, true).remove(0);
        let bytes = sent.swap(0, Ordering::SeqCst);
        let whole = tell(&image, false).remove(0);
        assert_eq!(part.0, whole.0);
        let size: u64 = part.1.iter().map(|(_, size)| size).sum();
        assert!(bytes < size / 4, "{bytes} of {size}");
        assert!(sent.load(Ordering::SeqCst) >= size);
    }
}

#[test]
fn a_registry_without_ranges_is_read_whole_with_a_note() {
    let folder = converted("good", Form::EStargz, 1 << 18, None);
    let (image, _) = registry(folder.path().to_owned(), false);
    let (_, layers, notes) = tell(&[image], true).remove(0);
    assert!(layers.iter().all(|(read, size)| read == size), "{layers:?}");
    let told = notes.iter().filter(|note| {
        note.contains("read whole: its eStargz table cannot be used: its source only provides whole blobs")
    });
    assert_eq!(told.count(), layers.len(), "{notes:?}");
}

#[test]
fn damage_ends_the_check_and_is_located() {
    let folder = converted("good", Form::EStargz, 4096, None);
    let path = folder.path();
    let index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let manifest: Value = serde_json::from_slice(&read(path, &index["manifests"][0]["digest"])).unwrap();
    let layer = &manifest["layers"][2]["digest"];
    let mut bytes = read(path, layer);
    // The last chunk before the table of contents.
    let half = bytes.len() / 2;
    bytes[half] ^= 1;
    fs::write(path.join("blobs").join(layer.as_str().unwrap().replace(':', "/")), bytes).unwrap();
    let output = run(&["check", "--in-part", &format!("oci:{}", path.display())], None);
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("layer 3 of 3 (sha256:") && text.contains("of the blob, is corrupt: "), "{text}");
    assert_eq!(output.stdout, b"", "no verdict");
}

#[test]
fn a_table_without_an_annotation_is_not_used() {
    let folder = converted("good", Form::EStargz, 4096, None);
    let path = folder.path();
    let mut index: Value = serde_json::from_slice(&fs::read(path.join("index.json")).unwrap()).unwrap();
    let mut manifest: Value = serde_json::from_slice(&read(path, &index["manifests"][0]["digest"])).unwrap();
    for layer in manifest["layers"].as_array_mut().unwrap() {
        layer.as_object_mut().unwrap().remove("annotations");
    }
    write(path, manifest.to_string().as_bytes(), &mut index["manifests"][0]);
    fs::write(path.join("index.json"), index.to_string()).unwrap();
    let (report, exit) = check(&format!("oci:{}", path.display()), None);
    assert_eq!(exit, 0);
    let (_, layers, notes) = told(&report);
    assert!(layers.iter().all(|(read, size)| read == size) && notes.is_empty(), "{layers:?} {notes:?}");
}

#[test]
fn a_table_that_hides_a_file_is_ambiguous() {
    for form in [Form::EStargz, Form::ZstdChunked] {
        let hide = |ending: &'static str| {
            move |table: &mut Value| {
                let entries = table["entries"].as_array_mut().unwrap();
                entries.retain(|entry| !entry["name"].as_str().unwrap().ends_with(ending));
            }
        };
        let folder = with_tables("good", form, 4096, None, &hide("/libnccl.so.2"));
        let reference = format!("oci:{}", folder.path().display());
        let cache = tempfile::tempdir().unwrap();
        let words = ["check", "--format", "json", "--cache", cache.path().to_str().unwrap(), &reference];
        // The verdict is the tar's. The second run finds the same with cached scans.
        for _ in 0..2 {
            let output = run(&words, None);
            assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
            let report: Value = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(failed(&report), ["image/ambiguous"]);
            assert!(report["facts"]["nccl.loaded.version"]["value"].is_string(), "{report}");
            let text = report["facts"]["image.ambiguities"]["value"].to_string();
            assert!(text.contains("/libnccl.so.2") && text.contains("toc-difference"), "{text}");
        }
        // By its table, the image has no NCCL.
        let output = run(&["check", "--in-part", "--format", "json", &reference], None);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(failed(&report).contains(&"nccl/missing-library".to_owned()), "{report}");
        assert!(failed(&report).contains(&"image/read-in-part".to_owned()), "{report}");
        assert!(report["image"]["layers"][0]["table_of_contents"].is_string(), "{report}");
        // A difference that no fact depends on does not fail the check.
        let folder = with_tables("good", form, 4096, None, &hide("etc/debian_version"));
        let (report, exit) = check(&format!("oci:{}", folder.path().display()), None);
        assert_eq!((exit, failed(&report)), (0, vec!["image/ambiguous-elsewhere".to_owned()]));
    }
}

/// The rules that failed.
fn failed(report: &Value) -> Vec<String> {
    let judgements = report["judgements"].as_array().unwrap().iter();
    judgements
        .filter(|judgement| judgement["outcome"] == "fail")
        .map(|judgement| judgement["rule"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_policy_trusts_images_by_name() {
    let folder = converted("good", Form::EStargz, 4096, None);
    let reference = format!("oci:{}", folder.path().display());
    let policy = folder.path().join("ncclcheck.yaml");
    for (pattern, is_in_part) in [("oci:*", true), ("docker://*", false)] {
        fs::write(&policy, format!("in-part: ['{pattern}']\n")).unwrap();
        let output = run(&["check", "--format", "json", "--config", policy.to_str().unwrap(), &reference], None);
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(failed(&report).contains(&"image/read-in-part".to_owned()), is_in_part, "{pattern}");
    }
}
