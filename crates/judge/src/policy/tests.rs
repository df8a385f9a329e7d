use std::collections::BTreeMap;

use crate::rules::{ImageNames, Outcome, judge};
use facts::{Facts, key};
use model::{Fact, Gap, Site, Version};

use super::*;
use crate::shipped::shipped;

fn policy(text: &str) -> Result<Policy, DocumentError> {
    let mut policy = Policy::default();
    policy.add(Document { name: "ncclcheck.yaml", text }, shipped()).map(|()| policy)
}

fn rules(text: &str) -> Result<RuleSet, DocumentError> {
    policy(text)?.apply(RuleSet::builtin(shipped())?)
}

/// An image with NCCL's log on, torch 2.5, and something unknown.
fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.insert(key::TORCH_VERSION, Fact::seen(Version::parse("2.5.1").unwrap(), []));
    let debug = BTreeMap::from([("NCCL_DEBUG".to_owned(), "INFO".to_owned())]);
    let site = Site::Config("Env NCCL_DEBUG".to_owned());
    facts.insert(key::IMAGE_ENV, Fact::seen(debug.clone(), [site.clone()]));
    facts.insert(key::ENV_EFFECTIVE, Fact::seen(debug, [site]));
    facts.insert(key::RDMA_VERBS, Fact::Unknown(Gap::new("the layer is cut off")));
    facts
}

