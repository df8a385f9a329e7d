//! The page for people.

use super::*;

fn page(image: &ImageSummary, facts: &Facts) -> String {
    let rules = rules();
    let judgements = judge(&rules, facts, &ImageNames::default());
    let mut collection = Collection::new(&[Format::Html]);
    collection.add(&[report_of(image, facts, Some(&judgements))]);
    finished(Format::Html, &collection)
}

#[test]
fn a_page_loads_nothing_and_needs_no_script() {
    let page = page(&image(), &bad());
    assert!(page.contains("content=\"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-"), "{page}");
    for loader in [" src=", "<link", "@import", "url(", "<iframe", "<img", "<object"] {
        assert!(!page.contains(loader), "{loader}");
    }
    let before_the_script = page.split("<script>").next().unwrap();
    assert!(before_the_script.contains("torch needs libnccl.so.2, which is nowhere in the image"));
    assert!(before_the_script.contains("RUN apt-get update &amp;&amp; apt-get install"));
}

#[test]
fn the_way_to_nccl_ends_with_what_the_loader_finds() {
    let way = |facts: &Facts| {
        let page = page(&image(), facts);
        page.split("The way to NCCL").nth(1).unwrap().split("</section>").next().unwrap().to_owned()
    };
    assert!(way(&good()).contains(">loaded</span>") && way(&good()).contains(NCCL));
    assert!(way(&bad()).contains(">not found</span>") && !way(&bad()).contains(">loaded<"));
    assert!(way(&hidden()).contains(">unknown</span>") && !way(&hidden()).contains(">loaded<"));
}

#[test]
fn names_from_outside_are_text() {
    let name = "<script>alert(1)</script>\"><img src=x onerror=alert(1)>";
    let image = ImageSummary { reference: name.to_owned(), notes: vec![name.to_owned()], ..image() };
    let page = page(&image, &bad());
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains("<img") && page.contains("&lt;img"));
}

#[test]
fn a_page_on_2000_images_has_at_most_2_mb() {
    let rules = rules();
    let facts = [good(), bad(), hidden()];
    let judged: Vec<_> = facts.iter().map(|facts| judge(&rules, facts, &ImageNames::default())).collect();
    let mut collection = Collection::new(&[Format::Html]);
    for number in 0..2000 {
        let facts = &facts[number % 3];
        let judgements = &judged[number % 3];
        let reference =
            format!("registry.example:5000/platform/team-{}/training-{number}:2026.11.{number}", number % 40);
        let image = ImageSummary { reference, ..image() };
        collection.add(&[report_of(&image, facts, Some(judgements))]);
    }
    let page = finished(Format::Html, &collection);
    assert!(page.len() <= 2_000_000, "{}", page.len());
    assert_eq!(page.matches("registry.example:5000/platform/").count(), 2000);
}
