//! Metrics in Prometheus' text format, for the textfile collector of `node_exporter`. Labels name images by repository
//! and tag: a digest in a label would start a new series with each build.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Style;
use super::cluster::{ClusterReport, OddNode};
use super::collected::Collection;
use super::survey::Survey;
use image::reference::untagged;

/// Results of an image, each a value of the label `verdict`.
const RESULTS: [&str; 4] = ["pass", "incomplete", "fail", "error"];

pub(super) fn write(collection: &Collection, _: &Style, out: &mut dyn Write) -> io::Result<()> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    out.write_all(text(&collection.survey, now.as_secs()).as_bytes())
}

/// Metrics of an audit that was planned at this time, in seconds since 1970.
pub(super) fn write_audit(survey: &Survey, planned: u64, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(text(survey, planned).as_bytes())
}

/// Writes a metric of whole numbers: a series for each set of labels, which are pairs of a name and a value.
///
/// # Errors
/// The output fails.
pub fn write_metric<'l, const N: usize>(
    name: &str,
    help: &str,
    series: impl IntoIterator<Item = ([(&'l str, &'l str); N], usize)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut text = String::new();
    head(name, help, &mut text);
    for (labels, value) in series {
        let labels = labels.map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        let _ = writeln!(text, "{name}{{{}}} {value}", labels.join(","));
    }
    out.write_all(text.as_bytes())
}

/// Metrics of the nodes of a job.
pub(super) fn write_cluster(report: &ClusterReport, out: &mut dyn Write) -> io::Result<()> {
    let mut text = String::new();
    head("ncclcheck_cluster_verdict", "The verdict on the nodes of a job, in the label.", &mut text);
    let _ = writeln!(text, "ncclcheck_cluster_verdict{{verdict=\"{}\"}} 1", report.outcome().name());
    head("ncclcheck_cluster_nodes", "Number of nodes by the end of their program.", &mut text);
    for end in ["ended", "failed", "absent"] {
        let count = report.nodes.iter().filter(|node| node.end == end).count();
        let _ = writeln!(text, "ncclcheck_cluster_nodes{{end=\"{end}\"}} {count}");
    }
    head("ncclcheck_cluster_odd", "A node that differs from most, or a part of the network that is slow.", &mut text);
    for odd in &report.odd {
        let OddNode { kind, name, severity, .. } = odd;
        let labels = format!("kind=\"{kind}\",name=\"{}\",severity=\"{}\"", escaped(name), severity.name());
        let _ = writeln!(text, "ncclcheck_cluster_odd{{{labels}}} 1");
    }
    if let Some(network) = &report.network {
        let name = "ncclcheck_cluster_rail_bytes_per_second";
        head(name, "What a rail carries in one direction between sound nodes.", &mut text);
        for (rail, rate) in network.references.iter().enumerate() {
            let _ = rate.map(|rate| writeln!(text, "{name}{{rail=\"{rail}\"}} {rate}"));
        }
    }
    out.write_all(text.as_bytes())
}

fn text(survey: &Survey, now: u64) -> String {
    let mut text = String::new();
    verdicts(survey, &mut text);
    images(survey, &mut text);
    findings(survey, &mut text);
    head(
        "ncclcheck_last_run_timestamp_seconds",
        "Time when the last run ended, or the last audit was planned.",
        &mut text,
    );
    let _ = writeln!(text, "ncclcheck_last_run_timestamp_seconds {now}");
    head("ncclcheck_build_info", "The version of ncclcheck.", &mut text);
    let _ = writeln!(text, "ncclcheck_build_info{{version=\"{}\"}} 1", env!("CARGO_PKG_VERSION"));
    text
}

/// One series for each image: its verdict. Two images of one name are one series, with the worse verdict.
fn verdicts(survey: &Survey, text: &mut String) {
    let mut series: BTreeMap<String, &str> = BTreeMap::new();
    let rank = |word: &str| RESULTS.iter().position(|known| *known == word);
    for row in &survey.rows {
        let repository = untagged(&row.reference);
        let rest = row.reference.strip_prefix(repository).unwrap_or_default();
        let tag = rest.strip_prefix(':').unwrap_or_default().split('@').next().unwrap_or_default();
        let platform = row.platform.as_deref().unwrap_or_default();
        let labels = format!(
            "repository=\"{}\",tag=\"{}\",platform=\"{}\"",
            escaped(repository),
            escaped(tag),
            escaped(platform)
        );
        let word = row.word();
        series
            .entry(labels)
            .and_modify(|known| {
                if rank(known) < rank(word) {
                    *known = word;
                }
            })
            .or_insert(word);
    }
    head("ncclcheck_image_verdict", "The verdict on an image, in the label.", text);
    for (labels, word) in series {
        let _ = writeln!(text, "ncclcheck_image_verdict{{{labels},verdict=\"{word}\"}} 1");
    }
}

fn images(survey: &Survey, text: &mut String) {
    head("ncclcheck_images", "Number of images with a verdict.", text);
    for word in RESULTS {
        let count = survey.rows.iter().filter(|row| row.word() == word).count();
        let _ = writeln!(text, "ncclcheck_images{{verdict=\"{word}\"}} {count}");
    }
}

/// Number of images for each rule that fails, or has no answer and prevents a pass.
fn findings(survey: &Survey, text: &mut String) {
    let mut counts: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for finding in &survey.findings {
        let labels = format!(
            "rule=\"{}\",severity=\"{}\",owner=\"{}\"",
            escaped(&finding.rule.id),
            finding.word(),
            finding.owner.name()
        );
        counts.entry(labels).or_default().extend(&finding.images);
    }
    head("ncclcheck_findings", "Number of images in which a rule fails, or is unknown and prevents a pass.", text);
    for (labels, mut images) in counts {
        images.sort_unstable();
        images.dedup();
        let _ = writeln!(text, "ncclcheck_findings{{{labels}}} {}", images.len());
    }
}

fn head(name: &str, help: &str, text: &mut String) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
}

/// The value of a label (Prometheus, "Text format details").
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn label_values_are_escaped() {
        assert_eq!(escaped("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
    }
}
