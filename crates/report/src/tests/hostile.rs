use super::*;
use facts::records::NcclCopy;

/// Text that controls terminals and build logs unless it is escaped.
const HOSTILE: &str = "x\u{1b}[2J\u{9b}31m\u{7}\r\n::error::a\n ::set-output name=b::c ::stop-commands::d \u{202e}e\u{2066} ##[group]f \
                       ##vso[task.complete]g\u{7f}";

pub(super) fn hostile_image() -> ImageSummary {
    let text = || format!("::notice::h {HOSTILE}");
    let mut image = image();
    image.reference = text();
    image.source = text();
    image.platform = Some(model::Platform { os: text(), architecture: text(), variant: Some(text()) });
    for layer in &mut image.layers {
        layer.history = Some(text());
    }
    image.empty_steps = vec![format!("ENV {HOSTILE}={HOSTILE}"), format!("ENV NCCL_DEBUG={HOSTILE}")];
    image.notes = vec![text(), text()];
    image
}

pub(super) fn hostile_facts() -> Facts {
    let text = || format!("::notice::h {HOSTILE}");
    let entries = || BTreeMap::from([(text(), text()), ("NCCL_DEBUG".to_owned(), text())]);
    let at = || [Site::Config(text()), file(1, HOSTILE, Some(HOSTILE)), Site::Config("Env NCCL_DEBUG".to_owned())];
    let mut facts = bad();
    facts.insert(key::IMAGE_ENV, Fact::seen(entries(), at()));
    facts.insert(key::IMAGE_LABELS, Fact::seen(entries(), at()));
    let copy = || NcclCopy { path: Some(text()), version: Some(text()), ..NcclCopy::default() };
    facts.insert(key::NCCL_COPIES, Fact::seen(vec![copy(), copy()], at()));
    facts.insert(key::NCCL_LOADED_ROUTE, Fact::seen(text(), at()));
    facts.insert(key::TORCH_INSTALLS, Fact::seen(vec![text(), text()], at()));
    facts.insert(key::TORCH_VERSION, Fact::seen(version(&format!("2.9{HOSTILE}")), at()));
    facts.insert(key::RDMA_VERBS, Fact::Unknown(Gap::new(text()).settled_by(text())));
    facts.insert(key::RDMA_PROVIDERS, Fact::Unknown(Gap::new(text()).settled_by(text())));
    facts
}

#[test]
fn hostile_images_control_neither_terminals_nor_build_logs() {
    let rules = rules();
    for width in (40..=100).step_by(3) {
        for verbose in [false, true] {
            let judged = Format::ALL.iter().map(|format| (*format, Some(&rules)));
            for (format, rules) in judged.chain([(Format::Human, None)]) {
                let report = rendered(&hostile_image(), &hostile_facts(), rules, format, &style(width, verbose));
                // RFC 4180 ends the lines of CSV like this.
                let report = if format == Format::Csv { report.replace("\r\n", "\n") } else { report };
                assert!(!report.contains(|c: char| c.is_control() && c != '\n'), "{report:?}");
                assert!(!report.contains(['\u{202e}', '\u{2066}']), "{report:?}");
                for line in report.lines() {
                    let ours = format == Format::Github
                        && ["::error ", "::warning ", "::notice "].iter().any(|own| line.starts_with(own));
                    assert!(ours || !line.trim_start().starts_with("::"), "{line}");
                    assert!(!line.contains("##[") && !line.contains("##vso["), "{line}");
                }
            }
        }
    }
}

#[test]
fn line_breaks_in_values_are_escaped() {
    let mut facts = bad();
    facts.insert(key::IMAGE_ENV, Fact::seen(map(&[("NCCL_DEBUG", "INFO\nFAILED: no\tlines")]), []));
    let report = check(&facts, &style(80, false));
    assert!(
        report.contains("warning[env/debug-on]: NCCL_DEBUG=INFO\\nFAILED: no\\tlines is part of the image\n"),
        "{report}"
    );
}

#[test]
fn json_keeps_hostile_text_unchanged() {
    let text = rendered(&hostile_image(), &hostile_facts(), None, Format::Json, &style(80, false));
    let report: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(report["image"]["notes"][0], format!("::notice::h {HOSTILE}"));
}

#[test]
fn very_long_text_is_cut() {
    let mut facts = bad();
    let wide = "a\u{301}".repeat(100_000);
    let words = "字 ".repeat(50_000);
    facts.insert(key::IMAGE_LABELS, Fact::seen(map(&[("a", &wide), ("b", &words)]), []));
    let report = inspect(&facts, &style(80, false));
    assert!(report.lines().all(|line| line.chars().count() < 400), "{}", report.len());
    facts.insert(key::IMAGE_LABELS, Fact::seen(map(&[(&wide, &words), (&words, &wide)]), []));
    assert!(inspect(&facts, &style(80, true)).contains("\n  labels\n"));
}
