mod selection;

use std::io::Read;

use serde_json::{Value, json};

use crate::source::StoredDocument;

use std::collections::BTreeMap;

use super::super::plan::{ImagePlan, LayerLocation, PlannedLayer, digest_of};
use super::*;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// A source in memory.
#[derive(Debug, Default)]
struct Memory {
    top: Vec<u8>,
    blobs: BTreeMap<Digest, Vec<u8>>,
}

impl Source for Memory {
    fn top(&self) -> Result<StoredDocument, SourceError> {
        Ok(StoredDocument {
            name: "index.json of MEMORY".to_owned(),
            digest: digest_of(&self.top),
            media_type: None,
            bytes: self.top.clone(),
        })
    }

    fn manifest(&self, digest: &Digest) -> Result<Vec<u8>, SourceError> {
        let missing = || SourceError::missing(format!("MEMORY has no blob {digest}"));
        self.blobs.get(digest).cloned().ok_or_else(missing)
    }

    fn reference(&self) -> Option<String> {
        Some("oci:MEMORY".to_owned())
    }

    fn open(&self, blob: &BlobRef) -> Result<Box<dyn Read + Send + '_>, SourceError> {
        Ok(Box::new(&*self.blobs[&blob.digest]))
    }
}

impl Memory {
    /// Stores a document and returns its descriptor.
    fn store(&mut self, document: &Value, media_type: &str) -> Value {
        let bytes = document.to_string().into_bytes();
        let digest = digest_of(&bytes);
        let descriptor = json!({"mediaType": media_type, "digest": digest.as_str(), "size": bytes.len()});
        self.blobs.insert(digest, bytes);
        descriptor
    }

    /// A manifest of an image with this configuration and layers.
    fn manifest_of(&mut self, config: &Value, layers: &[Value]) -> Value {
        json!({"schemaVersion": 2, "config": self.store(config, CONFIG), "layers": layers})
    }

    /// An index entry for an image of this architecture, without layers.
    fn entry(&mut self, architecture: &str) -> Value {
        let manifest = self.manifest_of(&config(architecture, &[]), &[]);
        let mut entry = self.store(&manifest, MANIFEST);
        entry["platform"] = json!({"os": "linux", "architecture": architecture});
        entry
    }

    fn plans(&mut self, top: &Value, choice: &PlatformChoice, limits: &Limits) -> Result<Vec<ImagePlan>, String> {
        self.select(top, None, choice, limits)
    }

    fn select(
        &mut self,
        top: &Value,
        selector: Option<&Selector>,
        choice: &PlatformChoice,
        limits: &Limits,
    ) -> Result<Vec<ImagePlan>, String> {
        self.top = top.to_string().into_bytes();
        Finder::plans(self, selector, choice, limits).map_err(|error| error.to_string())
    }

    /// The only plan of the top document.
    fn plan(&mut self, top: &Value) -> Result<ImagePlan, String> {
        self.plans(top, &PlatformChoice::Host, &Limits::default()).map(|mut plans| plans.remove(0))
    }

    /// The platforms of the images chosen from an index.
    fn chosen(&mut self, entries: &[Value], choice: &PlatformChoice) -> Result<Vec<String>, String> {
        let plans = self.plans(&index(entries), choice, &Limits::default())?;
        Ok(plans.into_iter().map(|plan| plan.platform().unwrap().to_string()).collect())
    }
}

fn index(entries: &[Value]) -> Value {
    json!({"schemaVersion": 2, "manifests": entries})
}

fn config(architecture: &str, diff_ids: &[Digest]) -> Value {
    let diff_ids: Vec<_> = diff_ids.iter().map(Digest::as_str).collect();
    json!({"os": "linux", "architecture": architecture, "rootfs": {"type": "layers", "diff_ids": diff_ids}})
}

fn layer(name: &str, media_type: &str) -> Value {
    json!({"mediaType": media_type, "digest": digest_of(name.as_bytes()).as_str(), "size": 7})
}

fn ids(count: u8) -> Vec<Digest> {
    (0..count).map(|number| digest_of(&[number])).collect()
}

