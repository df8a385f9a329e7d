//! A small world of `fixtures/images` in which one part is replaced with hostile bytes.

use std::fs;
use std::io::Read as _;
use std::num::NonZeroUsize;
use std::path::Path;

use ncclcheck::check::Check;
use ncclcheck::image::{Image, Request, load};
use ncclcheck::judge::Rulebook;
use ncclcheck::model::{Hasher, Limits, NoProgress};
use ncclcheck::report::{Format, Style};
use serde_json::{Value, json};
use tempfile::TempDir;
use unpack::pipe::Cancel;

/// A part of an image.
#[derive(Clone, Copy, Debug)]
pub enum Part {
    /// The content of a file, which a layer over those of the world brings.
    File(&'static str),
    /// The tar of a layer over those of the world.
    Layer,
    /// The index of the layout.
    Index,
    /// The manifest.
    Manifest,
    /// The image's configuration.
    Config,
}

/// The script that the entrypoint of the image runs, if a file has this path.
pub const ENTRYPOINT: &str = "entry.sh";

/// An OCI layout, of which each image replaces a part.
pub struct World {
    layout: TempDir,
    manifest: Value,
    config: Value,
    rulebook: Rulebook,
    /// Blobs of the last image.
    replaced: Vec<String>,
}

impl World {
    /// Unpacks the layout of a world.
    pub fn new() -> Self {
        let layout = tempfile::tempdir().expect("a temporary folder");
        tar::Archive::new(archive().as_slice()).unpack(layout.path()).expect("an archive");
        let blob = |descriptor: &Value| {
            let digest = descriptor["digest"].as_str().expect("a digest").replace(':', "/");
            read_json(&layout.path().join("blobs").join(digest))
        };
        let manifest = blob(&read_json(&layout.path().join("index.json"))["manifests"][0]);
        let config = blob(&manifest["config"]);
        let rulebook = Rulebook::builtin(ncclcheck::shipped()).expect("the built-in rules");
        Self { layout, manifest, config, rulebook, replaced: Vec::new() }
    }

    /// Judges the image in which a part is replaced, and returns the report in JSON. It is read within the limits, or the
    /// error names the layout.
    pub fn judge(&mut self, part: Part, bytes: &[u8]) -> Vec<u8> {
        for blob in self.replaced.drain(..) {
            let _ = fs::remove_file(self.layout.path().join(blob));
        }
        self.replace(part, bytes);
        let place = self.layout.path().to_str().expect("a path in UTF-8");
        let mut request = Request::new(&format!("oci:{place}")).expect("a reference");
        request.jobs = NonZeroUsize::MIN;
        request.limits = Limits { entries: 10_000, unpacked: 64 << 20, text_file: 1 << 20, ..Limits::default() };
        match load(&request, &NoProgress, &Cancel::default()) {
            Ok(images) => images.iter().flat_map(|image| self.reports(image)).collect(),
            Err(error) => {
                assert!(error.to_string().contains(place), "{error}");
                Vec::new()
            }
        }
    }

    /// The report on an image, as JSON and for people.
    fn reports(&self, image: &Image) -> Vec<u8> {
        let assessments = Check::new(&self.rulebook).run(image);
        let reports: Vec<_> = assessments.iter().map(|one| one.report(&image.summary, None)).collect();
        let style = Style { color: false, width: 80, verbose: true, brief: false };
        let mut json = Vec::new();
        for (format, out) in [(Format::Json, &mut json), (Format::Human, &mut Vec::new())] {
            format.write(&reports, &style, out).expect("memory");
        }
        json
    }

    fn replace(&mut self, part: Part, bytes: &[u8]) {
        let mut manifest = self.manifest.clone();
        let mut config = self.config.clone();
        let layer = match part {
            Part::File(path) => {
                if path == ENTRYPOINT {
                    config["config"]["Entrypoint"] = json!([format!("/{ENTRYPOINT}")]);
                }
                Some(tar_of(path, bytes))
            }
            Part::Layer => Some(bytes.to_vec()),
            Part::Index | Part::Manifest | Part::Config => None,
        };
        if let Some(layer) = layer {
            let descriptor = self.add("application/vnd.oci.image.layer.v1.tar", &layer);
            push(&mut config["rootfs"]["diff_ids"], descriptor["digest"].clone());
            push(&mut manifest["layers"], descriptor);
        }
        let config = if let Part::Config = part { bytes.to_vec() } else { config.to_string().into_bytes() };
        manifest["config"] = self.add("application/vnd.oci.image.config.v1+json", &config);
        let manifest = if let Part::Manifest = part { bytes.to_vec() } else { manifest.to_string().into_bytes() };
        let descriptor = self.add("application/vnd.oci.image.manifest.v1+json", &manifest);
        let index = json!({ "schemaVersion": 2, "manifests": [descriptor] }).to_string().into_bytes();
        let index = if let Part::Index = part { bytes } else { &index };
        fs::write(self.layout.path().join("index.json"), index).expect("room for a file");
    }

    /// Writes a blob, and returns its descriptor.
    fn add(&mut self, media_type: &str, bytes: &[u8]) -> Value {
        let digest = digest(bytes);
        let blob = format!("blobs/{}", digest.replace(':', "/"));
        fs::write(self.layout.path().join(&blob), bytes).expect("room for a file");
        self.replaced.push(blob);
        json!({ "mediaType": media_type, "digest": digest, "size": bytes.len() })
    }
}

/// The digest of bytes, as descriptors write it.
pub fn digest(bytes: &[u8]) -> String {
    let mut hasher = Hasher::sha256();
    hasher.update(bytes);
    hasher.finish().to_string()
}

/// The tar of a layer with one file.
pub fn tar_of(path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_size(bytes.len() as u64);
    header.set_mode(0o755);
    let mut tar = tar::Builder::new(Vec::new());
    tar.append_data(&mut header, path, bytes).expect("a path for a tar");
    tar.into_inner().expect("a tar in memory")
}

/// What a part is in the world itself.
pub fn seeds(part: Part) -> Vec<Vec<u8>> {
    let blobs: Vec<Vec<u8>> = members(&archive()).into_iter().map(|(_, bytes)| bytes).collect();
    let layers = || blobs.iter().filter_map(|blob| gunzipped(blob));
    let documents = |is: fn(&Value) -> bool| {
        blobs.iter().filter(|blob| serde_json::from_slice(blob).is_ok_and(|value| is(&value))).cloned().collect()
    };
    match part {
        Part::File(path) => layers()
            .flat_map(|layer| members(&layer))
            .filter(|(name, _)| name == path)
            .map(|(_, bytes)| bytes)
            .collect(),
        Part::Layer => layers().collect(),
        Part::Index => documents(|document| document["manifests"].is_array()),
        Part::Manifest => documents(|document| document["layers"].is_array()),
        Part::Config => documents(|document| document["rootfs"].is_object()),
    }
}

fn archive() -> Vec<u8> {
    fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/images/good.oci.tar"))
        .or_else(|_| fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../fixtures/images/good.oci.tar")))
        .expect("the fixtures of the tests")
}

fn members(archive: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(archive);
    let entries = archive.entries().expect("an archive").map(|entry| {
        let mut entry = entry.expect("an entry");
        let path = entry.path().expect("a path").display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("an entry in memory");
        (path, bytes)
    });
    entries.collect()
}

fn gunzipped(blob: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    flate2::read::GzDecoder::new(blob).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn read_json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).expect("a document")).expect("a document in JSON")
}

fn push(list: &mut Value, value: Value) {
    list.as_array_mut().expect("a list").push(value);
}
