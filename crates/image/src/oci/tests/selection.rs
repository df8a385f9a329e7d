//! The choice among the images of an index.

use super::*;

fn all(memory: &mut Memory, top: &Value) -> Vec<ImagePlan> {
    memory.plans(top, &PlatformChoice::All, &Limits::default()).unwrap()
}

/// An entry of an index without a platform, for an image with this configuration.
fn silent(memory: &mut Memory, config: &Value) -> Value {
    let layers: Vec<_> = (0..config["rootfs"]["diff_ids"].as_array().unwrap().len())
        .map(|number| layer(&number.to_string(), LAYER))
        .collect();
    let manifest = memory.manifest_of(config, &layers);
    memory.store(&manifest, MANIFEST)
}

fn host() -> String {
    Platform::host().architecture
}

#[test]
fn images_that_match_equally_are_ambiguous() {
    let mut memory = Memory::default();
    let image = memory.entry("riscv64");
    let mut rival = silent(&mut memory, &config("riscv64", &ids(1)));
    rival["annotations"] = json!({REF_NAME: "rival"});
    let choice = platform("linux/riscv64");
    let error = memory.chosen(&[image.clone(), rival.clone()], &choice).unwrap_err();
    let digest = |entry: &Value| entry["digest"].as_str().unwrap().to_owned();
    let lines = format!(
        "\n  oci:MEMORY@{}  linux/riscv64\n  oci:MEMORY:rival  linux/riscv64  ({})",
        digest(&image),
        digest(&rival)
    );
    let help = "choose one of these, or judge all images there: ncclcheck audit plan --store FOLDER oci:MEMORY";
    assert_eq!(error, format!("several images match:{lines}\n  help: {help}"));
    // The same image twice counts once, and an image for another platform is not a rival.
    let other = memory.entry("s390x");
    let one = Ok(vec!["linux/riscv64".to_owned()]);
    assert_eq!(memory.chosen(&[image.clone(), image.clone(), other], &choice), one);
    assert_eq!(memory.chosen(&[image.clone(), image], &PlatformChoice::All), one);
}

#[test]
fn a_platform_that_the_index_omits_is_in_the_configuration() {
    let mut memory = Memory::default();
    let other = if host() == "amd64" { "arm64" } else { "amd64" };
    let [foreign, own, rival] =
        [config(other, &[]), config(&host(), &[]), config(&host(), &ids(1))].map(|config| silent(&mut memory, &config));
    let chosen = memory.chosen(&[foreign.clone(), own.clone()], &PlatformChoice::Host);
    assert_eq!(chosen, Ok(vec![format!("linux/{}", host())]), "the first is for another platform");
    let error = memory.chosen(&[own, rival], &PlatformChoice::Host).unwrap_err();
    assert!(error.starts_with("several images match:\n  oci:MEMORY@sha256:"), "{error}");
    // The only image is judged whatever its platform is, even beside an artifact.
    let signature =
        memory.manifest_of(&config("", &ids(1)), &[layer("a", "application/vnd.dev.cosign.simplesigning.v1+json")]);
    let signature = memory.store(&signature, MANIFEST);
    assert_eq!(memory.chosen(&[signature, foreign], &PlatformChoice::Host), Ok(vec![format!("linux/{other}")]));
}

#[test]
fn the_nearest_variant_is_chosen() {
    let mut memory = Memory::default();
    let mut variants = ["v3", "v1", "v2"].map(|variant| {
        let mut config = config("amd64", &[]);
        config["variant"] = json!(variant);
        let mut entry = silent(&mut memory, &config);
        entry["platform"] = json!({"os": "linux", "architecture": "amd64", "variant": variant});
        entry
    });
    for (asked, chosen) in
        [("linux/amd64", "linux/amd64/v1"), ("linux/amd64/v2", "linux/amd64/v2"), ("linux/amd64/v4", "linux/amd64/v3")]
    {
        assert_eq!(memory.chosen(&variants, &platform(asked)), Ok(vec![chosen.to_owned()]), "{asked}");
    }
    // A variant of a lower level is not fetched if it is not needed.
    memory.blobs.remove(&variants[2]["digest"].as_str().unwrap().parse().unwrap());
    assert_eq!(memory.chosen(&variants, &platform("linux/amd64/v3")), Ok(vec!["linux/amd64/v3".to_owned()]));
    variants.swap(0, 1);
    let error = memory.chosen(&variants[1..], &platform("linux/amd64")).unwrap_err();
    assert!(error.starts_with("no linux/amd64 image; available: linux/amd64/v3, linux/amd64/v2\n  help: "), "{error}");
}

#[test]
fn one_of_two_compressions_is_chosen() {
    let mut memory = Memory::default();
    let config = config("amd64", &ids(1));
    let [gzip, mut zstd] = ["gzip", "zstd"].map(|compression| {
        let layers = [layer(compression, &format!("application/vnd.oci.image.layer.v1.tar+{compression}"))];
        let manifest = memory.manifest_of(&config, &layers);
        let mut entry = memory.store(&manifest, MANIFEST);
        entry["platform"] = json!({"os": "linux", "architecture": "amd64"});
        entry
    });
    zstd["annotations"] = json!({"io.github.containers.compression.zstd": "true"});
    for choice in [platform("linux/amd64"), PlatformChoice::All] {
        let plans = memory.plans(&index(&[gzip.clone(), zstd.clone()]), &choice, &Limits::default()).unwrap();
        let [plan] = &*plans else { panic!("{plans:?}") };
        assert_eq!(plan.manifest.as_ref().unwrap().as_str(), gzip["digest"]);
        let [note] = &*plan.notes else { panic!("{:?}", plan.notes) };
        assert!(note.contains("(gzip) is read") && note.ends_with("(zstd) is not read"), "{note}");
    }
}

