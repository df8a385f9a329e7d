use serde_json::Value as Json;

use super::*;
use judge::RulesInForce;

fn statement(image: &ImageSummary, facts: &Facts, judgements: &[Judgement<'_>]) -> String {
    let rules = RulesInForce {
        count: 9,
        off: 0,
        digest: "sha256:12".to_owned(),
        profile: None,
        policies: Vec::new(),
        archive: None,
    };
    let notices = ["judged by p.yaml".to_owned()];
    let report = Report { notices: &notices, rules: Some(&rules), ..report_of(image, facts, Some(judgements)) };
    let mut out = Vec::new();
    Format::InToto.write(&[report], &style(80, false), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn the_shape_of_a_statement() {
    let rules = nine_rules();
    let text = statement(&image(), &bad(), &outcomes(&rules));
    assert_eq!(text.find('\n'), Some(text.len() - 1), "not one line: {text}");
    let mut statement: Json = serde_json::from_str(&text).unwrap();
    assert_eq!(statement["predicate"]["tool"]["version"], env!("CARGO_PKG_VERSION"));
    statement["predicate"]["tool"]["version"] = "VERSION".into();
    insta::assert_snapshot!(format!("{statement:#}"));
}

/// What a verifier compares is the digest of one manifest, whatever its algorithm, and not that of the configuration.
#[test]
fn the_subject_is_the_manifest() {
    let rules = nine_rules();
    let sha512 = format!("sha512:{}", "c".repeat(128));
    for (manifest, algorithm) in [(image().manifest.unwrap(), "sha256"), (sha512.parse().unwrap(), "sha512")] {
        let image = ImageSummary { manifest: Some(manifest.clone()), ..image() };
        let statement: Json = serde_json::from_str(&statement(&image, &good(), &outcomes(&rules))).unwrap();
        let digest = statement["subject"][0]["digest"].as_object().unwrap();
        assert_eq!(digest.len(), 1);
        assert_eq!(format!("{algorithm}:{}", digest[algorithm].as_str().unwrap()), manifest.as_str());
        assert_eq!(statement["predicate"]["image"]["manifest"], manifest.as_str());
    }
}

#[test]
fn an_image_without_a_manifest_has_no_statement() {
    let image = ImageSummary { manifest: None, ..image() };
    assert_eq!(statement(&image, &good(), &outcomes(&nine_rules())), "");
    let why = Format::InToto.refusal(&image).unwrap();
    assert!(why.starts_with("torch:2.9.0 has no manifest digest"), "{why}");
    for format in Format::of_verdicts() {
        assert_eq!(format.refusal(&image), None, "{}", format.name());
    }
}