const IMAGE: Subject<'static> = Subject {
    names: ["registry.example/team/train:1", "docker://registry.example/team/train:1"],
    digests: [Some("sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), None],
};

/// The outcome of a rule under a policy, and the notices about waivers.
fn outcome(text: &str, id: &str) -> (Option<Outcome>, Vec<String>) {
    let policy = policy(text).unwrap();
    let rules = rules(text).unwrap();
    let facts = facts();
    let (judgements, notices) =
        policy.accept(judge(&rules, &facts, &ImageNames::default()), &IMAGE, Today::of("2026-06-01"));
    let found = judgements.into_iter().find(|judgement| judgement.rule.id == id);
    (found.map(|judgement| judgement.outcome), notices)
}

fn waiver(rest: &str) -> (Option<Outcome>, Vec<String>) {
    outcome(&format!("waivers:\n  - rule: env/debug-on\n    reason: for the pilot\n    {rest}\n"), "env/debug-on")
}

#[test]
fn every_profile_is_a_policy() {
    for profile in Profile::all(shipped()) {
        let policy = Policy::of_profile(profile.name, shipped()).unwrap().unwrap();
        assert!(policy.apply(RuleSet::builtin(shipped()).unwrap()).unwrap().iter().count() > 20, "{}", profile.name);
        assert!(!profile.about().unwrap().is_empty(), "{}", profile.name);
    }
    assert!(
        Policy::of_profile("x", shipped())
            .unwrap_err()
            .to_string()
            .contains("there is no profile 'x'; available: audit, ")
    );
}

#[test]
fn severities_and_selections() {
    let text = "rules:\n  severity: {env/*: info, env/debug-on: error, cuda/*: off}\n";
    let set = rules(text).unwrap();
    let severity = |id: &str| set.get(id).map(|rule| rule.severity);
    assert_eq!(severity("env/debug-on"), Some(Severity::Error));
    assert_eq!(severity("env/ld-preload"), Some(Severity::Info));
    assert_eq!(severity("cuda/cudart-missing"), None);
    assert_eq!(
        severity("torch/not-found"),
        RuleSet::builtin(shipped()).unwrap().get("torch/not-found").map(|rule| rule.severity)
    );
    let only = rules("rules: {only: [torch/*]}\nrequire: [torch.version >= 2.6]\n").unwrap();
    assert!(
        only.iter().all(|rule| rule.id.starts_with("torch/") || rule.is_required())
            && only.get("require/torch-version-2-6").is_some()
    );
}

#[test]
fn a_file_takes_precedence_over_its_profile() {
    let set = rules("profile: multi-node-rdma\nrules: {severity: {env/ib-disabled: warning}}\n").unwrap();
    assert_eq!(set.get("env/ib-disabled").unwrap().severity, Severity::Warning);
    assert_eq!(set.get("rdma/no-provider").unwrap().severity, Severity::Error);
    let mut chosen = Policy::of_profile("single-node", shipped()).unwrap().unwrap();
    chosen.add(Document { name: "p", text: "profile: multi-node-rdma\n" }, shipped()).unwrap();
    assert!(
        chosen.apply(RuleSet::builtin(shipped()).unwrap()).unwrap().get("rdma/no-provider").is_none(),
        "the profile chosen first counts"
    );
}

#[test]
fn requirements_fail_if_violated_or_if_a_fact_is_absent() {
    for (that, expected) in [
        ("torch.version >= 2.6", "Fail"),
        ("torch.version >= 2.5", "Pass"),
        ("torch.version < 2.10", "Pass"),
        ("nccl.loaded.version >= 2.18", "Fail"),
        ("has(nccl.loaded.version) ? version(nccl.loaded.version) > version('2') : true", "Pass"),
        ("torch.use_nccl", "Fail"),
        ("image.env.NCCL_DEBUG == 'INFO'", "Pass"),
        ("image.env.NCCL_ALGO == 'Ring'", "Fail"),
        ("!has(image.labels.vendor)", "Pass"),
        ("torch.version != 2.5.1", "Fail"),
        ("has(rdma.verbs)", "Unknown"),
        ("'sm_90' in torch.arch_list", "Fail"),
    ] {
        let (found, _) = outcome(&format!("require: [{{id: x, that: \"{that}\"}}]"), "require/x");
        assert!(format!("{:?}", found.unwrap()).starts_with(expected), "{that}");
    }
    let (found, _) = outcome("require: [torch.version >= 2.6]", "require/torch-version-2-6");
    let Some(Outcome::Fail(finding)) = found else { panic!() };
    assert_eq!(finding.message, "torch.version is 2.5.1; ncclcheck.yaml:1 requires torch.version >= 2.6");
}

#[test]
fn a_waiver_accepts_its_finding_until_it_expires() {
    let is_waived = |(outcome, notices): (Option<Outcome>, Vec<String>)| {
        matches!(outcome, Some(Outcome::Waived(_))) && notices.is_empty()
    };
    for good in [
        "expires: 2026-06-01",
        "expires: never",
        "expires: never\n    images: [\"registry.example/*\"]",
        "expires: never\n    images: [other, \"docker://*:1\"]",
        "expires: never\n    digest: sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    ] {
        assert!(is_waived(waiver(good)), "{good}");
    }
    // A waiver for other images is neither used nor unused here.
    for other in [
        "images: [\"registry.example/other/*\"]",
        "digest: sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
    ] {
        let (outcome, notices) = waiver(&format!("expires: never\n    {other}"));
        assert!(matches!(outcome, Some(Outcome::Fail(_))) && notices.is_empty(), "{other}: {notices:?}");
    }
    let (outcome, notices) = waiver("expires: 2026-05-31");
    let Some(Outcome::Fail(finding)) = outcome else { panic!() };
    assert_eq!(finding.note.unwrap(), "its waiver expired after 2026-05-31 (ncclcheck.yaml:2): for the pilot");
    assert!(notices.is_empty());
}

#[test]
fn a_waiver_with_a_fingerprint_covers_no_other_finding() {
    let rules = rules("about: nothing").unwrap();
    let facts = facts();
    let judgements = judge(&rules, &facts, &ImageNames::default());
    let fingerprint =
        judgements.iter().find(|judgement| judgement.rule.id == "env/debug-on").unwrap().fingerprint().unwrap();
    let (outcome, _) = waiver(&format!("expires: never\n    fingerprint: {}", fingerprint.split_at(8).0));
    assert!(matches!(outcome, Some(Outcome::Waived(_))));
    let (outcome, notices) = waiver("expires: never\n    fingerprint: '0123456789'");
    assert!(matches!(outcome, Some(Outcome::Fail(_))) && notices.len() == 1);
}

#[test]
fn a_valid_waiver_takes_precedence_over_an_expired_one() {
    let both = |first: &str, second: &str| {
        let entry =
            |expires: &str| format!("  - {{rule: env/debug-on, reason: until {expires}, expires: {expires}}}\n");
        outcome(&format!("waivers:\n{}{}", entry(first), entry(second)), "env/debug-on")
    };
    for (first, second, place) in [("2026-05-31", "2026-06-02", 3), ("2026-06-02", "2026-05-31", 2)] {
        let (Some(Outcome::Waived(waived)), notices) = both(first, second) else { panic!("it does not hold") };
        assert_eq!((&*waived.reason, waived.expires.as_deref()), ("until 2026-06-02", Some("2026-06-02")));
        assert_eq!(waived.place, format!("ncclcheck.yaml:{place}"));
        assert_eq!(notices.len(), 1, "the other is unused: {notices:?}");
    }
    let (Some(Outcome::Waived(waived)), _) = waiver("expires: never") else { panic!("it does not hold") };
    assert_eq!(waived.expires, None);
}

#[test]
fn an_expired_waiver_of_an_unknown_leaves_it_unknown() {
    let text = |expires: &str| {
        format!(
            "require: [{{id: verbs, that: has(rdma.verbs)}}]\n\
             waivers: [{{rule: require/verbs, reason: r, expires: {expires}, unknown: true}}]"
        )
    };
    for (expires, is_waived) in [("2026-05-31", false), ("2026-06-01", true)] {
        let (outcome, notices) = outcome(&text(expires), "require/verbs");
        assert_eq!(matches!(outcome, Some(Outcome::Waived(_))), is_waived, "{outcome:?}");
        assert_eq!(matches!(outcome, Some(Outcome::Unknown(_))), !is_waived, "{outcome:?}");
        assert!(notices.is_empty(), "{notices:?}");
    }
}

#[test]
fn a_waiver_of_a_passing_rule_is_unused() {
    let (outcome, notices) =
        outcome("waivers: [{rule: env/ld-preload, reason: r, expires: never, unknown: true}]", "env/ld-preload");
    assert!(!matches!(outcome, Some(Outcome::Waived(_))));
    assert_eq!(notices.len(), 1);
    assert!(!notices[0].contains("expired"), "{notices:?}");
}

#[test]
fn a_waiver_with_digest_and_images_needs_both() {
    let digest = "expires: never\n    digest: sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    for (images, is_waived) in [("other", false), ("registry.example/*", true)] {
        let (outcome, _) = waiver(&format!("{digest}\n    images: [\"{images}\"]"));
        assert_eq!(matches!(outcome, Some(Outcome::Waived(_))), is_waived, "{images}");
    }
}

#[test]
fn an_unused_waiver_gives_a_notice() {
    let (_, notices) = outcome("waivers: [{rule: env/ld-preload, reason: r, expires: 2026-01-01}]", "env/ld-preload");
    assert_eq!(
        notices[0],
        "unused waiver: env/ld-preload (ncclcheck.yaml:1) matches no finding in this image and has expired"
    );
}

#[test]
fn waivers_of_rules_that_are_not_evaluated_give_no_notice() {
    let text = "require: [run.nccl.ranks == 2, torch.version >= 2]\nwaivers: [{rule: env/ld-preload, reason: r, expires: never}]";
    let of_run = rules(text).unwrap().only(Rule::is_of_run);
    assert!(of_run.get("require/run-nccl-ranks-2").is_some() && of_run.get("require/torch-version-2").is_none());
    let (_, notices) =
        policy(text).unwrap().accept(judge(&of_run, &facts(), &ImageNames::default()), &IMAGE, Today::of("2026-06-01"));
    assert!(notices.is_empty(), "{notices:?}");
}

#[test]
fn an_unknown_is_accepted_only_on_request() {
    let text =
        "require: [{id: verbs, that: has(rdma.verbs)}]\nwaivers: [{rule: require/verbs, reason: r, expires: never}]";
    assert!(matches!(outcome(text, "require/verbs").0, Some(Outcome::Unknown(_))));
    let text = text.replace("never}", "never, unknown: true}");
    assert!(matches!(outcome(&text, "require/verbs").0, Some(Outcome::Waived(_))));
}

#[test]
fn mistakes_have_a_place_and_a_suggestion() {
    for (text, expected) in [
        ("profil: ci", "ncclcheck.yaml:1:1: unknown key 'profil'"),
        ("profil: ci", "did you mean profile?"),
        ("profile: cii", "ncclcheck.yaml:1:10: there is no profile 'cii'"),
        ("fail-on: fatal", "unknown value 'fatal'"),
        ("rules: {severity: {env/debugon: off}}", "ncclcheck.yaml:1:20: there is no rule 'env/debugon'"),
        ("rules: {severity: {env/debugon: off}}", "did you mean env/debug-on?"),
        ("rules: {severity: {env/debug-on: loud}}", "unknown value 'loud'"),
        ("rules: {only: [nothing/*]}", "there is no rule 'nothing/*'"),
        ("require: [torch.versoin >= 2.6]", "ncclcheck.yaml:1:11: there is no fact 'torch.versoin'"),
        ("require: [torch.path >= 2.6]", "cannot order text and a number"),
        ("require: [{that: torch.use_nccl, why: x}]", "unknown key 'why'"),
        ("require: [torch.use_nccl, torch.use_nccl]", "ncclcheck.yaml:1:27: this requirement is a duplicate"),
        ("require: [[]]", "a condition such as `torch.version >= 2.6`"),
        ("waivers: [{rule: env/debug-on, expires: never}]", "the key 'reason' is missing"),
        ("waivers: [{rule: env/debug-on, reason: ' ', expires: never}]", "the reason of a waiver must not be empty"),
        ("waivers: [{rule: env/debug-on, reason: r}]", "the key 'expires' is missing"),
        (
            "waivers: [{rule: env/debug-on, reason: r, expires: 2026-02-30}]",
            "ncclcheck.yaml:1:52: invalid date '2026-02-30'",
        ),
        ("waivers: [{rule: env/debug-onn, reason: r, expires: never}]", "did you mean env/debug-on?"),
        ("waivers: [{rule: env/debug-on, reason: r, expires: never, images: ['[']}]", "invalid pattern"),
        ("waivers: [{rule: env/debug-on, reason: r, expires: never, images: []}]", "must not be an empty list"),
        (
            "waivers: [{rule: env/debug-on, reason: r, expires: never, images: ['']}]",
            "an empty pattern matches no image",
        ),
        ("waivers: [{rule: env/debug-on, reason: r, expires: never, digest: }]", "missing value: expected a string"),
        ("require: [{id: ../x, that: torch.use_nccl}]", "invalid id '../x'"),
        ("require: ['!has(image.env.MY_SECRET)']", "test whether it is set: 'MY_SECRET' in image.other_env"),
        ("require: [\"'MY_SECRET' in image.env\"]", "'MY_SECRET' in image.other_env"),
        ("require: [!has(torch.path)]", "quote the value"),
        ("rules: {severity: {*: off}}", "quote the "),
        ("require: [torch.version = 2.6]", "use == to compare"),
        ("require: [torch.use_nccl and torch.cuda.build]", "use && for 'and'"),
        ("# nothing\n", "this file is empty"),
        ("waivers: [{rule: env/debug-on, reason: r, expires: never, digest: abc}]", "ncclcheck.yaml:1:67: "),
        (
            "waivers: [{rule: env/debug-on, reason: r, expires: never, fingerprint: xyz}]",
            "8 to 64 lower-case hexadecimal digits",
        ),
        (
            "waivers: [{rule: a/b, reason: r, expires: never, fingerprint: abcdefa}]",
            "8 to 64 lower-case hexadecimal digits",
        ),
        (
            "waivers: [{rule: a/b, reason: r, expires: never, fingerprint: abcdefgh}]",
            "8 to 64 lower-case hexadecimal digits",
        ),
        (
            "waivers: [{rule: a/b, reason: r, expires: never, fingerprint: ABCDEFAB}]",
            "8 to 64 lower-case hexadecimal digits",
        ),
        (&format!("waivers: [{{rule: a/b, reason: r, expires: never, fingerprint: a{:064}}}]", 0), "8 to 64"),
        ("waivers: [{rule: a/b, reason: ' ', expires: never}]", "the reason of a waiver must not be empty"),
        ("waivers: [{rule: a/b, reason: r, expires: never, images: []}]", "must not be an empty list"),
        ("waivers: [{rule: a/b, reason: r, expires: never, images: [a, '']}]", "an empty pattern matches no image"),
        ("waivers: [{rule: a/b, reason: r, expires: never, images: ['[']}]", "invalid pattern: "),
        ("waivers: [{rule: a/b, reason: r, expires: Never}]", "invalid date 'Never': use YYYY-MM-DD or 'never'"),
    ] {
        let error = rules(text).unwrap_err().to_string();
        assert!(error.contains(expected), "{text}:\n{error}\nand not\n{expected}");
    }
}

#[test]
fn a_baseline_accepts_known_problems_and_reports_fixed_ones() {
    let rules = rules("about: nothing").unwrap();
    let facts = facts();
    let mut baseline = Baseline::of_reports("known.json");
    baseline.add(&judge(&rules, &facts, &ImageNames::default()));
    let (judgements, notices) = baseline.accept(judge(&rules, &facts, &ImageNames::default()));
    let is_open = |outcome: &Outcome| matches!(outcome, Outcome::Fail(_) | Outcome::Unknown(_));
    assert!(!judgements.iter().any(|judgement| is_open(&judgement.outcome)) && notices.is_empty());
    let (_, notices) = baseline.accept(judge(&rules, &Facts::default(), &ImageNames::default()));
    assert!(notices.iter().any(|notice| notice == "env/debug-on of known.json is fixed in this image"), "{notices:?}");

    let is_off = self::rules("rules: {severity: {env/debug-on: off}}").unwrap();
    let is_waived = self::rules("waivers: [{rule: env/debug-on, reason: r, expires: never}]").unwrap();
    for rules in [&is_off, &is_waived] {
        let (_, notices) = baseline.accept(judge(rules, &facts, &ImageNames::default()));
        assert_eq!(notices, [""; 0], "nothing is fixed");
    }
    let mut judgements = judge(&rules, &Facts::default(), &ImageNames::default());
    for judgement in &mut judgements {
        judgement.outcome = Outcome::Unknown(Vec::new());
    }
    assert_eq!(baseline.accept(judgements).1, [""; 0], "nothing is known to be fixed");
}

#[test]
fn the_schemas_in_the_repository_are_these() {
    for (file, schema) in [("policy", super::schema()), ("rule", crate::rules::schema())] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("schema/{file}.schema.json"));
        if std::env::var_os("NCCLCHECK_BLESS").is_some() {
            std::fs::write(&path, &schema).unwrap();
        }
        assert_eq!(
            std::fs::read_to_string(&path).unwrap_or_default(),
            schema,
            "NCCLCHECK_BLESS=1 cargo test --workspace --lib schema writes it"
        );
    }
}

#[test]
fn options_choose_rules() {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let chosen = |only: &[&str], ignore: &[&str]| {
        let mut policy = Policy::default();
        policy.add(of_options(&words(only), &words(ignore)).unwrap().document(), shipped()).unwrap();
        policy.apply(RuleSet::builtin(shipped()).unwrap())
    };
    assert_eq!(of_options(&[], &[]), None);
    let ids = |rules: RuleSet| rules.iter().map(|rule| rule.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(chosen(&["env/debug-on,env/ib-disabled"], &["env/ib-disabled"]).unwrap()), ["env/debug-on"]);
    let all = RuleSet::builtin(shipped()).unwrap().iter().count();
    assert_eq!(chosen(&[], &["env/debug-on", "env/ib-disabled"]).unwrap().iter().count(), all - 2);
    // Without a line of the policy, which no user wrote.
    assert_eq!(
        chosen(&[], &["env/debug-off"]).unwrap_err().to_string(),
        "--ignore env/debug-off: there is no rule 'env/debug-off'\n  help: did you mean env/debug-on?"
    );
}

#[test]
fn comments_of_a_dockerfile_are_waivers() {
    let applied = |dockerfile: &str| {
        let mut policy = Policy::default();
        policy.add(of_dockerfile("Dockerfile", dockerfile).unwrap().document(), shipped())?;
        let rules = policy.apply(RuleSet::builtin(shipped()).unwrap())?;
        let facts = facts();
        let judgements = judge(&rules, &facts, &ImageNames::default());
        let (judgements, _) = policy.accept(judgements, &IMAGE, Today::of("2026-06-01"));
        let found = judgements.into_iter().find(|judgement| judgement.rule.id == "env/debug-on");
        Ok::<_, DocumentError>(format!("{:?}", found.unwrap().outcome))
    };
    assert_eq!(of_dockerfile("Dockerfile", "FROM a\n# ncclcheck reads this\n# ignore=env/debug-on\n"), None);
    let outcome =
        applied("FROM a\n  # ncclcheck ignore=env/ib-disabled,env/debug-on for the \"pilot\"  \nENV NCCL_DEBUG=INFO\n")
            .unwrap();
    assert!(outcome.contains("Dockerfile:2") && outcome.contains("for the \\\"pilot\\\""), "{outcome}");
    let reason = applied("# ncclcheck ignore=env/debug-on\nFROM a\n").unwrap_err().to_string();
    assert!(reason.starts_with("Dockerfile:1:") && reason.contains("must not be empty"), "{reason}");
    let rule = applied("FROM a\n\n# ncclcheck ignore=env/debug-off why\n").unwrap_err().to_string();
    assert!(rule.starts_with("Dockerfile:3:") && rule.contains("did you mean env/debug-on?"), "{rule}");
}
