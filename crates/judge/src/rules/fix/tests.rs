use std::fmt::Write as _;
use std::sync::LazyLock;

use crate::rules::{Evidence, Outcome, RuleSet};
use facts::Facts;
use facts::key;
use facts::words::Installer;
use model::{Gap, Version};

use super::*;
use crate::shipped::shipped;

fn facts() -> Facts {
    let mut facts = Facts::default();
    facts.insert(key::TORCH_VERSION, Fact::from(Version::parse("2.9.0+cu128")));
    facts.insert(key::TORCH_CUDA_VERSION, Fact::from(Version::parse("12.8")));
    facts.insert(key::TORCH_GIT_VERSION, Fact::known("a b; rm -rf /".to_owned()));
    facts.insert(key::TORCH_NCCL_PIN, Fact::Unknown(Gap::new("not read")));
    facts
}

/// The names of an image that every command takes.
fn names() -> ImageNames {
    let name = Some("lab/train:7".to_owned());
    ImageNames { engine: name.clone(), reference: name.clone(), run: name }
}

fn filled(text: &str, facts: &Facts, names: &ImageNames) -> String {
    FixTemplate::parse(text, &Condition::compile).unwrap().fill(&Scope::new(facts), &FixSubject { names, at: &[] })
}

#[test]
fn steps_have_the_facts_of_the_image() {
    for (text, expected) in [
        ("Restore it:\n  RUN {install} torch=={torch.version|public}", "Restore it:\n  RUN pip install torch==2.9.0"),
        ("From {torch.cuda.version|index}, {torch.version}.", "From cu128, 2.9.0+cu128."),
        // Unknown, absent, and without the part.
        ("One.\n  RUN a {torch.nccl_pin}\nTwo.", "Two."),
        ("One {nccl.loaded.version}.\nstill one:\n  RUN a\nTwo.", "Two."),
        ("  RUN x\nIn {torch.git_version|index}.", "  RUN x"),
        // The alternative of an alternative.
        ("A {torch.nccl_pin}\nOtherwise: B {torch.nccl_pin}\nOtherwise: C\nD", "C\nD"),
        ("A {torch.version}\nOtherwise: B\nOtherwise: C", "A 2.9.0+cu128"),
        ("[torch.cuda.version == '12.8'] A\nOtherwise: B", "A"),
        ("[torch.cuda.version == '13.0'] A\nOtherwise: [torch.nccl_pin == 'x'] B\nOtherwise: C", "C"),
        // Not harmless in a command.
        ("A:\n  RUN a {torch.git_version}\nOtherwise: B", "B"),
        // Braces and brackets of commands.
        (
            "A `{medium: Memory}`:\n  awk '{print}' ${HOME} {{.Name}} [a] b",
            "A `{medium: Memory}`:\n  awk '{print}' ${HOME} {{.Name}} [a] b",
        ),
        ("A first\nline.\n  RUN a \\\n   && b\n  RUN c\nB.", "A first\nline.\n  RUN a \\\n   && b\n  RUN c\nB."),
    ] {
        assert_eq!(filled(text, &facts(), &ImageNames::default()), expected, "{text}");
    }
}

#[test]
fn commands_have_the_name_that_their_program_takes() {
    let text = "The IMAGE:\n  docker run IMAGE a\n  ncclcheck inspect IMAGE\n  ncclcheck probe --quick IMAGE\n  docker tag IMAGES";
    let expected = |engine: &str, reference: &str, run: &str| {
        format!(
            "The IMAGE:\n  docker run {engine} a\n  ncclcheck inspect {reference}\n  ncclcheck probe --quick {run}\n  docker tag IMAGES"
        )
    };
    let reference = Some("docker://lab/train:7".to_owned());
    let names = ImageNames { engine: Some("lab/train:7".to_owned()), reference: reference.clone(), run: reference };
    let named = expected("lab/train:7", "docker://lab/train:7", "docker://lab/train:7");
    assert_eq!(filled(text, &facts(), &names), named);
    let in_place =
        ImageNames { engine: None, reference: Some("root:/".to_owned()), run: Some("--in-place".to_owned()) };
    assert_eq!(filled(text, &facts(), &in_place), expected("…", "root:/", "--in-place"));
    // A step whose command would not be accepted is left out.
    assert_eq!(filled(text, &facts(), &ImageNames::default()), "");
}

#[test]
fn values_cannot_add_markup_to_prose() {
    for (value, is_shown) in [
        ("NCCL_IB_HAC (did you mean NCCL_IB_HCA?)", true),
        ("[a](b)", false),
        ("`a`", false),
        ("https://evil.example", false),
        ("www.evil.example", false),
        ("@user", false),
        ("a\nb", false),
        ("<b>", false),
        ("$(a)", false),
    ] {
        assert_eq!(is_prose(value), is_shown, "{value}");
    }
    for value in ["a b", "a;b", "$a", "'a'", "a|b", "a\nb", "a&b", "`a`", "(a)", "a*", "~a", "#a"] {
        assert!(!is_word(value), "{value}");
    }
}

