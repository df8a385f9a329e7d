use facts::key;
use model::{Fact, Gap};

use super::*;
use crate::shipped::shipped;

#[test]
fn examples_have_their_outcomes_and_detect_every_mutation() {
    for rule in RuleSet::builtin(shipped()).unwrap().iter() {
        let trial = rule.try_out(true);
        assert_eq!(trial.failures, [""; 0]);
        assert_eq!(trial.survivors, [""; 0]);
        assert!(!rule.references.is_empty() && !rule.since.is_empty(), "{}", rule.id);
    }
}

#[test]
fn built_in_rules_are_read_without_checks_but_have_none_to_fail() {
    for (id, json) in shipped().rules() {
        let document = Document { name: id, text: shipped().rule(id).unwrap() };
        let checked = Rule::parse(id, document).unwrap();
        let trusted = Rule::builtin(id, json, shipped()).unwrap();
        assert!(trusted.examples.get().is_none() && trusted.examples() == checked.examples(), "{id}");
        assert_eq!(trusted.conditions(), checked.conditions());
        assert_eq!((&trusted.fix, &trusted.explains), (&checked.fix, &checked.explains));
    }
}

#[test]
fn the_beginning_of_a_condition_decides_as_the_whole_does() {
    let mut decided = 0;
    for rule in RuleSet::builtin(shipped()).unwrap().iter() {
        for facts in rule.examples().iter().map(|example| example.value.facts()) {
            let scope = eval::Scope::new(&facts);
            for condition in rule.applies.iter().chain([&rule.check]) {
                decided += usize::from(condition.beginning().is_some());
                assert_eq!(scope.eval(condition), scope.truth_of(condition.root()), "{}", rule.id);
            }
        }
    }
    assert!(decided > 500, "{decided}");
    for text in
        ["has(torch.version) ? false : true", "has(torch.version) && false || true", "has(torch.version) == true"]
    {
        assert!(Condition::trusted(text.to_owned()).beginning().is_none(), "{text}");
    }
}

#[test]
fn an_unknown_fact_counts_only_if_it_decides() {
    let mut facts = Facts::default();
    facts.insert(key::TORCH_VERSION, Fact::known(model::Version::parse("2.9.0").unwrap()));
    facts.insert(key::TORCH_USE_NCCL, Fact::Unknown(Gap::new("code")));
    let scope = eval::Scope::new(&facts);
    for (condition, expected) in [
        ("false && torch.use_nccl", "False"),
        ("torch.use_nccl && false", "False"),
        ("true || torch.use_nccl", "True"),
        ("torch.use_nccl || true", "True"),
        ("true && torch.use_nccl", "Unknown([Gap { why: \"code\", settle: None, is_transient: false }])"),
        ("!torch.use_nccl", "Unknown([Gap { why: \"code\", settle: None, is_transient: false }])"),
        ("has(torch.use_nccl)", "Unknown([Gap { why: \"code\", settle: None, is_transient: false }])"),
        ("has(nccl.loaded.path)", "False"),
        ("has(torch.version) && torch.version == '2.9.0'", "True"),
        ("torch.use_nccl ? true : false", "Unknown([Gap { why: \"code\", settle: None, is_transient: false }])"),
    ] {
        let truth = scope.eval(&Condition::compile(condition).unwrap());
        assert_eq!(format!("{truth:?}"), expected, "{condition}");
    }
    let truth = scope.eval(&Condition::compile("nccl.loaded.path == 'x'").unwrap());
    assert!(format!("{truth:?}").contains("uses the value of nccl.loaded.path, which is absent"), "{truth:?}");
}

