use crate::model::{Fact, Gap, Value};

use super::*;

fn name(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "pass",
        Outcome::Fail(_) => "fail",
        Outcome::NotApplicable => "not-applicable",
        Outcome::Unknown(_) => "unknown",
        Outcome::Waived(_) => "waived",
    }
}

#[test]
fn every_example_of_every_rule_comes_out_as_it_says() {
    for rule in RuleSet::builtin().unwrap().iter() {
        let examples = &rule.examples;
        for (expected, examples) in [
            ("pass", &examples.pass),
            ("fail", &examples.fail),
            ("not-applicable", &examples.not_applicable),
            ("unknown", &examples.unknown),
        ] {
            for example in examples {
                let facts = example.facts().unwrap_or_else(|why| panic!("{}, {expected}: {why}", rule.id));
                let outcome = rule.judge(&eval::Scope::new(&facts));
                assert_eq!(name(&outcome), expected, "{}: {outcome:?} for {example:?}", rule.id);
                if let (Outcome::Fail(finding), Some(message)) = (&outcome, &example.message) {
                    assert_eq!(&finding.message, message, "{}", rule.id);
                }
            }
        }
        assert!(
            !examples.pass.is_empty() && !examples.fail.is_empty(),
            "{} has no passing or no failing example",
            rule.id
        );
        assert!(!examples.unknown.is_empty(), "{} has no example of an unknown", rule.id);
        assert!(
            rule.references.iter().all(|reference| !reference.is_empty()) && !rule.references.is_empty(),
            "{}",
            rule.id
        );
    }
}

#[test]
fn what_is_unknown_counts_only_where_it_decides() {
    let mut facts = Facts::default();
    facts.insert(
        key::find("torch.version").unwrap(),
        Fact::seen(Value::from("2.9.0"), []).map(|_| crate::model::Version::parse("2.9.0").unwrap()),
    );
    facts.insert::<bool>(key::find("torch.use_nccl").unwrap(), Fact::Unknown(Gap::new("code")));
    let scope = eval::Scope::new(&facts);
    for (condition, expected) in [
        ("false && torch.use_nccl", "False"),
        ("torch.use_nccl && false", "False"),
        ("true || torch.use_nccl", "True"),
        ("torch.use_nccl || true", "True"),
        ("true && torch.use_nccl", "Unknown([Gap { why: \"code\", settle: None }])"),
        ("!torch.use_nccl", "Unknown([Gap { why: \"code\", settle: None }])"),
        ("has(torch.use_nccl)", "Unknown([Gap { why: \"code\", settle: None }])"),
        ("has(nccl.loaded.path)", "False"),
        ("has(torch.version) && torch.version == '2.9.0'", "True"),
        ("torch.use_nccl ? true : false", "Unknown([Gap { why: \"code\", settle: None }])"),
    ] {
        let truth = scope.eval(&Expression::compile(condition).unwrap());
        assert_eq!(format!("{truth:?}"), expected, "{condition}");
    }
    let truth = scope.eval(&Expression::compile("nccl.loaded.path == 'x'").unwrap());
    assert!(format!("{truth:?}").contains("cannot be evaluated"), "{truth:?}");
}

#[test]
fn mistakes_in_a_rule_are_told() {
    let good = "id: a/b\ntitle: t\nseverity: error\nsince: '0.1'\ncheck: 'true'\nmessage: m\nwhy: w\nfix: f\nreferences: [r]\nexamples: {pass: [], fail: []}\n";
    assert!(schema::parse("a/b", good).is_ok());
    for (from, to, why) in [
        ("id: a/b", "id: a/c", "its file's name says a/b"),
        ("'true'", "torch.versoin", "there is no fact 'torch.versoin'"),
        ("'true'", "'1 +'", "check: "),
        ("message: m", "message: '{nccl.lost}'", "there is no fact 'nccl.lost'"),
        ("message: m", "mesage: m", "unknown field `mesage`"),
        ("severity: error", "severity: fatal", "unknown variant `fatal`"),
    ] {
        let error = schema::parse("a/b", &good.replace(from, to)).unwrap_err().to_string();
        assert!(error.starts_with("rule a/b.yaml: ") && error.contains(why), "{error}");
    }
}

use crate::facts::key;

#[test]
fn a_fingerprint_survives_a_new_build_and_no_other_place() {
    let rules = RuleSet::builtin().unwrap();
    let of = |path: &str, layer: usize| {
        let at = vec![Site::File { layer, path: path.into(), within: Some("line 3".to_owned()) }];
        let finding = Finding { message: path.to_owned(), at, note: None };
        let rule = rules.iter().next().unwrap();
        Judgement { rule, outcome: Outcome::Fail(finding) }.fingerprint().unwrap()
    };
    let old = of("/usr/lib/python3.11/site-packages/torch-2.8.0.dist-info/libnccl.so.2.27.3", 3);
    assert_eq!(of("/usr/lib/python3.12/site-packages/torch-2.9.0.dist-info/libnccl.so.2", 5), old);
    assert_ne!(of("/opt/lib/libnccl.so.2", 3), old);
}
