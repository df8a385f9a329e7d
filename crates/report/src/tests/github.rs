use super::*;

fn annotations(judgements: Vec<Judgement<'_>>, dockerfile: Option<&str>) -> String {
    document(Format::Github, &[(image(), judgements)], dockerfile)
}

#[test]
fn the_worst_annotations_come_first_and_have_lines() {
    let rules = nine_rules();
    let text = annotations(outcomes(&rules), Some("FROM a\nENV NCCL_DEBUG=INFO\n"));
    assert!(text.lines().next().unwrap().contains("%0Afix: "), "{text}");
    let short: String = text.lines().map(|line| line.split("%0A").next().unwrap().to_owned() + "\n").collect();
    insta::assert_snapshot!(short, @"
    ::error file=docker/Dockerfile,line=1,title=nccl/missing-library::torch needs libnccl.so.2, which is nowhere in the image
    ::warning file=docker/Dockerfile,line=2,title=env/debug-on::NCCL_DEBUG=INFO is part of the image
    ::warning file=docker/Dockerfile,line=1,title=unknown%3A rdma/unknown::layer 2 ends early; check the whole image
    ::notice file=docker/Dockerfile,line=1,title=env/noted::it is noted
    ::notice file=docker/Dockerfile,line=1,title=unknown%3A env/warned::layer 2 ends early; check the whole image
    ");
}

#[test]
fn annotations_name_no_file_without_a_dockerfile() {
    let rules = nine_rules();
    let text = annotations(outcomes(&rules), None);
    assert!(text.starts_with("::error title=nccl/missing-library::torch needs"), "{text}");
    assert!(!text.contains("file="), "{text}");
}

#[test]
fn annotations_of_a_kind_are_limited_and_the_last_counts_the_rest() {
    let rules = nine_rules();
    let rule = rules.iter().find(|rule| rule.severity == Severity::Error).unwrap();
    let failed = |count: usize| -> Vec<Judgement<'_>> {
        let outcome = |number| {
            Outcome::Fail(Finding {
                message: format!("number {number}"),
                at: Vec::new(),
                fix: String::new(),
                note: None,
            })
        };
        (1..=count).map(|number| Judgement::new(rule, outcome(number))).collect()
    };
    let ten = annotations(failed(10), None);
    assert_eq!((ten.lines().count(), ten.contains("left out")), (10, false));
    let more = annotations(failed(14), None);
    assert_eq!(more.lines().count(), 10);
    assert!(more.lines().nth(8).unwrap().contains("::number 9%0A"), "{more}");
    assert!(more.lines().nth(9).unwrap().starts_with("::error title=ncclcheck::5 more left out"), "{more}");
}

#[test]
fn values_are_escaped() {
    let rules = nine_rules();
    let message = "100% a\r\n::error::b".to_owned();
    let site = Site::Launch { file: "a,b:c%.sh".to_owned(), line: Some(3), variable: "X".to_owned() };
    let outcome = Outcome::Fail(Finding { message, at: vec![site], fix: String::new(), note: None });
    let text = annotations(vec![Judgement::new(rules.iter().next().unwrap(), outcome)], None);
    let start = "::warning file=a%2Cb%3Ac%25.sh,line=3,title=env/debug-on::100%25 a\u{fffd}\\n::error::b%0Aowner: image%0Aimage: torch";
    assert!(text.starts_with(start), "{text}");
    assert_eq!(text.lines().count(), 1);
}
