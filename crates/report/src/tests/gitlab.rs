use serde_json::Value as Json;

use super::*;

fn issues(images: &[(ImageSummary, Vec<Judgement<'_>>)], dockerfile: Option<&str>) -> Vec<Json> {
    serde_json::from_str(&document(Format::Gitlab, images, dockerfile)).unwrap()
}

#[test]
fn issues_have_exactly_the_documented_fields() {
    let rules = nine_rules();
    let issues = issues(&[(image(), outcomes(&rules))], Some("FROM a\nENV NCCL_DEBUG=INFO\n"));
    let found: Vec<_> = issues
        .iter()
        .map(|issue| {
            let keys: Vec<_> = issue.as_object().unwrap().keys().collect();
            assert_eq!(keys, ["check_name", "description", "fingerprint", "location", "severity"]);
            let path = issue["location"]["path"].as_str().unwrap();
            assert!(!path.starts_with(['.', '/']), "{path}");
            assert!(!issue["description"].as_str().unwrap().contains('\n'));
            (
                issue["check_name"].as_str().unwrap(),
                issue["severity"].as_str().unwrap(),
                path,
                issue["location"]["lines"]["begin"].as_u64().unwrap(),
            )
        })
        .collect();
    let file = "docker/Dockerfile";
    assert_eq!(
        found,
        [
            ("nccl/missing-library", "critical", file, 1),
            ("env/debug-on", "major", file, 2),
            ("rdma/unknown", "minor", file, 1),
            ("env/noted", "info", file, 1),
        ]
    );
    assert!(
        issues[2]["description"]
            .as_str()
            .unwrap()
            .starts_with("unknown, not ruled out: title of rdma/unknown: layer 2 ends early")
    );
}

#[test]
fn no_two_issues_share_a_fingerprint() {
    let rules = nine_rules();
    let images = ["a:1", "a:2", "b"]
        .map(|reference| (ImageSummary { reference: reference.to_owned(), ..image() }, outcomes(&rules)));
    let issues = issues(&images, None);
    let fingerprints: std::collections::BTreeSet<_> =
        issues.iter().map(|issue| issue["fingerprint"].as_str().unwrap()).collect();
    assert_eq!((issues.len(), fingerprints.len()), (12, 12));
}

#[test]
fn an_image_that_could_not_be_checked_is_an_issue() {
    let mut collection = Collection::default();
    collection.miss("a", "no such image");
    let issues: Json = serde_json::from_str(&finished(Format::Gitlab, &collection)).unwrap();
    assert_eq!(issues[0]["severity"], "blocker");
    assert_eq!(issues[0]["description"], "a could not be checked: no such image");
    assert_eq!(finished(Format::Gitlab, &Collection::default()), "[]\n");
}
