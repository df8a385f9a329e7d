//! Markdown for a pull-request comment or a workflow summary, in GitHub's dialect, which GitLab also reads.
//!
//! Values from an image appear only in code spans, where no text is markup, a link or a mention.

use std::io::{self, Write};

use super::Verdict;
use super::collected::{Collected, Collection};
use super::entry::{EntryState, RuleEntry};
use super::fix_text::{self, one_line};
use super::measured::MeasuredTable;
use super::plain_text::short;
use super::survey::{Survey, SurveyFinding};
use model::{Severity, counted};

/// Maximum characters of the text. GitHub allows 65,536 in a comment; the rest is left for text around the report.
const LONGEST: usize = 64_000;
/// Maximum characters of a value.
const VALUE: usize = 400;
/// Maximum images named for one finding.
const NAMED: usize = 10;
/// Characters kept free for the last line.
const RESERVE: usize = 200;

/// Text of bounded length. A section is included whole or not at all.
#[derive(Default)]
pub(super) struct MarkdownText {
    written: String,
    length: usize,
    left_out: usize,
}

impl MarkdownText {
    pub(super) fn section(&mut self, section: &str) {
        let length = section.chars().count();
        // Once a section is left out, so are all later ones, which matter less.
        if self.left_out > 0 || self.length + length + RESERVE > LONGEST {
            self.left_out += 1;
            return;
        }
        self.written.push_str(section);
        self.length += length;
    }

    pub(super) fn finish(mut self) -> String {
        if self.left_out > 0 {
            let parts = counted(self.left_out, "more part", "more parts");
            let note =
                format!("\n**{parts} of this report left out**: the text is limited to the size of a comment.\n");
            self.written.push_str(&note);
        }
        self.written
    }
}

pub(super) fn write(collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
    let mut text = MarkdownText::default();
    for (reference, why) in &collection.missing {
        text.section(&format!("### ❌ {} could not be checked\n\n{}\n\n", code(reference), code(why)));
    }
    match &*collection.images {
        [image] => about(image, &mut text),
        images => several(images, &collection.survey, &mut text),
    }
    out.write_all(text.finish().as_bytes())
}

/// Writes a table of images, the worst first, and each finding once, the worst first: there may be no room for the rest.
fn several(images: &[Collected], survey: &Survey, text: &mut MarkdownText) {
    let mut sorted: Vec<_> = images.iter().collect();
    sorted.sort_by_key(|image| std::cmp::Reverse(image.verdict));
    if !sorted.is_empty() {
        text.section("| image | verdict |\n| --- | --- |\n");
    }
    for image in &sorted {
        let (mark, word) = sign(image.verdict);
        let word = image.counts.verdict(image.verdict, word);
        text.section(&format!("| {} | {mark} {word}: {} |\n", cell(&image.heading), counts(image)));
    }
    text.section("\n");
    for finding in survey.worst_findings() {
        text.section(&shared_finding(finding, survey));
    }
    let mut notices: Vec<_> = images.iter().flat_map(|image| &image.notices).collect();
    notices.sort();
    notices.dedup();
    let notices: Vec<_> = notices.into_iter().map(|notice| format!("- note: {}", code(notice))).collect();
    if !notices.is_empty() {
        text.section(&format!("{}\n\n", notices.join("\n")));
    }
}

/// A finding or a missing answer, and the images that have it.
fn shared_finding(finding: &SurveyFinding, survey: &Survey) -> String {
    let rule = &finding.rule;
    let heading = format!("<code>{}</code> {}", html(&rule.id), html(&rule.title));
    let count = counted(finding.images.len(), "image", "images");
    let summary = if finding.is_failure {
        format!("{} {}: {heading} ({count})", severity_mark(rule.severity), rule.severity.name())
    } else {
        format!("❔ unknown, not ruled out: {heading} ({count})")
    };
    let names = finding.images.iter().filter_map(|index| survey.rows.get(*index)).take(NAMED);
    let names: Vec<_> = names.map(|row| format!("- in {}", code(&row.reference))).collect();
    let more = finding.images.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("- and in {more} more"));
    let hosts = (!finding.hosts.is_empty()).then(|| format!("on {}", code(&finding.hosts.join("; "))));
    let images = names.into_iter().chain(more).collect::<Vec<_>>().join("\n");
    let mut body = vec![Some(code(&finding.message)), hosts, Some(images)];
    if finding.is_failure {
        body.push(Some(format!("**Owner:** {}", finding.owner.name())));
        body.push(Some(format!("**Why:** {}", one_line(&rule.why))));
        body.push(Some(format!("**Fix:**\n\n{}", fix_text::markdown(&finding.fix))));
    }
    folded(&summary, &body.into_iter().flatten().collect::<Vec<_>>().join("\n\n"))
}