#[test]
fn one_element_may_decide_without_the_unknown_fact() {
    let mut facts = Facts::default();
    facts.insert(key::TORCH_ARCH_LIST, Fact::seen(vec!["sm_80".to_owned(), "sm_90".to_owned()], []));
    let environment = std::collections::BTreeMap::from([("A".to_owned(), "1".to_owned())]);
    facts.insert(key::IMAGE_ENV, Fact::seen(environment, []));
    facts.insert::<bool>(key::TORCH_USE_NCCL, Fact::Unknown(Gap::new("code")));
    facts.insert(key::TORCH_PATH, Fact::Unknown(Gap::new("path")));
    facts.insert::<Vec<String>>(key::RDMA_PROVIDERS, Fact::Unknown(Gap::new("providers")));
    let scope = eval::Scope::new(&facts);
    for (condition, expected) in [
        ("torch.arch_list.exists(a, a == 'sm_90' || torch.use_nccl)", "True"),
        ("torch.arch_list.exists(a, a == 'sm_70' && torch.use_nccl)", "False"),
        ("torch.arch_list.exists(a, a == 'sm_90' && torch.use_nccl)", "code"),
        ("torch.arch_list.all(a, a == 'sm_80' && torch.use_nccl)", "False"),
        ("torch.arch_list.all(a, a != 'sm_70' || torch.use_nccl)", "True"),
        ("torch.arch_list.all(a, a == 'sm_80' || torch.use_nccl)", "code"),
        ("image.env.exists(name, name == 'A' || torch.use_nccl)", "True"),
        ("image.env.exists(name, name == 'B' && torch.use_nccl)", "False"),
        ("rdma.providers.exists(a, a == torch.path)", "path providers"),
        // A gap on both sides counts once.
        ("torch.use_nccl && torch.path == 'x' && torch.use_nccl", "code path"),
        ("torch.use_nccl || torch.path == 'x'", "code path"),
        ("torch.use_nccl ? true : torch.path == 'x'", "code"),
        ("(1 == 1 ? torch.path == 'x' : torch.use_nccl)", "path"),
        ("(1 == 2 ? torch.path == 'x' : torch.use_nccl)", "code"),
        ("has(nccl.loaded.path) && torch.use_nccl", "False"),
        ("!(torch.use_nccl && false)", "True"),
    ] {
        let shown = match scope.eval(&Condition::compile(condition).unwrap()) {
            eval::ConditionTruth::Unknown(mut gaps) => {
                gaps.sort_by(|a, b| a.why.cmp(&b.why));
                gaps.into_iter().map(|gap| gap.why).collect::<Vec<_>>().join(" ")
            }
            known => format!("{known:?}"),
        };
        assert_eq!(shown, expected, "{condition}");
    }
}

#[test]
fn a_condition_that_cannot_be_evaluated_is_unknown_for_its_own_reason() {
    let mut facts = Facts::default();
    facts.insert(key::TORCH_ARCH_LIST, Fact::seen(vec!["sm_80".to_owned()], []));
    let scope = eval::Scope::new(&facts);
    for (condition, why, settle) in [
        ("nccl.loaded.path == 'x'", "uses the value of nccl.loaded.path", "test has(nccl.loaded.path) first"),
        ("torch.arch_list[5] == 'x'", "cannot be evaluated: ", "fix the rule"),
    ] {
        let eval::ConditionTruth::Unknown(gaps) = scope.eval(&Condition::compile(condition).unwrap()) else {
            panic!("{condition} is known")
        };
        assert!(gaps[0].why.contains(why) && gaps[0].settle.as_ref().unwrap().contains(settle), "{gaps:?}");
    }
}

const GOOD: &str = "\
id: a/b
title: t
severity: error
check: 'true'
message: m
why: w
fix: f
";

fn mistake(from: &str, to: &str) -> String {
    let text = GOOD.replace(from, to);
    Rule::parse("a/b", Document { name: "a/b.yaml", text: &text }).unwrap_err().to_string()
}

