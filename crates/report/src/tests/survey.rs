//! Forms with a row for each image.

use super::*;

/// Three judged images, of which two fail alike, and one that could not be opened.
fn run() -> Collection {
    let rules = rules();
    let mut collection = Collection::new(Format::ALL);
    for (reference, facts) in [("registry.example:5000/ml/bad:1", bad()), ("good", good()), ("bad:2@sha256:1", bad())] {
        let judgements = judge(&rules, &facts, &ImageNames::default());
        let image = ImageSummary { reference: reference.to_owned(), ..image() };
        collection.add(&[report_of(&image, &facts, Some(&judgements))]);
    }
    collection.miss("gone:1", "no such image\n  help: check the name");
    collection
}

fn shown(format: Format, width: usize) -> String {
    let mut out = Vec::new();
    let collection = run();
    format.finish(&collection, &Style { brief: true, ..style(width, false) }, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn a_narrow_table() {
    // Both ends of an image's reference are shown, and more of the second.
    assert!(shown(Format::Table, 60).contains("  regis…0/ml/bad:1\n"));
    let text = shown(Format::Table, 80);
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn a_wide_table() {
    let text = shown(Format::Table, 160);
    assert!(text.lines().all(|line| line.chars().count() <= 160), "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn people_see_each_finding_once_and_then_the_table() {
    let text = shown(Format::Human, 80);
    assert_eq!(text.matches("error[nccl/missing-library]: torch needs").count(), 1, "{text}");
    insta::assert_snapshot!(text);
}

#[test]
fn the_only_image_has_no_table() {
    let text = check(&bad(), &style(80, false));
    assert!(!text.contains("verdict  "), "{text}");
}

#[test]
fn a_line_parts_the_table_from_reports_before_it() {
    let shown = |collection: &Collection| {
        let mut out = Vec::new();
        Format::Human.finish(collection, &style(80, false), &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    assert!(shown(&run()).starts_with("\nverdict  "));
    let mut missing = Collection::new(Format::ALL);
    missing.miss("a", "no such image");
    missing.miss("b", "no such image");
    assert!(shown(&missing).starts_with("verdict  "));
}

#[test]
fn csv_has_a_record_for_each_image() {
    insta::assert_snapshot!(shown(Format::Csv, 80).replace('\r', ""));
}

#[test]
fn metrics_count_images_and_findings() {
    let text = shown(Format::Prometheus, 80);
    for line in [
        r#"ncclcheck_image_verdict{repository="registry.example:5000/ml/bad",tag="1",platform="linux/amd64",verdict="fail"} 1"#,
        r#"ncclcheck_image_verdict{repository="bad",tag="2",platform="linux/amd64",verdict="fail"} 1"#,
        r#"ncclcheck_image_verdict{repository="gone",tag="1",platform="",verdict="error"} 1"#,
        r#"ncclcheck_images{verdict="fail"} 2"#,
        r#"ncclcheck_images{verdict="error"} 1"#,
        r#"ncclcheck_findings{rule="nccl/missing-library",severity="error",owner="image"} 2"#,
    ] {
        assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
    }
    assert!(!text.contains("sha256"), "a digest would start a series with each build: {text}");
}

#[test]
fn rows_hold_no_text_that_controls_a_terminal() {
    let rules = rules();
    let facts = hostile::hostile_facts();
    let image = hostile::hostile_image();
    let judgements = judge(&rules, &facts, &ImageNames::default());
    let mut collection = Collection::new(Format::ALL);
    collection.add(&[report_of(&image, &facts, Some(&judgements))]);
    collection.miss("\u{1b}[31m\u{202e}x", "\u{7}::error::y");
    collection.name();
    for format in [Format::Table, Format::Csv, Format::Prometheus, Format::Human] {
        let mut out = Vec::new();
        format.finish(&collection, &Style { brief: true, ..style(80, false) }, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\r'), "{}: {text:?}", format.name());
        assert!(!text.contains('\u{202e}'), "{}: {text:?}", format.name());
    }
}

#[test]
fn a_collection_keeps_what_its_formats_need() {
    let rules = rules();
    let facts = bad();
    let judgements = judge(&rules, &facts, &ImageNames::default());
    let kept = |format: Format| {
        let mut collection = Collection::new(&[format]);
        collection.add(&[report_of(&image(), &facts, Some(&judgements))]);
        collection.miss("a", "b");
        let entries = collection.images.first().map_or(0, |image| image.entries.len());
        (collection.survey.rows.len(), collection.images.len(), entries, collection.missing.len())
    };
    assert_eq!(kept(Format::Json), (0, 0, 0, 0));
    assert_eq!(kept(Format::Table), (2, 0, 0, 0));
    assert_eq!(kept(Format::Markdown), (2, 1, 2, 1));
    assert_eq!(kept(Format::Junit), (0, 1, 4, 1));
}
