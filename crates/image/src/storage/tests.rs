use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::records::Store;
use super::*;
use crate::PlatformChoice;
use crate::source::StoredDocument;
use model::Limits;

/// A store with one image of two layers, and the image's ID.
fn store(folder: &Path, change: impl Fn(&mut Value, &mut Value)) -> String {
    let diff = |byte: char| format!("sha256:{}", byte.to_string().repeat(64));
    let config = json!({
        "os": "linux", "architecture": "arm64", "config": {"Env": ["A=1"]},
        "rootfs": {"type": "layers", "diff_ids": [diff('1'), diff('2')]},
        "history": [{"created_by": "one"}, {"created_by": "ENV A=1", "empty_layer": true}, {"created_by": "two"}],
    })
    .to_string();
    let digest = StoredDocument::of_file(String::new(), config.clone().into_bytes()).digest;
    let layer = |byte: char| json!({"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": diff(byte), "size": 7});
    let manifest = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest.as_str(), "size": config.len()},
        "layers": [layer('a'), layer('b')],
    })
    .to_string();
    let id = digest.hex().to_owned();
    let manifest_digest = StoredDocument::of_file(String::new(), manifest.clone().into_bytes()).digest;
    let mut images = json!([
        {"id": "f".repeat(64), "layer": "low", "names": ["docker.io/library/other:latest"]},
        {"id": id, "layer": "top", "names": ["docker.io/ml/torch:2.9", "localhost/mine:latest"], "digest": manifest_digest.as_str()},
    ]);
    let mut layers = json!([
        {"id": "top", "parent": "low", "diff-digest": diff('2'), "compressed-diff-digest": diff('b'), "diff-size": 9},
        {"id": "low", "diff-digest": diff('1')},
    ]);
    change(&mut images, &mut layers);
    for (name, content) in [
        ("overlay-images/images.json", images.to_string()),
        ("overlay-layers/layers.json", layers.to_string()),
        (&*format!("overlay-images/{id}/manifest"), manifest),
        // The name is the base64 of the digest.
        (&*format!("overlay-images/{id}/=c2hhMjU2"), config),
        ("overlay/low/diff/etc/os-release", "low".to_owned()),
        ("overlay/top/diff/etc/os-release", "top".to_owned()),
    ] {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    id
}

/// Plans the image of this name: each layer's folder below the store, the first digit of its diff ID, and its step.
fn planned(folder: &Path, name: &str) -> Result<Vec<String>, String> {
    let stores = [Store::open(folder, None, &Limits::default()).map_err(|error| error.to_string())?];
    let image = stores[0].find(name).map_err(|error| error.to_string())?.ok_or("no image")?;
    let layers = layers_of(&image, &stores).map_err(|error| error.to_string())?;
    let documents = stores[0].documents(&image).map_err(|error| error.to_string())?;
    let plans = Finder::plans(&documents, None, &PlatformChoice::Host, &Limits::default());
    let mut plan = plans.map_err(|error| error.to_string())?.remove(0);
    let [store] = stores;
    let medium = StorageImage { name: "store".to_owned(), store, image, layers, marks: OverlayMarks::User };
    medium.place(&mut plan).map_err(|error| error.to_string())?;
    let layer = |layer: &crate::plan::PlannedLayer| {
        let LayerLocation::Folder(path) = &layer.location else { panic!("{:?}", layer.location) };
        let diff_id = layer.diff_id.as_ref().and_then(|digest| digest.hex().get(..1)).unwrap_or("-");
        let history = layer.history.as_deref().unwrap_or("-");
        format!("{} {diff_id} {history}", path.strip_prefix(folder).unwrap().display())
    };
    Ok(plan.layers.iter().map(layer).collect())
}

#[test]
fn images_are_found_by_name_digest_and_id() {
    let folder = tempfile::tempdir().unwrap();
    let id = store(folder.path(), |_, _| {});
    let stored = Store::open(folder.path(), Some("overlay"), &Limits::default()).unwrap();
    let digest = stored.find("ml/torch:2.9").unwrap().unwrap().digest.unwrap();
    for name in [
        "docker.io/ml/torch:2.9",
        "ml/torch:2.9",
        "mine",
        "localhost/mine:latest",
        &id,
        id.get(..12).unwrap(),
        &format!("sha256:{id}"),
        &format!("docker.io/ml/torch@{digest}"),
    ] {
        let layers = planned(folder.path(), name).unwrap();
        assert_eq!(layers, ["overlay/low/diff 1 one", "overlay/top/diff 2 two"], "{name}");
    }
    for name in
        ["torch", "ml/torch", "ml/torch:2.8", "docker.io/ml/other@sha256:0", &format!("elsewhere@{digest}"), "zz"]
    {
        assert_eq!(planned(folder.path(), name).unwrap_err(), "no image", "{name}");
    }
}

#[test]
fn contradictions_are_errors() {
    for (change, why) in [
        (
            &(|_: &mut Value, layers: &mut Value| layers[1]["id"] = json!("lower")) as &dyn Fn(&mut Value, &mut Value),
            "the store has no layer 'low' of image",
        ),
        (&|_, layers| layers[1]["parent"] = json!("top"), "form a loop"),
        (&|_, layers| layers[0]["parent"] = Value::Null, "the store has 1 layers, but the manifest has 2"),
        (
            &|_, layers| layers[1]["diff-digest"] = json!("sha256:0"),
            "layer 1 has the diff ID sha256:0 in the store, but sha256:111",
        ),
        (&|_, layers| *layers = json!({}), "layers.json is malformed"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        store(folder.path(), change);
        let error = planned(folder.path(), "mine").unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let folder = tempfile::tempdir().unwrap();
    let id = store(folder.path(), |_, _| {});
    fs::write(folder.path().join(format!("overlay-images/{id}/=c2hhMjU2")), "{}").unwrap();
    let error = planned(folder.path(), "mine").unwrap_err();
    assert!(error.contains(&format!("has no document sha256:{id}")), "{error}");
    let error = Store::open(folder.path(), Some("btrfs"), &Limits::default()).unwrap_err().to_string();
    assert!(error.contains("the storage driver btrfs; only overlay and vfs are supported"), "{error}");
}

#[test]
fn a_store_of_whole_trees_has_the_files_of_all_layers_in_the_uppermost() {
    let folder = tempfile::tempdir().unwrap();
    store(folder.path(), |_, _| {});
    for name in ["images", "layers"] {
        let at = |driver: &str| folder.path().join(format!("{driver}-{name}"));
        fs::rename(at("overlay"), at("vfs")).unwrap();
    }
    fs::remove_dir_all(folder.path().join("overlay")).unwrap();
    fs::create_dir_all(folder.path().join("vfs/dir/top")).unwrap();
    assert_eq!(planned(folder.path(), "mine").unwrap(), ["vfs/dir/top - -"]);
    // Engines do not choose vfs where there is another driver's folder.
    fs::create_dir(folder.path().join("overlay")).unwrap();
    assert_eq!(planned(folder.path(), "mine").unwrap_err(), "no image");
    assert!(Store::open(folder.path(), Some("vfs"), &Limits::default()).unwrap().find("mine").unwrap().is_some());
}