fn platform(text: &str) -> PlatformChoice {
    PlatformChoice::One(text.parse().unwrap())
}

#[test]
fn a_manifest_describes_its_layers() {
    let mut memory = Memory::default();
    let manifest = memory.manifest_of(&config("amd64", &ids(2)), &[layer("a", LAYER), layer("b", LAYER)]);
    let plan = memory.plan(&manifest).unwrap();
    assert_eq!(plan.manifest, Some(digest_of(&memory.top)));
    assert!(plan.notes.is_empty() && plan.empty_steps.is_empty());
    let [first, second] = &*plan.layers else { panic!("{plan:?}") };
    assert_eq!(first.location, LayerLocation::Blob { digest: digest_of(b"a"), size: 7 });
    assert_eq!((first.media_type.as_deref(), &first.history), (Some(LAYER), &None));
    assert_eq!([&first.diff_id, &second.diff_id], [&Some(ids(2)[0].clone()), &Some(ids(2)[1].clone())]);
}

#[test]
fn an_encrypted_layer_is_refused_and_a_foreign_one_is_planned() {
    let mut memory = Memory::default();
    let encrypted = layer("b", "application/vnd.oci.image.layer.v1.tar+gzip+encrypted");
    let manifest = memory.manifest_of(&config("amd64", &ids(2)), &[layer("a", LAYER), encrypted]);
    let error = memory.plan(&manifest).unwrap_err();
    assert_eq!(error, format!("layer {} is encrypted", digest_of(b"b")));
    for media_type in [
        "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
        "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
    ] {
        let layers = [layer("a", media_type), layer("b", LAYER)];
        let manifest = memory.manifest_of(&config("amd64", &ids(2)), &layers);
        let plan = memory.plan(&manifest).unwrap();
        let foreign: Vec<_> = plan.layers.iter().map(PlannedLayer::is_foreign).collect();
        assert_eq!(foreign, [true, false], "{media_type}");
    }
}

#[test]
fn every_layer_needs_a_diff_id() {
    let mut memory = Memory::default();
    for count in [0, 1, 3] {
        let manifest = memory.manifest_of(&config("amd64", &ids(count)), &[layer("a", LAYER), layer("b", LAYER)]);
        let error = memory.plan(&manifest).unwrap_err();
        assert!(error.ends_with(&format!("has {count} diff IDs for 2 layers")), "{error}");
    }
    let mut wrong = config("amd64", &[]);
    wrong["rootfs"]["diff_ids"] = json!(["md5:0"]);
    let manifest = memory.manifest_of(&wrong, &[layer("a", LAYER)]);
    assert!(memory.plan(&manifest).unwrap_err().contains("md5:0"));
}

#[test]
fn documents_are_verified_against_their_descriptors() {
    let mut memory = Memory::default();
    let manifest = memory.manifest_of(&config("amd64", &[]), &[]);
    let entry = memory.store(&manifest, MANIFEST);
    for (document, top) in [(&entry, index(std::slice::from_ref(&entry))), (&manifest["config"], manifest.clone())] {
        let digest: Digest = document["digest"].as_str().unwrap().parse().unwrap();
        let good = memory.blobs[&digest].clone();
        memory.plan(&top).unwrap();
        let mut flipped = good.clone();
        flipped[0] = b' ';
        memory.blobs.insert(digest.clone(), flipped);
        assert!(memory.plan(&top).unwrap_err().contains("is corrupt: its bytes have the digest sha256:"));
        memory.blobs.insert(digest.clone(), [&*good, b" "].concat());
        let error = memory.plan(&top).unwrap_err();
        assert!(
            error.contains(&format!("has {} bytes, its descriptor says {}", good.len() + 1, good.len())),
            "{error}"
        );
        memory.blobs.insert(digest, good);
    }
}