fn about(image: &Collected, text: &mut MarkdownText) {
    let (mark, word) = sign(image.verdict);
    let word = image.counts.verdict(image.verdict, word);
    text.section(&format!("### {mark} {word}: {}\n\n{}\n\n{}", code(&image.heading), counts(image), table(image)));
    for entry in image.of_state(|state| *state == EntryState::Failed) {
        text.section(&finding(entry));
    }
    for entry in image.of_state(|state| *state == EntryState::Unknown) {
        text.section(&folded(&format!("❔ unknown, not ruled out: {}", heading(entry)), &finding_lines(entry)));
    }
    for entry in image.of_state(|state| matches!(state, EntryState::Consequence { .. })) {
        if let EntryState::Consequence { cause } = &entry.state {
            let body = format!("{}\n\nfollows from {}", finding_lines(entry), code(cause));
            text.section(&folded(&format!("↳ consequence: {}", heading(entry)), &body));
        }
    }
    for entry in image.of_state(|state| matches!(state, EntryState::Waived { .. })) {
        if let EntryState::Waived { reason, terms, .. } = &entry.state {
            let body = format!("{}\n\nwaived: {} ({})", finding_lines(entry), code(reason), code(terms));
            text.section(&folded(&format!("☑️ waived: {}", heading(entry)), &body));
        }
    }
    for table in &image.tables {
        text.section(&measured(table));
    }
    let notices: Vec<_> = image.notices.iter().map(|notice| format!("- note: {}", code(notice))).collect();
    if !notices.is_empty() {
        text.section(&format!("{}\n\n", notices.join("\n")));
    }
}

fn finding(entry: &RuleEntry) -> String {
    let note = entry.note.as_ref().map(|note| format!("note: {}", code(note)));
    let sites: Vec<_> = entry.sites.iter().map(|site| format!("- at {}", code(site))).collect();
    let sites = (!sites.is_empty()).then(|| sites.join("\n"));
    let why = format!("**Why:** {}", one_line(&entry.rule.why));
    let fix = format!("**Fix:**\n\n{}", fix_text::markdown(&entry.fix));
    let owner = format!("**Owner:** {}", entry.owner.name());
    let body: Vec<_> =
        [Some(finding_lines(entry)), note, sites, Some(owner), Some(why), Some(fix)].into_iter().flatten().collect();
    let mark = severity_mark(entry.rule.severity);
    folded(&format!("{mark} {}: {}", entry.rule.severity.name(), heading(entry)), &body.join("\n\n"))
}

/// The mark of a finding.
pub(super) const fn severity_mark(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "🔴",
        Severity::Warning => "🟡",
        Severity::Info => "🔵",
    }
}

/// A rule's id and title, which contain no text from an image.
fn heading(entry: &RuleEntry) -> String {
    format!("<code>{}</code> {}", html(&entry.rule.id), html(&entry.rule.title))
}

/// A collapsed section. Markdown inside HTML requires blank lines around it.
pub(super) fn folded(summary: &str, body: &str) -> String {
    format!("<details><summary>{summary}</summary>\n\n{}\n\n</details>\n\n", body.trim_end())
}

/// The entry's message, and its hosts if it differs between hosts.
fn finding_lines(entry: &RuleEntry) -> String {
    let message = code(&entry.message);
    if entry.hosts.is_empty() { message } else { format!("on {}\n\n{message}", code(&entry.hosts.join("; "))) }
}

/// A table of what a run measured.
fn measured(table: &MeasuredTable) -> String {
    let line = |cells: &[String]| {
        let cells = cells.iter().map(|text| if text.is_empty() { String::new() } else { cell(text) });
        format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
    };
    let columns = table.rows.first().map_or(0, Vec::len);
    let untitled = vec![String::new(); columns];
    let (head, rows) = match table.rows.split_first() {
        Some((first, rest)) if table.has_head => (first, rest),
        _ => (&untitled, &*table.rows),
    };
    let rows: String = rows.iter().map(|row| line(row)).collect();
    let notes: Vec<_> = table.notes.iter().map(|note| format!("\n- {}", code(note))).collect();
    let separator = " --- |".repeat(columns);
    format!("**{}**\n\n{}|{separator}\n{rows}{}\n", html(&table.title), line(head), notes.concat())
}

/// A table of the digest, the overview and the verdicts on the hosts.
fn table(image: &Collected) -> String {
    let digest = image.digest.iter().map(|digest| format!("| digest | {} |\n", cell(digest)));
    let facts = image.facts.iter().map(|(name, text)| format!("| {name} | {} |\n", cell(text)));
    let hosts = image.hosts.iter().map(|host| {
        let (mark, word) = sign(host.verdict);
        format!("| host {} | {mark} {} |\n", cell(&host.name), host.counts.verdict(host.verdict, word))
    });
    format!("| | |\n| --- | --- |\n{}\n", digest.chain(facts).chain(hosts).collect::<String>())
}

/// Number of rules with each outcome; those with problems are named beside the word of a pass.
fn counts(image: &Collected) -> String {
    let problems = if image.verdict == Verdict::Pass { String::new() } else { image.counts.problems() };
    let parts = [problems, image.counts.rest()];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

const fn sign(verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Pass => ("✅", "Passed"),
        Verdict::Fail => ("❌", "Failed"),
        Verdict::Incomplete => ("❔", "Incomplete"),
    }
}

/// A code span (CommonMark, section 6.1), whose fence is longer than any run of backticks in the text.
pub(super) fn code(text: &str) -> String {
    let text = short(text, VALUE);
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let blank = if text.starts_with(['`', ' ']) || text.ends_with(['`', ' ']) || text.is_empty() { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// A code span in a table. A pipe ends the cell even in a code span, unless exactly one backslash precedes it. Since a
/// code span cannot escape a backslash, another character stands for it.
fn cell(text: &str) -> String {
    code(text).replace('\\', "\u{29f5}").replace('|', "\\|")
}

pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
