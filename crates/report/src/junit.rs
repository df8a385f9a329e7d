//! JUnit XML: a suite for each image and area of rules, a case for each rule. Only outcomes that keep the verdict from
//! a pass are failures or errors, so that a service's colour agrees with the exit status.

use std::io::{self, Write};

use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::collected::{Collected, Collection};
use super::entry::{EntryState, RuleEntry};

pub(super) fn write(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let mut report = Report::new("ncclcheck");
    for image in &collection.images {
        report.add_test_suites(image.entries.chunk_by(|a, b| area(a) == area(b)).map(|entries| suite(entries, image)));
    }
    for (reference, why) in &collection.missing {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_type("missing").set_message(why);
        let mut suite = TestSuite::new(reference);
        suite.add_test_case(case("image", "could be checked", status));
        report.add_test_suite(suite);
    }
    let text = report.to_string().map_err(io::Error::other)?;
    // Jenkins' schema has no `skipped` attribute on the outermost element, which is the first with one in this text.
    out.write_all(text.replacen(&format!(" skipped=\"{}\"", report.skipped), "", 1).as_bytes())
}

fn area(entry: &RuleEntry) -> &str {
    entry.rule.id.split_once('/').map_or("", |(area, _)| area)
}

fn suite(entries: &[RuleEntry], image: &Collected) -> TestSuite {
    let area = entries.first().map_or("", area);
    let mut suite = TestSuite::new(format!("{area}: {}", image.name));
    suite.add_property(Property::new("image", &image.reference));
    suite.add_properties(image.digest.iter().map(|digest| Property::new("digest", digest)));
    suite.add_properties(image.platform.iter().map(|platform| Property::new("platform", platform)));
    suite.add_property(Property::new("verdict", image.verdict.name()));
    suite.add_properties(
        image.hosts.iter().map(|host| Property::new(format!("host {}", host.name), host.verdict.name())),
    );
    suite.add_test_cases(entries.iter().map(|entry| judged(entry, image)));
    suite
}

fn judged(entry: &RuleEntry, image: &Collected) -> TestCase {
    let on = if entry.hosts.is_empty() { String::new() } else { format!(" on {}", entry.hosts.join("; ")) };
    let name = format!("{}{on}", entry.rule.id);
    let text = || format!("{}\n\nwhy: {}\n\nfix:\n{}", entry.text(image), entry.rule.why.trim(), entry.fix.trim());
    let skipped = |why: String| {
        let mut status = TestCaseStatus::skipped();
        status.set_message(why);
        status
    };
    let stopped = |kind, message: String| {
        let mut status = TestCaseStatus::non_success(kind);
        status.set_type(entry.rule.severity.name()).set_message(message).set_description(text());
        status
    };
    let status = match &entry.state {
        EntryState::Passed => TestCaseStatus::success(),
        EntryState::Failed if entry.counts => stopped(NonSuccessKind::Failure, entry.message.clone()),
        EntryState::Failed => {
            let mut case = case(area(entry), &name, TestCaseStatus::success());
            case.set_system_out(format!("{}: {}", entry.rule.severity.name(), text()));
            return case;
        }
        EntryState::Unknown if entry.counts => stopped(NonSuccessKind::Error, format!("unknown: {}", entry.message)),
        EntryState::Unknown => skipped(format!("unknown: {}", entry.message)),
        EntryState::NotApplicable => skipped("not applicable".to_owned()),
        EntryState::Consequence { cause } => skipped(format!("follows from {cause}: {}", entry.message)),
        EntryState::Waived { reason, terms, .. } => skipped(format!("waived: {reason} ({terms}): {}", entry.message)),
    };
    case(area(entry), &name, status)
}

fn case(class: &str, name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(name, status);
    case.set_classname(class);
    case
}
