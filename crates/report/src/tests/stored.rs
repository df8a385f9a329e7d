//! Reports read back from JSON.

use super::*;
use crate::{Stored, StoredRules};

/// The JSON of an image's judgements.
fn json_of(image: &ImageSummary, facts: &Facts, judgements: &[Judgement<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let notices = ["judged by p.yaml".to_owned()];
    let report = Report { notices: &notices, ..report_of(image, facts, Some(judgements)) };
    Format::Json.write(&[report], &style(80, false), &mut out).unwrap();
    out
}

/// Renders a report, without the times of the run.
fn shown(report: &Report<'_>, format: Format) -> String {
    let mut collection = Collection::new(&[format]);
    let mut out = Vec::new();
    let style = style(80, true);
    collection.add(std::slice::from_ref(report));
    format.write(std::slice::from_ref(report), &style, &mut out).unwrap();
    collection.name();
    format.finish(&collection, &style, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    text.split_inclusive('\n').filter(|line| !line.contains("timestamp")).collect()
}

/// Renders JSON in another form.
fn presented(json: &[u8], format: Format) -> String {
    let mut rules = StoredRules::default();
    rules.add(json).unwrap();
    let Stored::Report(stored) = Stored::read(json, &rules).unwrap() else { panic!("not a report") };
    shown(&stored.report(), format)
}

#[test]
fn a_stored_report_is_rendered_like_the_report_itself() {
    let rules = nine_rules();
    let image = image();
    let facts = bad();
    let judgements = outcomes(&rules);
    let json = json_of(&image, &facts, &judgements);
    let notices = ["judged by p.yaml".to_owned()];
    let report = Report { notices: &notices, ..report_of(&image, &facts, Some(&judgements)) };
    for format in Format::ALL {
        assert_eq!(presented(&json, *format), shown(&report, *format), "{}", format.name());
    }
}

#[test]
fn facts_with_unusual_paths_are_read_back() {
    let mut facts = good();
    let path: model::ImagePath = model::ImagePath::normalise(b"/opt/a\\b\xff/libnccl.so.2");
    facts.insert(key::NCCL_LOADED_PATH, Fact::seen(path.clone(), [Site::File { layer: 1, path, within: None }]));
    let rules = rules();
    let judgements = judge(&rules, &facts, &ImageNames::default());
    let json = json_of(&image(), &facts, &judgements);
    assert_eq!(presented(&json, Format::Json).as_bytes(), json);
}

#[test]
fn what_is_no_stored_report_is_refused() {
    for (line, why) in [
        ("{}", "the key 'schema' is missing"),
        ("[1", "not a report of"),
        (r#"{"schema":"ncclcheck/1"}"#, "its schema is 'ncclcheck/1', not 'ncclcheck/2'\n  help: "),
        (r#"{"schema":"ncclcheck/2","image":{"reference":"a"}}"#, "it has no judgements\n  help: "),
        (
            r#"{"schema":"ncclcheck/2","image":{"reference":"a"},"probe":{"steps":[{"step":"gpus","outcome":"failed"}]},"judgements":[]}"#,
            "probe.steps: the step gpus has no failure",
        ),
        (
            r#"{"schema":"ncclcheck/2","image":{"reference":"a"},"facts":{"torch.version":{"state":"seen","value":[],"at":[]}},"judgements":[]}"#,
            "facts.torch.version is not",
        ),
        (
            r#"{"schema":"ncclcheck/2","image":{"reference":"a","manifest":"sha256:1"},"judgements":[]}"#,
            " is not a digest: expected sha256: and 64",
        ),
        (
            r#"{"schema":"ncclcheck/2","image":{"reference":"a","platform":"linux"},"judgements":[]}"#,
            " is not a platform: expected os/arch",
        ),
    ] {
        let error = Stored::read(line.as_bytes(), &StoredRules::default()).unwrap_err().to_string();
        assert!(error.contains(why), "{line}: {error}");
    }
}

#[test]
fn other_versions_may_leave_out_and_add_what_is_not_needed() {
    let line = r#"{"schema":"ncclcheck/2","tool":1,"image":{"reference":"a","later":1},"verdict":"later","counts":{"later":1},
        "facts":{"later.fact":{"state":"seen","value":0.5,"at":[]},"torch.version":{"state":"seen","value":"2.9.0","at":[]}},
        "judgements":[{"rule":"a/b","title":"t","outcome":"pass","severity":"error","owner":"host"}]}"#;
    let report: serde_json::Value = serde_json::from_str(&presented(line.as_bytes(), Format::Json)).unwrap();
    assert_eq!(report["facts"]["torch.version"]["value"], "2.9.0");
    assert_eq!(report["facts"].as_object().unwrap().len(), 1);
    assert_eq!((&report["asked"]["fail_on"], &report["verdict"]), (&"error".into(), &"pass".into()));
    assert_eq!((&report["counts"]["pass"], &report["judgements"][0]["owner"]), (&1.into(), &"host".into()));
}

#[test]
fn an_image_that_could_not_be_opened_has_an_object() {
    let unopened = crate::Unopened { reference: "gone:1".to_owned(), why: "no such image".to_owned(), run: None };
    let mut out = Vec::new();
    Format::Json.write_unopened(&unopened, &mut out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&json["verdict"], &json["error"]), (&"error".into(), &"no such image".into()));
    assert_eq!((&json["image"]["reference"], &json["judgements"]), (&"gone:1".into(), &serde_json::json!([])));
    let rules = StoredRules::default();
    let Stored::Unopened(read) = Stored::read(&out, &rules).unwrap() else { panic!("it is judged") };
    assert_eq!((read.reference, read.why), (unopened.reference, unopened.why));
}