#[test]
fn document_sizes_are_limited_by_their_descriptors() {
    let mut memory = Memory::default();
    let manifest = memory.manifest_of(&config("amd64", &[]), &[]);
    let entry = memory.store(&manifest, MANIFEST);
    let size = |descriptor: &Value| descriptor["size"].as_u64().unwrap();
    for (what, top, size) in [
        ("document", index(std::slice::from_ref(&entry)), size(&entry)),
        ("configuration", manifest.clone(), size(&manifest["config"])),
    ] {
        let mut limited =
            |document| memory.plans(&top, &PlatformChoice::Host, &Limits { document, ..Limits::default() });
        limited(size).unwrap();
        let error = limited(size - 1).unwrap_err();
        assert!(
            error.starts_with(what) && error.contains(&format!("has {size} bytes, the limit is {}", size - 1)),
            "{error}"
        );
    }
}

#[test]
fn layers_and_images_are_counted() {
    let mut memory = Memory::default();
    let layers = [layer("a", LAYER), layer("b", LAYER)];
    let manifest = memory.manifest_of(&config("amd64", &ids(2)), &layers);
    let limits = |layers| Limits { layers, ..Limits::default() };
    memory.plans(&manifest, &PlatformChoice::Host, &limits(2)).unwrap();
    let error = memory.plans(&manifest, &PlatformChoice::Host, &limits(1)).unwrap_err();
    assert!(error.starts_with("the image has 2 layers, the limit is 1"), "{error}");
    let top = index(&[memory.entry("amd64"), memory.entry("arm64")]);
    let limits = |images| Limits { images, ..Limits::default() };
    memory.plans(&top, &PlatformChoice::All, &limits(2)).unwrap();
    let error = memory.plans(&top, &PlatformChoice::All, &limits(1)).unwrap_err();
    assert!(error.starts_with("the image index names more than 1 images, the limit is 1"), "{error}");
}

#[test]
fn indexes_nest_up_to_a_limit() {
    let mut memory = Memory::default();
    let mut top = index(&[memory.entry("amd64")]);
    for media_type in [INDEX, LIST] {
        top = index(&[memory.store(&top, media_type)]);
    }
    let limits = |nesting| Limits { nesting, ..Limits::default() };
    assert_eq!(memory.plans(&top, &PlatformChoice::All, &limits(2)).unwrap().len(), 1);
    let error = memory.plans(&top, &PlatformChoice::All, &limits(1)).unwrap_err();
    assert!(error.starts_with("image indexes are nested 3 deep, the limit is 1"), "{error}");
}

#[test]
fn a_nested_index_counts_as_often_as_it_is_named() {
    let mut memory = Memory::default();
    let image = memory.entry("amd64");
    let nested = index(&[]);
    let inner = memory.store(&nested, INDEX);
    let top = index(&[image, inner.clone(), inner.clone(), inner]);
    let size = nested.to_string().len() as u64;
    let limits = |indexes| Limits { indexes, ..Limits::default() };
    assert_eq!(memory.plans(&top, &PlatformChoice::All, &limits(3 * size)).unwrap().len(), 1);
    let error = memory.plans(&top, &PlatformChoice::All, &limits(3 * size - 1)).unwrap_err();
    let expected = format!("nested image indexes have {} bytes, the limit is {}", 3 * size, 3 * size - 1);
    assert!(error.contains(&expected), "{error}");
}

#[test]
fn entries_that_are_not_images_are_skipped() {
    let mut memory = Memory::default();
    let mut attestation = memory.entry("unknown");
    attestation["annotations"] = json!({"vnd.docker.reference.type": "attestation-manifest"});
    let mut artifact = memory.entry("s390x");
    artifact["artifactType"] = json!("application/vnd.example");
    // Another value of the annotation does not make an attestation.
    let mut image = memory.entry("amd64");
    image["annotations"] = json!({"vnd.docker.reference.type": "other"});
    let plans =
        memory.plans(&index(&[attestation, artifact, image]), &PlatformChoice::All, &Limits::default()).unwrap();
    let [plan] = &*plans else { panic!("{plans:?}") };
    assert_eq!(plan.notes.len(), 2, "{:?}", plan.notes);
    assert!(plan.notes[0].starts_with("skipped attestation manifest sha256:"));
    assert!(
        plan.notes[1].starts_with("skipped artifact sha256:") && plan.notes[1].ends_with(" (application/vnd.example)")
    );
    let mut manifest = memory.manifest_of(&config("amd64", &[]), &[]);
    manifest["config"]["mediaType"] = json!("application/vnd.oci.empty.v1+json");
    let error = memory.plan(&manifest).unwrap_err();
    assert!(
        error.contains("describes an artifact (application/vnd.oci.empty.v1+json), not a container image"),
        "{error}"
    );
    manifest["config"]["mediaType"] = json!("application/vnd.docker.container.image.v1+json");
    memory.plan(&manifest).unwrap();
}

