//! Reports on invented images, judged by invented rules.

mod github;
mod gitlab;
mod hostile;
mod hosts;
mod html;
mod human;
mod in_toto;
mod json;
mod junit;
mod markdown;
mod sarif;
mod stored;
mod survey;

use std::collections::BTreeMap;

use facts::words::Linkage;
use facts::{Facts, key};
use judge::rules::{Finding, ImageNames, Judgement, Outcome, Problem, Rule, RuleSet, Waived, judge};
use model::{Digest, Fact, FailOn, Gap, Owner, Severity, Site, Version};

use super::{Collection, Format, Report, Style};
use image::dockerfile::Dockerfile;
use model::{ImageSummary, LayerSummary};

const TORCH: &str = "/usr/local/lib/python3.12/dist-packages/torch/lib/libtorch_cuda.so";
const NCCL: &str = "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2";

/// Id and document of a rule. `rest` holds the conditions, the message and the evidence.
fn rule(id: &str, severity: &str, title: &str, fix: &str, rest: &str) -> (String, String) {
    let fix = fix.replace('\n', "\n  ");
    let document = format!(
        "id: {id}\ntitle: {title}\nseverity: {severity}\nsince: '0.1'\n{rest}\nfix: |\n  {fix}\nwhy: >-\n  Without it the \
         ranks of a job talk over TCP sockets, and a step takes many times\n  as long as it should on the same hosts.\n\
         references: [https://example.org]\nexamples: {{pass: [], fail: []}}\n"
    );
    (id.to_owned(), document)
}

/// Rules that have every outcome between them.
fn rules() -> RuleSet {
    let documents = [
        rule(
            "nccl/missing-library",
            "error",
            "the NCCL that torch needs is missing",
            "RUN apt-get update && apt-get install -y --no-install-recommends libnccl2=2.27.5-1+cuda12.9 \\\n && rm -rf \
             /var/lib/apt/lists/*",
            "check: has(nccl.loaded.path)\nmessage: torch needs libnccl.so.2, which is nowhere in the image\n\
             evidence: [torch.nccl_linkage, torch.cuda.version]",
        ),
        rule(
            "env/debug-on",
            "warning",
            "NCCL's log is on",
            "Leave NCCL_DEBUG to the job that needs it, or write only what matters:\nENV NCCL_DEBUG=WARN",
            "applies: has(image.env)\ncheck: \"!has(image.env.NCCL_DEBUG)\"\n\
             message: \"NCCL_DEBUG={image.env.NCCL_DEBUG} is part of the image\"\nevidence: [image.env]",
        ),
        rule(
            "rdma/no-provider",
            "error",
            "no RDMA provider in user space",
            "RUN apt-get install -y ibverbs-providers",
            "applies: has(rdma.verbs)\ncheck: size(rdma.providers) > 0\nmessage: there is no provider",
        ),
        rule(
            "torch/not-found",
            "error",
            "no PyTorch in the image",
            "RUN pip install torch",
            "check: has(torch.version)\nmessage: no torch package was found",
        ),
    ];
    let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
    RuleSet::from_yaml(&documents).unwrap()
}

fn digest(digit: char) -> Option<Digest> {
    format!("sha256:{}", digit.to_string().repeat(64)).parse().ok()
}

fn layer(digit: char, size: u64, history: &str) -> LayerSummary {
    LayerSummary {
        digest: digest(digit),
        diff_id: digest('f'),
        diff_id_verified: true,
        compression: "gzip".to_owned(),
        size,
        read: size,
        unpacked: size * 5 / 2,
        entries: 1200,
        cached: false,
        shared: false,
        history: Some(history.to_owned()),
    }
}

fn image() -> ImageSummary {
    ImageSummary {
        reference: "torch:2.9.0".to_owned(),
        source: "docker://registry.example:5000/ml/torch:2.9.0".to_owned(),
        served_by: None,
        manifest: digest('a'),
        config: digest('b'),
        platform: "linux/amd64".parse().ok(),
        layers: vec![
            layer('1', 29_000_000, "/bin/sh -c #(nop) ADD file:0f1e2d in / "),
            layer(
                '2',
                3_900_000_000,
                "RUN |1 VERSION=2.9.0 /bin/sh -c pip install --no-cache-dir --index-url \
                 https://download.pytorch.org/whl/cu128   torch==2.9.0 # buildkit",
            ),
            layer('3', 512, "COPY train.py /workspace/ # buildkit"),
        ],
        empty_steps: vec![
            "/bin/sh -c #(nop)  CMD [\"bash\"]".to_owned(),
            "ENV TOKEN=secret NCCL_DEBUG=INFO NCCL_IB_HCA=mlx5".to_owned(),
        ],
        notes: Vec::new(),
    }
}

fn file(layer: usize, path: &str, within: Option<&str>) -> Site {
    Site::File { layer, path: path.into(), within: within.map(ToOwned::to_owned) }
}