#[test]
fn mistakes_in_a_fix_have_a_place() {
    for (text, part, what) in [
        ("A {nccl.lost}.", 2..13, "there is no fact 'nccl.lost'"),
        ("A\n  b\nC {torch.version|mayor}.", 8..29, "there is no filter 'mayor'"),
        ("A\nOtherwise: [torch.lost == 'a'] B", 14..24, "there is no fact 'torch.lost'"),
    ] {
        let error = FixTemplate::parse(text, &Condition::compile).unwrap_err();
        assert_eq!((error.part, &*error.what), (part, what), "{text}");
    }
}

#[test]
fn pages_have_words_in_place_of_conditions() {
    let text =
        "[torch.installer == 'uv'] A:\n  RUN {reinstall} {torch.nccl_pin}\nOtherwise: [has(torch.path)] {remove}.";
    let expected = "Where `torch.installer == 'uv'`: A:\n  RUN pip install --force-reinstall --no-deps {torch.nccl_pin}\n\
                    Otherwise: Where `has(torch.path)`: Remove the line that sets it.";
    assert_eq!(FixTemplate::page(text), expected);
}

/// Text that backs the versions of a rule's fix: its conditions and explanation, and the tables.
fn backing(rule: &crate::rules::Rule) -> String {
    let (applies, check) = rule.conditions();
    let mut text = format!("{check}\n{}\n{}\n", applies.unwrap_or_default(), rule.why);
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../rules/tables")).unwrap() {
        text.push_str(&std::fs::read_to_string(entry.unwrap().path()).unwrap());
    }
    text
}

/// Versions in a text: numbers with dots, and the numbers of CUDA releases in names of wheels and indexes.
fn versions(text: &str) -> Vec<String> {
    static PATTERN: LazyLock<Regex> =
        LazyLock::new(|| Regex::new(r"(?:^|[^\w.:/])v?(\d+(?:\.\d+)+)(?:$|[^\w:])|\bcu(\d{2,3})\b|-(\d{3})=").unwrap());
    let found = PATTERN.captures_iter(text).filter_map(|found| found.iter().skip(1).flatten().next());
    found.map(|found| found.as_str().to_owned()).filter(|version| version != "127.0.0.1").collect()
}

/// True where a version is a text of the facts, or a part of one: `128` of 12.8, `12` of nvidia-nccl-cu12.
fn is_backed(version: &str, facts: &str, backing: &str) -> bool {
    let split = version.split_at_checked(2).filter(|(_, minor)| !minor.is_empty());
    let dotted = split.map(|(major, minor)| format!("{major}.{minor}"));
    // `2.9.0` is not a version of `12.9.0`.
    let has = |text: &str, wanted: &str| {
        let pattern = format!(r"(?:^|[^\d.]){}(?:$|[^\d])", regex::escape(wanted));
        Regex::new(&pattern).unwrap().is_match(text)
    };
    has(facts, version) || has(backing, version) || dotted.is_some_and(|dotted| has(facts, &dotted))
}

#[test]
fn no_fix_has_a_placeholder_or_a_version_of_another_image() {
    let placeholder =
        Regex::new(r"\{[a-z_]+[.|][^}]*\}|\{(?:install|reinstall|uninstall|remove)\}|\b(?:IMAGE|VERSION|PACKAGE|HOST|INDEX|INTERFACE|NODE|LIBRARY|DIRECTORY|NAME=VALUE)\b|<[a-z]+>")
            .unwrap();
    let mut faults = String::new();
    for rule in RuleSet::builtin(shipped()).unwrap().iter() {
        let backing = backing(rule);
        for example in &rule.examples().fail {
            for installer in
                [None, Some(Installer::Pip), Some(Installer::Uv), Some(Installer::Conda), Some(Installer::Apt)]
            {
                let mut facts = example.value.facts();
                facts.insert(key::TORCH_INSTALLER, Fact::from(installer));
                let said =
                    example.value.known().map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join("\n");
                let Outcome::Fail(finding) = rule.judge(&Scope::new(&facts), &names()) else {
                    panic!("{} does not fail", rule.id)
                };
                let place = format!("{} line {} {installer:?}", rule.id, example.referenced.line());
                let shown = finding.fix.replace("NCCL_DEBUG=VERSION", "");
                if let Some(found) = placeholder.find(&shown) {
                    let _ = writeln!(faults, "{place}: placeholder {}", found.as_str());
                }
                for version in versions(&shown) {
                    if !is_backed(&version, &said, &backing) {
                        let _ = writeln!(faults, "{place}: version {version}");
                    }
                }
                let first = finding.fix.chars().next();
                if !first.is_some_and(|first| first.is_uppercase() || matches!(first, '`' | ' ')) {
                    let _ = writeln!(faults, "{place}: no sentence: {:?}", finding.fix);
                }
            }
        }
    }
    assert!(faults.is_empty(), "{faults}");
}

