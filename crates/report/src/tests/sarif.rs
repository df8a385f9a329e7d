use serde_json::Value as Json;

use super::*;

pub(super) const DOCKERFILE: &str = "FROM debian\nRUN pip install --no-cache-dir --index-url \\\n   \
                          https://download.pytorch.org/whl/cu128 torch==2.9.0\nENV A=1 \\\n  NCCL_DEBUG=INFO\n";

fn sarif(images: &[(ImageSummary, Vec<Judgement<'_>>)], dockerfile: Option<&str>) -> Json {
    serde_json::from_str(&document(Format::Sarif, images, dockerfile)).unwrap()
}

#[test]
fn failures_and_waived_failures_are_results() {
    let rules = nine_rules();
    let run = &sarif(&[(image(), outcomes(&rules))], None)["runs"][0];
    let results = run["results"].as_array().unwrap();
    let found: Vec<_> = results
        .iter()
        .map(|result| {
            let suppressed = result["suppressions"][0]["justification"].as_str();
            (result["ruleId"].as_str().unwrap(), result["level"].as_str().unwrap(), suppressed)
        })
        .collect();
    let reason = "the lab's switch has no RDMA (ncclcheck.yaml, line 4, until 2027-01-31)";
    assert_eq!(
        found,
        [
            ("nccl/missing-library", "error", None),
            ("rdma/no-provider", "error", Some(reason)),
            ("env/debug-on", "warning", None),
            ("env/noted", "note", None)
        ]
    );
    for result in results {
        assert_eq!(result["kind"], "fail");
        let rule = &run["tool"]["driver"]["rules"][usize::try_from(result["ruleIndex"].as_u64().unwrap()).unwrap()];
        assert_eq!(rule["id"], result["ruleId"]);
        assert_eq!(rule["defaultConfiguration"]["level"], result["level"]);
        // Either would turn the result into a security alert.
        assert!(rule["properties"].get("security-severity").is_none());
        assert!(!rule["properties"]["tags"].as_array().unwrap().contains(&"security".into()));
    }
    assert_eq!(results[1]["suppressions"][0]["kind"], "external");
    insta::assert_snapshot!(results[0]["message"]["text"].as_str().unwrap(), @"
    torch needs libnccl.so.2, which is nowhere in the image
    owner: image
    image: torch:2.9.0 (linux/amd64, sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa)
    at: /usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so (DT_NEEDED), layer 2 of 3 (sha256:222222222222), RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cu128 torch==2.9.0
    ");
}

#[test]
fn unknown_outcomes_are_notifications() {
    let rules = nine_rules();
    let run = &sarif(&[(image(), outcomes(&rules))], None)["runs"][0];
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], true);
    let notifications: Vec<_> = invocation["toolExecutionNotifications"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["associatedRule"]["id"].as_str().unwrap(), one["level"].as_str().unwrap()))
        .collect();
    assert_eq!(notifications, [("rdma/open", "note"), ("rdma/unknown", "warning"), ("env/warned", "note")]);
    let text = invocation["toolExecutionNotifications"][1]["message"]["text"].as_str().unwrap();
    assert!(text.starts_with("unknown, not ruled out: title of rdma/unknown\n"), "{text}");
}