fn version(text: &str) -> Version {
    Version::parse(text).unwrap()
}

fn map(entries: &[(&str, &str)]) -> BTreeMap<String, String> {
    entries.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// Facts of a good image.
fn good() -> Facts {
    let mut facts = Facts::default();
    let torch = || [file(1, TORCH, Some("DT_NEEDED"))];
    facts.insert(key::TORCH_VERSION, Fact::seen(version("2.9.0+cu128"), []));
    facts.insert(key::TORCH_CUDA_VERSION, Fact::seen(version("12.8"), torch()));
    facts.insert(key::TORCH_NCCL_LINKAGE, Fact::seen(Linkage::Shared, torch()));
    facts.insert(key::NCCL_LOADED_VERSION, Fact::seen(version("2.27.5"), [file(1, NCCL, None)]));
    facts.insert(key::NCCL_LOADED_PATH, Fact::seen(NCCL.into(), [file(1, NCCL, None)]));
    facts.insert(key::NCCL_LOADED_ROUTE, Fact::known("DT_RUNPATH $ORIGIN/../../nvidia/nccl/lib".to_owned()));
    facts.insert(key::RDMA_VERBS, Fact::known("/usr/lib/x86_64-linux-gnu/libibverbs.so.1.14.39.0".into()));
    facts.insert(key::RDMA_PROVIDERS, Fact::known(["efa", "mlx5"].map(ToOwned::to_owned).to_vec()));
    facts
}

/// Facts of an image without NCCL and RDMA, with NCCL's log on.
fn bad() -> Facts {
    let mut facts = good();
    for key in key::definitions![NCCL_LOADED_VERSION, NCCL_LOADED_PATH, NCCL_LOADED_ROUTE, RDMA_VERBS] {
        facts.insert_value(key, Fact::Absent);
    }
    facts.insert(key::RDMA_PROVIDERS, Fact::Absent);
    let debug = Site::Config("Env NCCL_DEBUG".to_owned());
    facts.insert(key::IMAGE_ENV, Fact::seen(map(&[("NCCL_DEBUG", "INFO")]), [debug]));
    facts
}

/// Facts of a good image whose NCCL could not be read.
fn hidden() -> Facts {
    let mut facts = good();
    let gap = Gap::new("the file system ends in the middle of layer 2").settled_by("check the whole image");
    for key in key::definitions![NCCL_LOADED_VERSION, NCCL_LOADED_PATH, NCCL_LOADED_ROUTE] {
        facts.insert_value(key, Fact::Unknown(gap.clone()));
    }
    facts
}

fn style(width: usize, verbose: bool) -> Style {
    Style { color: false, width, verbose, brief: false }
}

fn rendered(image: &ImageSummary, facts: &Facts, rules: Option<&RuleSet>, format: Format, style: &Style) -> String {
    let judgements = rules.map(|rules| judge(rules, facts, &ImageNames::default()));
    let report = report_of(image, facts, judgements.as_deref());
    let mut collection = Collection::default();
    collection.add(std::slice::from_ref(&report));
    let mut out = Vec::new();
    format.write(&[report], style, &mut out).unwrap();
    collection.name();
    format.finish(&collection, style, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// One document on images, each with its judgements.
fn document(format: Format, images: &[(ImageSummary, Vec<Judgement<'_>>)], dockerfile: Option<&str>) -> String {
    let dockerfile = dockerfile.map(|text| Dockerfile::parse("docker/Dockerfile".to_owned(), text).unwrap());
    let mut collection = Collection::new(Format::ALL);
    let facts = bad();
    for (image, judgements) in images {
        let report = report_of(image, &facts, Some(judgements));
        collection.add(&[Report { dockerfile: dockerfile.as_ref(), ..report }]);
    }
    finished(format, &collection)
}

fn finished(format: Format, collection: &Collection) -> String {
    let mut out = Vec::new();
    let mut collection = collection.clone();
    collection.name();
    format.finish(&collection, &style(80, false), &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Judgements with every outcome: a failed error, warning and info, two waived problems, two unknown outcomes of which
/// one counts, one that does not apply, and a pass.
fn outcomes(rules: &RuleSet) -> Vec<Judgement<'_>> {
    let failed =
        |message: &str, at: Vec<Site>| Finding { message: message.to_owned(), at, fix: String::new(), note: None };
    let accept = |problem| {
        Outcome::Waived(Waived {
            problem,
            reason: "the lab's switch has no RDMA".to_owned(),
            expires: Some("2027-01-31".to_owned()),
            place: "ncclcheck.yaml, line 4".to_owned(),
        })
    };
    let gap = || vec![Gap::new("layer 2 ends early").settled_by("check the whole image")];
    let at = vec![file(1, TORCH, Some("DT_NEEDED"))];
    let debug = vec![Site::Config("Env NCCL_DEBUG".to_owned())];
    let outcomes = [
        Outcome::Fail(Finding {
            note: Some("a waiver of it expired".to_owned()),
            ..failed("NCCL_DEBUG=INFO is part of the image", debug)
        }),
        Outcome::Fail(failed("it is noted", Vec::new())),
        Outcome::Unknown(gap()),
        Outcome::Fail(failed("torch needs libnccl.so.2, which is nowhere in the image", at.clone())),
        accept(Problem::Failure(failed("there is no provider", at))),
        Outcome::NotApplicable,
        accept(Problem::Unknown(gap())),
        Outcome::Unknown(gap()),
        Outcome::Pass,
    ];
    let with_fix = |rule: &Rule, outcome: Outcome| match outcome {
        Outcome::Fail(finding) => Outcome::Fail(Finding { fix: rule.fix.clone(), ..finding }),
        other => other,
    };
    let judgements = rules.iter().zip(outcomes);
    judgements.map(|(rule, outcome)| Judgement::new(rule, with_fix(rule, outcome))).collect()
}

/// Rules for [`outcomes`].
fn nine_rules() -> RuleSet {
    let ids = [
        ("env/debug-on", "warning"),
        ("env/noted", "info"),
        ("env/warned", "warning"),
        ("nccl/missing-library", "error"),
        ("rdma/no-provider", "error"),
        ("rdma/not-here", "error"),
        ("rdma/open", "error"),
        ("rdma/unknown", "error"),
        ("torch/found", "error"),
    ];
    let documents = ids.map(|(id, severity)| {
        rule(id, severity, &format!("title of {id}"), "Do it:\nENV A=1", "check: 'true'\nmessage: m")
    });
    let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
    RuleSet::from_yaml(&documents).unwrap()
}

#[test]
fn every_format_names_the_owner_of_a_finding() {
    let document = "id: a/b\ntitle: t\nseverity: error\nowner: arrangement\nsince: '0.1'\ncheck: 'false'\nmessage: m\n\
                    why: w\nfix: f\nreferences: [https://example.org]\nexamples: {pass: [], fail: []}\n";
    let rules = RuleSet::from_yaml(&[("a/b", document)]).unwrap();
    for format in Format::ALL {
        let text = rendered(&image(), &Facts::default(), Some(&rules), *format, &style(80, false));
        assert!(text.contains("arrangement"), "{}: {text}", format.name());
    }
}

/// A pass in which something is left is never the word alone, and services read the word that they know.
#[test]
fn what_a_pass_leaves_open_is_named() {
    let documents = [
        rule("a/lost", "warning", "t", "f", "check: 'false'\nmessage: m"),
        rule("a/open", "warning", "t", "f", "check: \"torch.version == '1'\"\nmessage: m"),
    ];
    let documents: Vec<_> = documents.iter().map(|(id, text)| (&**id, &**text)).collect();
    let rules = RuleSet::from_yaml(&documents).unwrap();
    let mut facts = Facts::default();
    facts.insert(key::TORCH_VERSION, Fact::Unknown(Gap::new("why")));
    let brief = Style { brief: true, ..style(80, false) };
    let formats = [Format::Human, Format::Table, Format::Markdown, Format::Html];
    for (format, style) in formats.map(|format| (format, style(80, false))).into_iter().chain([(Format::Human, brief)])
    {
        let text = rendered(&image(), &facts, Some(&rules), format, &style);
        assert!(text.contains("with 1 warning, 1 unknown"), "{}: {text}", format.name());
        let nothing = rendered(&image(), &facts, Some(&RuleSet::default()), format, &style);
        assert!(!nothing.contains("with 1"), "{}: {nothing}", format.name());
    }
    for (format, word) in
        [(Format::Csv, ",pass,"), (Format::Json, "\"verdict\":\"pass\""), (Format::Prometheus, "\"pass\"} 1")]
    {
        let text = rendered(&image(), &facts, Some(&rules), format, &style(80, false));
        assert!(text.contains(word), "{}: {text}", format.name());
    }
}

fn report_of<'a>(image: &'a ImageSummary, facts: &'a Facts, judgements: Option<&'a [Judgement<'a>]>) -> Report<'a> {
    Report {
        image,
        host: None,
        facts,
        judgements,
        fail_on: FailOn::Error,
        fail_for: &Owner::ALL,
        notices: &[],
        probe: None,
        rules: None,
        run: None,
        dockerfile: None,
    }
}

/// The report of a check, for people.
fn check(facts: &Facts, style: &Style) -> String {
    rendered(&image(), facts, Some(&rules()), Format::Human, style)
}

#[test]
fn the_page_of_a_rule_names_the_release_that_brought_it() {
    let page = crate::pages::rule(rules().get("env/debug-on").unwrap());
    assert!(page.contains("**. Since 0.1.\n"), "{page}");
}

/// The report of an inspection, for people.
fn inspect(facts: &Facts, style: &Style) -> String {
    rendered(&image(), facts, None, Format::Human, style)
}