#[test]
fn a_documents_own_fields_determine_its_kind() {
    let shape = |document: Value, media_type: Option<&str>| {
        let kind = DocumentKind::of(document.to_string().as_bytes(), media_type, "it");
        kind.map(|kind| matches!(kind, DocumentKind::Index)).map_err(|error| error.to_string())
    };
    assert_eq!(shape(json!({"manifests": []}), Some(MANIFEST)), Ok(true));
    assert_eq!(shape(json!({"manifests": null}), Some(MANIFEST)), Ok(true));
    assert_eq!(shape(json!({"config": {}, "layers": []}), Some(INDEX)), Ok(false));
    assert_eq!(shape(json!({"config": {}, "layers": null}), Some(INDEX)), Ok(false));
    for (document, why) in [
        (json!({"schemaVersion": 1}), "schema 1"),
        (json!({"schemaVersion": 2, "fsLayers": []}), "schema 1"),
        (json!({"manifests": [], "config": {}, "layers": []}), "both manifests and layers"),
        (json!({"manifests": null, "config": {}, "layers": null}), "both manifests and layers"),
        (json!({"config": {}}), "neither an image manifest nor an index (its media type is 'given')"),
        (json!({"layers": [], "mediaType": "own"}), "neither an image manifest nor an index (its media type is 'own')"),
    ] {
        let error = shape(document, Some("given")).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn a_list_that_is_null_is_empty() {
    let mut memory = Memory::default();
    let mut empty = config("amd64", &[]);
    empty["rootfs"]["diff_ids"] = Value::Null;
    let mut manifest = memory.manifest_of(&empty, &[]);
    manifest["layers"] = Value::Null;
    assert!(memory.plan(&manifest).unwrap().layers.is_empty());
    let choice = PlatformChoice::Host;
    assert_eq!(
        memory.plans(&json!({"schemaVersion": 2, "manifests": null}), &choice, &Limits::default()).unwrap_err(),
        memory.plans(&index(&[]), &choice, &Limits::default()).unwrap_err()
    );
}

#[test]
fn the_requested_platform_is_chosen() {
    let mut memory = Memory::default();
    let entries = ["s390x", "riscv64"].map(|architecture| memory.entry(architecture));
    let [s390x, riscv64] = entries.clone();
    let mut silent = riscv64.clone();
    silent.as_object_mut().unwrap().remove("platform");
    let mut wrong = riscv64.clone();
    wrong["platform"]["architecture"] = json!("s390x");
    let both = Ok(vec!["linux/s390x".to_owned(), "linux/riscv64".to_owned()]);
    let only = Ok(vec!["linux/riscv64".to_owned()]);
    assert_eq!(memory.chosen(&entries, &PlatformChoice::All), both);
    assert_eq!(memory.chosen(&entries, &platform("linux/riscv64")), only);
    // The only image is chosen whatever the host's platform.
    assert_eq!(memory.chosen(std::slice::from_ref(&riscv64), &PlatformChoice::Host), only);
    // The configuration supplies a platform that the index omits, and overrides a wrong one.
    assert_eq!(memory.chosen(&[s390x.clone(), silent], &platform("linux/riscv64")), only);
    for (entries, choice) in [
        (&entries[..], PlatformChoice::Host),
        (std::slice::from_ref(&s390x), platform("linux/riscv64")),
        (&[s390x.clone(), s390x.clone()], platform("linux/riscv64")),
        (&[wrong], platform("linux/s390x")),
    ] {
        let error = memory.chosen(entries, &choice).unwrap_err();
        assert!(error.contains("image; available: linux/s390x"), "{error}");
        assert_eq!(error.matches("s390x").count(), 1 + usize::from(choice == platform("linux/s390x")), "{error}");
    }
    let manifest = memory.manifest_of(&config("s390x", &[]), &[]);
    let error = memory.plans(&manifest, &platform("linux/riscv64"), &Limits::default()).unwrap_err();
    assert_eq!(error, "the image is for linux/s390x, but linux/riscv64 was requested");
}

#[test]
fn an_image_is_selected_by_name_digest_or_position() {
    let mut memory = Memory::default();
    let mut first = memory.entry("s390x");
    first["annotations"] = json!({CONTAINERD_NAME: "registry.example:5000/team/train:1"});
    let inner = memory.entry("riscv64");
    let mut outer = memory.store(&index(std::slice::from_ref(&inner)), INDEX);
    outer["annotations"] = json!({REF_NAME: "outer"});
    let top = index(&[first.clone(), outer]);
    let mut select = |selector: Selector| {
        let plans = memory.select(&top, Some(&selector), &PlatformChoice::All, &Limits::default())?;
        Ok::<_, String>(plans.into_iter().map(|plan| plan.platform().unwrap().architecture.clone()).collect::<Vec<_>>())
    };
    let digest = |entry: &Value| Selector::Digest(entry["digest"].as_str().unwrap().parse().unwrap());
    for (selector, architecture) in [
        (Selector::Name("registry.example:5000/team/train:1".to_owned()), "s390x"),
        (Selector::Name("1".to_owned()), "s390x"),
        (Selector::Name("localhost/registry.example:5000/team/train:1".to_owned()), "s390x"),
        (Selector::Name("outer".to_owned()), "riscv64"),
        (Selector::Index(0), "s390x"),
        (Selector::Index(1), "riscv64"),
        (digest(&first), "s390x"),
        (digest(&inner), "riscv64"),
    ] {
        assert_eq!(select(selector.clone()), Ok(vec![architecture.to_owned()]), "{selector}");
    }
    let names = "registry.example:5000/team/train:1, outer";
    for (selector, available) in [
        (Selector::Name("train".to_owned()), names),
        (Selector::Index(2), "2 images, :@0 to :@1"),
        (Selector::Digest(digest_of(b"x")), names),
    ] {
        let error = select(selector).unwrap_err();
        assert!(error.ends_with(&format!("in the index; available: {available}")), "{error}");
    }
    let pair = ["s390x", "riscv64"].map(|architecture| memory.entry(architecture));
    let mut outer = memory.store(&index(&pair), INDEX);
    outer["annotations"] = json!({REF_NAME: "outer"});
    let other = Selector::Name("train".to_owned());
    let found = memory.select(&index(&[outer]), Some(&other), &PlatformChoice::All, &Limits::default());
    assert_eq!(found.unwrap_err(), "no image ':train' in the index; available: outer");
}

#[test]
fn build_steps_are_assigned_if_their_number_matches_the_layers() {
    let mut memory = Memory::default();
    let mut planned = |history: Value| {
        let mut config = config("amd64", &ids(2));
        config["history"] = history;
        let manifest = memory.manifest_of(&config, &[layer("a", LAYER), layer("b", LAYER)]);
        let plan = memory.plan(&manifest).unwrap();
        let steps: Vec<_> = plan.layers.into_iter().map(|layer| layer.history).collect();
        (steps, plan.empty_steps, plan.notes)
    };
    let step = |text: &str| json!({"created_by": text});
    let empty = json!({"created_by": "ENV A=1", "empty_layer": true});
    let none = vec![None, None];
    let (steps, empty_steps, notes) = planned(json!([step("RUN a"), empty, step("")]));
    assert_eq!((steps, empty_steps), (vec![Some("RUN a".to_owned()), None], vec!["ENV A=1".to_owned()]));
    assert!(notes.is_empty());
    let (steps, empty_steps, notes) = planned(json!([step("RUN a"), empty]));
    assert_eq!((steps, empty_steps), (none.clone(), vec!["ENV A=1".to_owned()]));
    assert_eq!(notes, ["the history lists 1 layers, but the image has 2: build steps are not shown"]);
    assert_eq!(planned(json!([empty])), (none.clone(), vec!["ENV A=1".to_owned()], vec![]));
    assert_eq!(planned(Value::Null), (none, vec![], vec![]));
}

#[test]
fn the_configuration_is_read_completely() {
    let mut memory = Memory::default();
    let mut parsed = config("amd64", &[]);
    parsed["variant"] = json!("v2");
    parsed["config"] = json!({
        "Env": ["A=1", "B", "C=x=y", "A=2"], "Entrypoint": ["tini"], "Cmd": ["python3", "x.py"],
        "User": "1000:100", "WorkingDir": "/srv", "Labels": {"key": "value"},
    });
    let manifest = memory.manifest_of(&parsed, &[]);
    let config = memory.plan(&manifest).unwrap().config.unwrap();
    assert_eq!(config.platform.unwrap().to_string(), "linux/amd64/v2");
    let environment: Vec<_> = config.environment.iter().map(|(name, value)| (&**name, &**value)).collect();
    assert_eq!(environment, [("A", "2"), ("B", ""), ("C", "x=y")]);
    assert_eq!(
        (config.entrypoint, config.command),
        (vec!["tini".to_owned()], vec!["python3".to_owned(), "x.py".to_owned()])
    );
    assert_eq!((&*config.user, &*config.working_directory), ("1000:100", "/srv"));
    assert_eq!(config.labels, BTreeMap::from([("key".to_owned(), "value".to_owned())]));
}

#[test]
fn malformed_documents_are_named() {
    let mut memory = Memory::default();
    let error = memory.plan(&json!({"manifests": [1]})).unwrap_err();
    assert!(error.starts_with("index.json of MEMORY is malformed: "), "{error}");
    let error = memory.plan(&json!({"schemaVersion": 2, "config": 1, "layers": []})).unwrap_err();
    assert!(error.starts_with("manifest sha256:") && error.contains(" is malformed: "), "{error}");
    let manifest = memory.manifest_of(&json!({"os": 1}), &[]);
    let error = memory.plan(&manifest).unwrap_err();
    assert!(error.starts_with("image configuration sha256:") && error.contains(" is malformed: "), "{error}");
}

#[test]
fn no_document_has_two_readings() {
    let mut memory = Memory::default();
    let image = memory.manifest_of(&config("amd64", &[]), &[]);
    let with = |document: &Value, key: &str| {
        let mut document = document.clone();
        document[key] = json!([]);
        document
    };
    // Each of these is another image for a reader that matches keys exactly than for Docker and containerd.
    let mut twice = config("amd64", &[]);
    twice["config"] = json!({"Env": ["A=1"], "env": ["A=2"]});
    let twice = memory.manifest_of(&twice, &[]);
    let index = json!({"schemaVersion": 2, "manifests": [memory.entry("amd64")]});
    for (document, keys) in [
        (with(&image, "LAYERS"), "'LAYERS' and 'layers'"),
        (with(&image, "Config"), "'Config' and 'config'"),
        (with(&index, "Manifests"), "'Manifests' and 'manifests'"),
        (twice, "'Env' and 'env'"),
    ] {
        let error = memory.plan(&document).unwrap_err();
        assert!(error.contains(keys), "{error}");
    }
    // One spelling, whichever it is, has one reading.
    let mut other = config("amd64", &[]);
    other["config"] = json!({"ENV": ["A=1"], "Labels": {"a": "1", "A": "2"}});
    let other = memory.manifest_of(&other, &[]);
    let plan = memory.plan(&other).unwrap();
    let read = plan.config.as_ref().unwrap();
    assert_eq!((read.environment.len(), read.labels.len()), (1, 2));
}