#[test]
fn what_is_not_an_image_is_passed_over() {
    let mut memory = Memory::default();
    let signature = [layer("a", "application/vnd.dev.cosign.simplesigning.v1+json")];
    let signature = memory.manifest_of(&config("", &ids(1)), &signature);
    let signature = memory.store(&signature, MANIFEST);
    let mut chart = memory.manifest_of(&config("amd64", &[]), &[]);
    chart["config"]["mediaType"] = json!("application/vnd.cncf.helm.config.v1+json");
    let chart = memory.store(&chart, MANIFEST);
    let unknown = memory.store(&json!({"anything": 1}), "application/vnd.example.v1+json");
    let mut image = memory.entry("amd64");
    image["artifactType"] = json!(CONFIG);
    let plans = all(&mut memory, &index(&[signature.clone(), unknown.clone(), chart, image]));
    let [plan] = &*plans else { panic!("{plans:?}") };
    let [first, second, third] = &*plan.notes else { panic!("{:?}", plan.notes) };
    assert!(first.ends_with("its media type 'application/vnd.example.v1+json' is unknown"), "{first}");
    assert!(second.ends_with(" (application/vnd.dev.cosign.simplesigning.v1+json)"), "{second}");
    assert!(third.ends_with(" (application/vnd.cncf.helm.config.v1+json)"), "{third}");
    for entries in [&[unknown][..], &[signature]] {
        let error = memory.chosen(entries, &PlatformChoice::Host).unwrap_err();
        assert!(error.starts_with("the index lists no images\n  skipped "), "{error}");
    }
}

#[test]
fn an_unrelated_index_may_be_missing() {
    let mut memory = Memory::default();
    let mut good = memory.entry("amd64");
    good["annotations"] = json!({REF_NAME: "good"});
    let inner = memory.entry("riscv64");
    let mut lost = memory.store(&index(std::slice::from_ref(&inner)), INDEX);
    lost["annotations"] = json!({REF_NAME: "lost"});
    let top = index(&[good.clone(), lost.clone()]);
    let digest = |entry: &Value| Selector::Digest(entry["digest"].as_str().unwrap().parse().unwrap());
    let select = |memory: &mut Memory, selector: Option<&Selector>| {
        let plans = memory.select(&top, selector, &PlatformChoice::Host, &Limits::default())?;
        Ok::<_, String>(plans.into_iter().flat_map(|plan| plan.notes).collect::<Vec<_>>())
    };
    assert_eq!(select(&mut memory, Some(&digest(&lost))), Ok(vec![]), "a nested index by its digest");
    memory.blobs.remove(&lost["digest"].as_str().unwrap().parse().unwrap());
    for selector in [Selector::Name("good".to_owned()), digest(&good)] {
        let notes = select(&mut memory, Some(&selector)).unwrap();
        assert!(notes[0].starts_with("passed over image index sha256:"), "{notes:?}");
        assert!(!notes[0].contains('\n'), "{notes:?}");
    }
    // These may mean an image of the missing index.
    let name = |name: &str| Some(Selector::Name(name.to_owned()));
    for selector in
        [None, name("lost"), name("third"), Some(digest(&lost)), Some(digest(&inner)), Some(Selector::Index(0))]
    {
        let error = select(&mut memory, selector.as_ref()).unwrap_err();
        assert!(error.starts_with("MEMORY has no blob sha256:"), "{selector:?}: {error}");
    }
}

#[test]
fn platforms_that_were_not_copied_are_noted() {
    let mut memory = Memory::default();
    let entries = ["s390x", "riscv64"].map(|architecture| memory.entry(architecture));
    memory.blobs.remove(&entries[0]["digest"].as_str().unwrap().parse().unwrap());
    let plans = all(&mut memory, &index(&entries));
    let [plan] = &*plans else { panic!("{plans:?}") };
    assert!(plan.notes[0].starts_with("linux/s390x sha256:") && plan.notes[0].contains(" is listed, but not here: "));
    assert!(!plan.notes[0].contains('\n'), "{:?}", plan.notes);
    let error = memory.chosen(&entries, &platform("linux/s390x")).unwrap_err();
    assert!(error.starts_with("MEMORY has no blob sha256:"), "{error}");
    let error = memory.chosen(&entries[..1], &PlatformChoice::All).unwrap_err();
    assert!(error.starts_with("MEMORY has no blob sha256:"), "{error}");
}

#[test]
fn old_registries_wrote_other_types_of_configurations() {
    let mut memory = Memory::default();
    let mut manifest = memory.manifest_of(&config("amd64", &[]), &[]);
    for media_type in ["application/octet-stream", "application/json", "text/html", ""] {
        manifest["config"]["mediaType"] = json!(media_type);
        memory.plan(&manifest).unwrap();
    }
    manifest["config"].as_object_mut().unwrap().remove("mediaType");
    memory.plan(&manifest).unwrap();
}
