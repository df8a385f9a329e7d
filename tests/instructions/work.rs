//! The stages of a check that take time, each as something that can be done again and again, on what ships with the sources.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::string_slice, reason = "what is prepared is known")]

use std::collections::BTreeMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ncclcheck::facts::{FactInputs, Facts};
use ncclcheck::judge::rules::{ImageNames, RuleSet, judge};
use ncclcheck::layer::scan::{self, LayerScan, scan_layer};
use ncclcheck::model::{ImageConfig, Limits};
use ncclcheck::rootfs::RootFs;
use unpack::inflate::Gunzip;
use unpack::pipe::Pipe;

/// Does a stage once, and returns something of its result, so that none of it is left out.
pub(crate) type Work = Box<dyn FnMut() -> usize>;

/// A stage.
pub(crate) struct Stage {
    pub(crate) name: &'static str,
    /// Prepares it.
    pub(crate) prepare: fn() -> Work,
}

/// All stages.
pub(crate) const STAGES: &[Stage] = &[
    Stage { name: "inflate", prepare: inflate },
    Stage { name: "scan", prepare: scan },
    Stage { name: "fold", prepare: fold },
    Stage { name: "facts", prepare: facts },
    Stage { name: "interpreter", prepare: interpreter },
    Stage { name: "read-rules", prepare: read_rules },
    Stage { name: "judge", prepare: judgements },
];

/// gzip, of libraries.
fn inflate() -> Work {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&libraries().concat().repeat(4)).unwrap();
    let mut pipes = pipes(encoder.finish().unwrap());
    Box::new(move || {
        let mut blob = pipes();
        let mut bytes = Gunzip::new(&mut blob, None);
        let mut count = 0;
        loop {
            match bytes.fill_buf().unwrap().len() {
                0 => return count,
                some => {
                    count += some;
                    bytes.consume(some);
                }
            }
        }
    })
}

/// A layer, not compressed, of many libraries and of 5,000 small files.
fn scan() -> Work {
    let mut layer = tar::Builder::new(Vec::new());
    let mut add = |path: &str, bytes: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        layer.append_data(&mut header, path, bytes).unwrap();
    };
    for (number, library) in libraries().iter().enumerate() {
        add(&format!("usr/lib/lib{number}.so"), library);
    }
    for number in 0..5000 {
        add(&format!("usr/share/doc/{}/{number}", number % 100), b"some text\n");
    }
    let mut pipes = pipes(layer.into_inner().unwrap());
    Box::new(move || scan_layer(pipes(), &Limits::default(), false, None).unwrap().entries.len())
}

/// Pipes with a blob in them. Two are filled before, for the time that is not counted and the one that is.
fn pipes(blob: Vec<u8>) -> impl FnMut() -> Pipe {
    let mut filled = vec![Pipe::of(&blob), Pipe::of(&blob)];
    move || filled.pop().unwrap_or_else(|| Pipe::of(&blob))
}

/// The merge of an image's layers, eight times one over the other.
fn fold() -> Work {
    let layers: Vec<_> = std::iter::repeat_n(image().0, 8).flatten().collect();
    Box::new(move || RootFs::fold(layers.clone(), &Limits::default()).files_named(|_| true).count())
}

/// Everything that is asked of an image, the dynamic loader's search among it.
fn facts() -> Work {
    let (layers, config) = image();
    let rootfs = RootFs::fold(layers, &Limits::default());
    Box::new(move || {
        let facts = Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] });
        judge(&RuleSet::default(), &facts, &ImageNames::default()).len()
    })
}

/// `caffe2::GetBuildOptions()`, from its code.
#[expect(clippy::disallowed_methods, reason = "files of this repository")]
fn interpreter() -> Work {
    let library = std::fs::read(fixture("elf/build-options/cxx11-O2.so")).unwrap();
    Box::new(move || scan::build_options(&library).unwrap().unwrap().options.len())
}

/// The rules that ship: YAML and conditions.
fn read_rules() -> Work {
    Box::new(|| RuleSet::builtin(ncclcheck::shipped()).unwrap().iter().count())
}

/// All rules, asked of one image.
fn judgements() -> Work {
    let (layers, config) = image();
    let rootfs = RootFs::fold(layers, &Limits::default());
    let facts = Facts::collect(&FactInputs { rootfs: &rootfs, config: Some(&config), launch: &[] });
    let rules = RuleSet::builtin(ncclcheck::shipped()).unwrap();
    Box::new(move || judge(&rules, &facts, &ImageNames::default()).len())
}

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures").join(path)
}

#[expect(clippy::disallowed_methods, reason = "files of this repository")]
fn libraries() -> Vec<Vec<u8>> {
    let mut paths: Vec<_> = ["elf/build-options", "elf/gpu-code"]
        .iter()
        .flat_map(|folder| std::fs::read_dir(fixture(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "so"))
        .collect();
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// The small world in which everything is well.
fn image() -> (Vec<Arc<LayerScan>>, ImageConfig) {
    let mut archive = tar::Archive::new(std::fs::File::open(fixture("images/good.oci.tar")).unwrap());
    let mut blobs = BTreeMap::new();
    for entry in archive.entries().unwrap() {
        let mut entry = entry.unwrap();
        let name = entry.path().unwrap().file_name().unwrap().to_string_lossy().into_owned();
        let mut bytes = Vec::new();
        std::io::copy(&mut entry.by_ref(), &mut bytes).unwrap();
        blobs.insert(name, bytes);
    }
    let blob = |descriptor: &serde_json::Value| &blobs[&descriptor["digest"].as_str().unwrap()["sha256:".len()..]];
    let json = |bytes: &[u8]| serde_json::from_slice::<serde_json::Value>(bytes).unwrap();
    let manifest = json(blob(&json(&blobs["index.json"])["manifests"][0]));
    let scan = |layer| Arc::new(scan_layer(Pipe::of(blob(layer)), &Limits::default(), false, None).unwrap());
    let layers = manifest["layers"].as_array().unwrap().iter().map(scan).collect();
    let variables = json(blob(&manifest["config"]))["config"]["Env"].clone();
    let pair = |text: &serde_json::Value| {
        let (name, value) = text.as_str().unwrap().split_once('=').unwrap();
        (name.to_owned(), value.to_owned())
    };
    let environment = variables.as_array().into_iter().flatten().map(pair).collect();
    (layers, ImageConfig { environment, ..ImageConfig::default() })
}