#[test]
fn mistakes_in_a_rule_have_a_place() {
    assert!(Rule::parse("a/b", Document { name: "a/b.yaml", text: GOOD }).is_ok());
    for (from, to, expected) in [
        ("id: a/b", "id: a/c", "a/b.yaml:1:5: the id is 'a/c', but the file's folder and name give 'a/b'"),
        (
            "'true'",
            "torch.versoin == '2'",
            "a/b.yaml:4:8: there is no fact 'torch.versoin'\n  4 | check: torch.versoin == '2'\n    |        ^^^^^^^^^^^^^\n  help: did you mean torch.version?",
        ),
        ("'true'", "1 +", "a/b.yaml:4:11: invalid CEL: "),
        (
            "'true'",
            "\"has(torch.version) && torch.version < '2.6'\"",
            "a/b.yaml:4:31: text compares by character: '2.10' is less than '2.9'\n",
        ),
        ("'true'", "torch.version >= 2.6", "help: write version(torch.version) and version('2.6')"),
        ("'true'", "version(torch.version) >= 2.6", "a/b.yaml:4:34: cannot order a version and a number"),
        ("'true'", "version('x') == version('2')", "'x' is not a version"),
        ("'true'", "torch.version", "a/b.yaml:4:8: its value is text, but a condition must be true or false"),
        ("'true'", "torch.use_nccl == 'yes'", "true or false is never equal to text"),
        ("'true'", "nccl.copies.exists(c, c.pth == '/')", "a/b.yaml:4:30: records of nccl.copies have no field 'pth'"),
        ("'true'", "nccl.copies.exist(c, true)", "there is no function 'exist'"),
        ("'true'", "torch.path.mathces('x')", "did you mean matches?"),
        ("'true'", "torch.path.matches('(')", "invalid regular expression: unclosed group"),
        ("'true'", "torch.path.contains(3)", "contains takes text, but this is a whole number"),
        ("'true'", "size(torch.path, 2) > 1", "wrong number of arguments: size takes 1, as in "),
        ("'true'", "\"'sm_90' in torch.path\"", "help: use text.contains(part)"),
        ("'true'", "90 in torch.arch_list", "the list contains text, never a whole number"),
        ("'true'", "torch", "facts of 'torch': "),
        ("'true'", "size(torch) > 1", "there is no fact 'torch'"),
        ("'true'", "torch.version.major == '2'", "text has no field 'major'"),
        ("'true'", "torch.path && true", "this is text, not true or false"),
        ("'true'", "torch.path == null", "use has() to test for an absent fact"),
        ("message: m", "message: '{nccl.lost}'", "a/b.yaml:5:11: there is no fact 'nccl.lost'"),
        ("message: m", "message: 'a {nccl.copies'", "a/b.yaml:5:13: this brace is not closed"),
        ("message: m", "mesage: m", "a/b.yaml:5:1: unknown key 'mesage'"),
        ("severity: error", "severity: fatal", "a/b.yaml:3:11: unknown value 'fatal'"),
        ("fix: f", "fix: f\nevidence: [nccl.copys]", "did you mean nccl.copies?"),
        (
            "fix: f",
            "fix: f\nexamples: {pass: [{facts: {torch.version: 2.6}}]}",
            "a/b.yaml:8:43: torch.version must be a version, as a string",
        ),
        ("fix: f", "fix: f\nexamples: {pass: [{facts: {torch.use_nccl: on}}]}", "torch.use_nccl must be true or false"),
        ("fix: f", "fix: f\nexamples: {pass: [{unknown: [torch.use]}]}", "there is no fact 'torch.use'"),
    ] {
        let error = mistake(from, to);
        assert!(error.contains(expected), "{to}:\n{error}\nand not\n{expected}");
    }
}

#[test]
fn a_loop_evaluates_only_as_far_as_it_must() {
    let mut facts = Facts::default();
    facts.insert(key::TORCH_ARCH_LIST, Fact::known(["sm_80", "sm_90"].map(ToOwned::to_owned).to_vec()));
    facts.insert(key::CUDA_CUDART_MISSING, Fact::known(Vec::new()));
    facts.insert(key::TORCH_USE_NCCL, Fact::Unknown(Gap::new("code")));
    let scope = eval::Scope::new(&facts);
    for (condition, expected) in [
        ("torch.arch_list.exists(a, a == 'sm_90' || torch.use_nccl)", "True"),
        ("torch.arch_list.exists(a, a == 'sm_70' || torch.use_nccl)", "Unknown"),
        ("torch.arch_list.all(a, a == 'sm_90' && torch.use_nccl)", "False"),
        ("torch.arch_list.all(a, torch.use_nccl)", "Unknown"),
        ("cuda.cudart_missing.all(a, torch.use_nccl)", "True"),
        ("cuda.cudart_missing.exists(a, torch.use_nccl)", "False"),
        ("size(torch.arch_list.filter(a, a == 'x' || torch.use_nccl)) == 2", "Unknown"),
    ] {
        let condition = Condition::compile(condition).unwrap();
        let truth = format!("{:?}", scope.eval(&condition));
        assert!(truth.starts_with(expected), "{condition:?}: {truth}");
    }
}

#[test]
fn a_fingerprint_survives_a_rebuild_but_not_a_move() {
    let rules = RuleSet::builtin(shipped()).unwrap();
    let of = |path: &str, layer: usize| {
        let at = vec![Site::File { layer, path: path.into(), within: Some("line 3".to_owned()) }];
        let finding = Finding { message: path.to_owned(), at, fix: String::new(), note: None };
        let rule = rules.iter().next().unwrap();
        Judgement::new(rule, Outcome::Fail(finding)).fingerprint().unwrap()
    };
    let old = of("/usr/lib/python3.11/site-packages/torch-2.8.0.dist-info/libnccl.so.2.27.3", 3);
    assert_eq!(of("/usr/lib/python3.12/site-packages/torch-2.9.0.dist-info/libnccl.so.2", 5), old);
    assert_ne!(of("/opt/lib/libnccl.so.2", 3), old);
}
