use quick_junit::{NonSuccessKind, Report as Junit, TestCaseStatus};

use super::*;

fn junit(text: &str) -> Junit {
    Junit::deserialize_from_str(text).unwrap()
}

#[test]
fn only_outcomes_that_prevent_a_pass_are_failures_or_errors() {
    let rules = nine_rules();
    let report = junit(&document(Format::Junit, &[(image(), outcomes(&rules))], None));
    let cases: Vec<_> = report
        .test_suites
        .iter()
        .flat_map(|suite| suite.test_cases.iter().map(move |case| (suite, case)))
        .map(|(suite, case)| {
            let status = match &case.status {
                TestCaseStatus::Success { .. } if case.system_out.is_some() => "passed, with output".to_owned(),
                TestCaseStatus::Success { .. } => "passed".to_owned(),
                TestCaseStatus::NonSuccess { kind: NonSuccessKind::Failure, message, .. } => {
                    format!("failure: {}", message.as_ref().unwrap().as_str())
                }
                TestCaseStatus::NonSuccess { message, .. } => format!("error: {}", message.as_ref().unwrap().as_str()),
                TestCaseStatus::Skipped { message, .. } => format!("skipped: {}", message.as_ref().unwrap().as_str()),
            };
            format!("{} | {} | {status}", suite.name.as_str(), case.name.as_str())
        })
        .collect();
    insta::assert_snapshot!(cases.join("\n"), @"
    env: torch linux/amd64 | env/debug-on | passed, with output
    env: torch linux/amd64 | env/noted | passed, with output
    env: torch linux/amd64 | env/warned | skipped: unknown: layer 2 ends early; check the whole image
    nccl: torch linux/amd64 | nccl/missing-library | failure: torch needs libnccl.so.2, which is nowhere in the image
    rdma: torch linux/amd64 | rdma/no-provider | skipped: waived: the lab's switch has no RDMA (ncclcheck.yaml, line 4, until 2027-01-31): there is no provider
    rdma: torch linux/amd64 | rdma/not-here | skipped: not applicable
    rdma: torch linux/amd64 | rdma/open | skipped: waived: the lab's switch has no RDMA (ncclcheck.yaml, line 4, until 2027-01-31): layer 2 ends early; check the whole image
    rdma: torch linux/amd64 | rdma/unknown | error: unknown: layer 2 ends early; check the whole image
    torch: torch linux/amd64 | torch/found | passed
    ");
    assert_eq!((report.tests, report.failures, report.errors), (9, 1, 1));
    let properties = &report.test_suites[0].properties;
    assert!(
        properties
            .iter()
            .any(|property| property.name.as_str() == "digest" && property.value.starts_with("sha256:aaaa"))
    );
}

/// Elements and attributes that Jenkins knows: its `junit-10.xsd` (jenkinsci/xunit-plugin).
#[test]
fn jenkins_knows_every_element_and_attribute() {
    let rules = nine_rules();
    let text = document(Format::Junit, &[(image(), outcomes(&rules))], None);
    let tag = regex::Regex::new(r#"<([a-z-]+)((?: [a-z]+="[^"<]*")*)/?>"#).unwrap();
    let attribute = regex::Regex::new(r#" ([a-z]+)=""#).unwrap();
    let mut seen = 0;
    for found in tag.captures_iter(&text) {
        let known: &[&str] = match &found[1] {
            "testsuites" => &["name", "tests", "failures", "errors"],
            "testsuite" => &["name", "tests", "failures", "errors", "skipped"],
            "testcase" => &["name", "classname"],
            "failure" | "error" | "skipped" => &["type", "message"],
            "property" => &["name", "value"],
            "properties" | "system-out" => &[],
            other => panic!("{other}"),
        };
        for name in attribute.captures_iter(&found[2]) {
            assert!(known.contains(&&name[1]), "{}", &found[0]);
        }
        seen += 1;
    }
    assert_eq!(seen, text.matches('<').count() - text.matches("</").count() - text.matches("<?").count());
}

#[test]
fn control_characters_are_removed() {
    let rules = rules();
    let judgements = judge(&rules, &super::hostile::hostile_facts(), &ImageNames::default());
    let text = document(Format::Junit, &[(super::hostile::hostile_image(), judgements)], None);
    assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text:?}");
    assert_eq!(junit(&text).tests, 4);
}

#[test]
fn an_image_that_could_not_be_checked_is_an_error() {
    let mut collection = Collection::default();
    collection.miss("a", "no such image");
    let report = junit(&finished(Format::Junit, &collection));
    assert_eq!((report.tests, report.errors), (1, 1));
}