#[test]
fn an_image_that_could_not_be_checked_is_a_failed_run() {
    let mut collection = Collection::default();
    collection.miss("a:b", "no such image");
    let run = &serde_json::from_str::<Json>(&finished(Format::Sarif, &collection)).unwrap()["runs"][0];
    assert_eq!(run["invocations"][0]["executionSuccessful"], false);
    assert_eq!(run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"], "a:b: no such image");
}

/// Paths and lines of results.
fn places(document: &Json) -> Vec<(&str, u64)> {
    let results = document["runs"][0]["results"].as_array().unwrap().iter();
    results
        .map(|result| {
            let place = &result["locations"][0]["physicalLocation"];
            (place["artifactLocation"]["uri"].as_str().unwrap(), place["region"]["startLine"].as_u64().unwrap())
        })
        .collect()
}

#[test]
fn places_are_paths_of_the_image_or_lines_of_the_dockerfile() {
    let rules = nine_rules();
    let images = [(image(), outcomes(&rules))];
    let torch = "image/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so";
    let expected = [(torch, 1), (torch, 1), ("image/config/Env/NCCL_DEBUG", 1), ("image", 1)];
    assert_eq!(places(&sarif(&images, None)), expected);
    let file = "docker/Dockerfile";
    assert_eq!(places(&sarif(&images, Some(DOCKERFILE))), [(file, 2), (file, 2), (file, 5), (file, 1)]);
}

#[test]
fn findings_in_launch_files_have_their_lines() {
    let rules = nine_rules();
    let launch = |name: &str, line| Site::Launch { file: name.to_owned(), line, variable: "A:B C".to_owned() };
    for (site, place) in [
        (launch("./jobs/a b.sh", Some(7)), ("jobs/a%20b.sh", 7)),
        (launch("/etc/x.sh", Some(7)), ("launch/A%3AB%20C", 1)),
        (launch("--env", None), ("launch/A%3AB%20C", 1)),
    ] {
        let finding = Finding { message: "m".to_owned(), at: vec![site], fix: String::new(), note: None };
        let judgement = Judgement::new(rules.iter().next().unwrap(), Outcome::Fail(finding));
        assert_eq!(places(&sarif(&[(image(), vec![judgement])], None)), [place]);
    }
}

#[test]
fn every_uri_is_a_relative_reference() {
    let rules = rules();
    let judgements = judge(&rules, &super::hostile::hostile_facts(), &ImageNames::default());
    let document = sarif(&[(super::hostile::hostile_image(), judgements)], None);
    for (uri, _) in places(&document) {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-._~/%".contains(c);
        assert!(uri.chars().all(plain) && !uri.starts_with('/') && !uri.is_empty() && uri.len() < 4096, "{uri}");
        assert!(uri.split('/').all(|part| !part.is_empty() && part != ".."), "{uri}");
    }
}

#[test]
fn each_image_has_a_category_independent_of_its_tag() {
    let rules = nine_rules();
    let ids = |references: &[&str]| -> Vec<String> {
        let image =
            |reference: &&str| (ImageSummary { reference: (*reference).to_owned(), ..image() }, outcomes(&rules));
        let images: Vec<_> = references.iter().map(image).collect();
        let runs = sarif(&images, None)["runs"].as_array().unwrap().clone();
        runs.iter().map(|run| run["automationDetails"]["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&["a/b:1", "c:1"]), ["ncclcheck/a/b linux/amd64/", "ncclcheck/c linux/amd64/"]);
    assert_eq!(ids(&["a:2"]), ids(&["a:1"]));
    assert_eq!(ids(&["a:1", "a:2"]), ["ncclcheck/a:1 linux/amd64/", "ncclcheck/a:2 linux/amd64/"]);
    assert_eq!(ids(&["a", "a"]), ["ncclcheck/a linux/amd64/", "ncclcheck/a linux/amd64 #2/"]);
}

#[test]
fn fingerprints_survive_rebuilds_and_differ_between_images() {
    let rules = nine_rules();
    let of = |reference: &str, digit: char| -> Vec<String> {
        let mut image = image();
        image.reference = reference.to_owned();
        image.manifest = digest(digit);
        let document = sarif(&[(image, outcomes(&rules))], None);
        let results = document["runs"][0]["results"].as_array().unwrap().clone();
        let hash =
            |result: &Json| result["partialFingerprints"]["primaryLocationLineHash"].as_str().unwrap().to_owned();
        results.iter().map(hash).collect()
    };
    let first = of("torch:1", 'a');
    assert_eq!(first, of("torch:2", 'c'));
    let other = of("train:1", 'a');
    assert!(first.iter().all(|hash| hash.len() == 64 && !other.contains(hash)));
    assert_eq!(first.iter().collect::<std::collections::BTreeSet<_>>().len(), first.len());
}

#[test]
fn the_limits_of_github_are_kept() {
    let why = "x".repeat(5000);
    let (id, text) = rule("env/long", "error", &"t".repeat(3000), "f", "check: 'true'\nmessage: m");
    let text = text.replace("Without it", &why);
    let rules = RuleSet::from_yaml(&[(&id, &text)]).unwrap();
    let rule = rules.iter().next().unwrap();
    let failed = |message: &str, at| {
        Judgement::new(rule, Outcome::Fail(Finding { message: message.to_owned(), at, fix: String::new(), note: None }))
    };
    let many = (0..25_001).map(|_| failed("m", Vec::new())).collect();
    let many = document(Format::Sarif, &[(image(), many)], None);
    assert_eq!(many.matches("\"ruleId\"").count(), 25_000);
    let long = failed(&"m".repeat(100_000), vec![file(1, &"p".repeat(9000), None); 2000]);
    let few = vec![long, failed("m", Vec::new())];
    let run = &sarif(&[(image(), few)], None)["runs"][0];
    let length = |value: &Json| value.as_str().unwrap().chars().count();
    let rule = &run["tool"]["driver"]["rules"][0];
    assert_eq!(run["tool"]["driver"]["rules"].as_array().unwrap().len(), 1);
    assert!(length(&rule["shortDescription"]["text"]) <= 1024 && length(&rule["fullDescription"]["text"]) <= 1024);
    assert!(rule["properties"]["tags"].as_array().unwrap().len() <= 10);
    let result = &run["results"][0];
    assert_eq!(result["locations"].as_array().unwrap().len(), 1);
    assert!(length(&result["message"]["text"]) < 10_000);
    assert!(length(&result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]) < 4096);
}

#[test]
fn more_images_than_a_file_may_have_are_an_error() {
    let rules = nine_rules();
    let mut collection = Collection::default();
    let image = image();
    let facts = bad();
    let judgements = outcomes(&rules);
    for _ in 0..21 {
        collection.add(&[report_of(&image, &facts, Some(&judgements))]);
    }
    let error = Format::Sarif.finish(&collection, &style(80, false), &mut Vec::new()).unwrap_err().to_string();
    assert_eq!(error, "a SARIF file holds at most 20 images, but there are 21: check fewer at once");
}

#[test]
fn messages_contain_no_links() {
    let rules = nine_rules();
    let finding =
        Finding { message: "[click](https://evil.example)".to_owned(), at: Vec::new(), fix: String::new(), note: None };
    let judgement = Judgement::new(rules.iter().next().unwrap(), Outcome::Fail(finding));
    let document = sarif(&[(image(), vec![judgement])], None);
    let text = document["runs"][0]["results"][0]["message"]["text"].as_str().unwrap();
    assert!(
        text.starts_with("[click] (https://evil.example)\nowner: image\nimage: torch:2.9.0 (linux/amd64, sha256:aaaa"),
        "{text}"
    );
}