/// True for evidence that is a variable, which a launch may set as well as the image.
fn is_setting(evidence: &Evidence) -> bool {
    // The fix of the version that a base image notes is a command.
    ["env.", "image.env", "nvidia."].iter().any(|area| evidence.key.name.starts_with(area))
        && evidence.key.name != "env.nccl_version_note"
}

/// The image, a launch file and an option can each set a variable, and the places of a finding say which did.
#[test]
fn no_message_names_the_image_as_the_place_of_a_setting() {
    let owner = Regex::new(r"(?i)\bimage(?: does not)? sets?\b|\bimage's [A-Z]+_").unwrap();
    let mut rules = 0;
    for rule in RuleSet::builtin(shipped()).unwrap().iter().filter(|rule| rule.evidence.iter().any(is_setting)) {
        rules += 1;
        for example in &rule.examples().fail {
            let facts = example.value.facts();
            let Outcome::Fail(finding) = rule.judge(&Scope::new(&facts), &ImageNames::default()) else {
                panic!("{} does not fail", rule.id)
            };
            assert!(!owner.is_match(&finding.message), "{}: {}", rule.id, finding.message);
        }
        assert!(!owner.is_match(&rule.title), "{}: {}", rule.id, rule.title);
    }
    assert!(rules > 35, "{rules} rules");
}

/// A setting of a launch file or of a file in the image is not in the Dockerfile's ENV.
#[test]
fn a_fix_names_the_place_of_a_setting() {
    let file = |path: &str, line: &str| Site::File { layer: 0, path: path.into(), within: Some(line.to_owned()) };
    let launch = |file: &str, line| Site::Launch { file: file.to_owned(), line, variable: "NCCL_X".to_owned() };
    let origins = [
        (Site::Config("Env NCCL_X".to_owned()), "the Dockerfile's ENV"),
        (launch("--env", None), "--env"),
        (launch("job.sh", Some(4)), "line 4 of job.sh"),
        (file("etc/nccl.conf", "line 2, NCCL_X"), "line 2 of /etc/nccl.conf"),
        (file("usr/local/bin/start.sh", "line 3, NCCL_X"), "line 3 of /usr/local/bin/start.sh"),
        (file("opt/conda/etc/conda/activate.d/x.sh", "line 1"), "line 1 of /opt/conda/etc/conda/activate.d/x.sh"),
    ];
    let mut faults = String::new();
    let mut rules = 0;
    for rule in RuleSet::builtin(shipped()).unwrap().iter() {
        // The fixes of these two add variables that nothing sets.
        let is_added = ["cuda/gpu-variables-unset", "cuda/legacy-image"].contains(&&*rule.id);
        if is_added || rule.evidence.is_empty() || !rule.evidence.iter().all(is_setting) {
            continue;
        }
        rules += 1;
        for (example, (site, place)) in
            rule.examples().fail.iter().flat_map(|example| origins.iter().map(move |origin| (example, origin)))
        {
            let facts = example.value.facts();
            let subject = FixSubject { names: &ImageNames::default(), at: std::slice::from_ref(site) };
            let fix = rule.remedy.fill(&Scope::new(&facts), &subject);
            if !fix.contains(place) {
                let _ = writeln!(faults, "{}: {place} is not in: {fix}", rule.id);
            }
            let is_config = matches!(site, Site::Config(_));
            for wrong in ["Dockerfile", "ENV ", "base image", "image's value"] {
                if !is_config && fix.contains(wrong) {
                    let _ = writeln!(faults, "{}: {wrong:?} for {place} in: {fix}", rule.id);
                }
            }
        }
    }
    assert!(rules > 30, "{rules} rules");
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn the_search_for_foreign_versions_finds_them() {
    let facts = "torch.cuda.version \"12.8\"\ntorch.nccl_pin \"nvidia-nccl-cu12==2.27.5\"";
    let backing = "since 2.26.2";
    for (text, foreign) in [
        ("RUN pip install nvidia-nccl-cu12==2.27.5", vec![]),
        ("whl/cu128 and 2.26.2", vec![]),
        ("whl/cu126, torch==2.9.0", vec!["126", "2.9.0"]),
        ("nvidia-fabricmanager-580=x", vec!["580"]),
        ("0000:16:00.0 and 127.0.0.1", vec![]),
    ] {
        let mut found = versions(text);
        found.retain(|version| !is_backed(version, facts, backing));
        assert_eq!(found, foreign, "{text}");
    }
}
