//! HTML: one page that loads nothing and is complete without a script. On one image it has the findings, the layers, the
//! loader's path to NCCL and the results of a run; on several images the causes, and a table.
//!
//! Every text passes through maud, which escapes it. A text from outside is never an attribute but as a number or, of a
//! reference, as an address that begins with `https://` or `http://`.

mod bandwidth;
mod causes;
mod cluster;
mod findings;
mod layers;
mod loader;
mod many;
mod page;
mod pairs;
mod probe;
mod svg;
mod tables;
mod timeline;
mod topology;

use std::io::{self, Write};

use maud::{Markup, html};

use super::cluster::ClusterReport;
use super::collected::{Collected, Collection, ImagePage};
use super::plain_text::clean;
use super::survey::Survey;
use super::{Report, Style};
use model::counted;

/// The page on an image, from its reports: one, or one for each host.
pub(super) fn page(reports: &[Report<'_>], image: &Collected) -> Option<ImagePage> {
    let report = reports.first()?;
    let verdict = image.counts.verdict(image.verdict, image.verdict.name());
    let title = format!("{verdict}: {}", image.heading);
    Some(ImagePage { title, body: one(report, image).into_string() })
}

pub(super) fn write(collection: &Collection, _: &Style, out: &mut dyn Write) -> io::Result<()> {
    if let Some(page) = &collection.page {
        return page::write(&page.title, &maud::PreEscaped(page.body.clone()), out);
    }
    write_many(&collection.survey, out)
}

/// The page on several images.
pub(super) fn write_many(survey: &Survey, out: &mut dyn Write) -> io::Result<()> {
    let title = format!("ncclcheck: {}", counted(survey.rows.len(), "image", "images"));
    page::write(&title, &many::body(survey), out)
}

/// Writes one page with tables of the same columns, each with a title. Tables without rows are left out.
///
/// # Errors
/// The output fails.
pub fn write_tables<const N: usize>(
    title: &str,
    lines: impl Iterator<Item = String>,
    columns: [&str; N],
    tables: impl Iterator<Item = (&'static str, Vec<[String; N]>)>,
    out: &mut dyn Write,
) -> io::Result<()> {
    page::write(&clean(title), &tables::body(title, lines, columns, tables), out)
}

/// The page on the nodes of a job.
pub(super) fn write_cluster(report: &ClusterReport, out: &mut dyn Write) -> io::Result<()> {
    page::write("ncclcheck cluster", &cluster::body(report), out)
}

/// The page on one image.
fn one(report: &Report<'_>, image: &Collected) -> Markup {
    html! {
        header {
            h1 { (page::verdict(image.verdict, &image.counts)) " " (image.reference) }
            p.dim {
                @if let Some(platform) = &image.platform { (platform) " " }
                @if let Some(digest) = &image.digest { code { (digest) } }
            }
            (overview(image))
        }
        main {
            (findings::all(image))
            @if let Some(recording) = report.probe { (probe::sections(recording, report.facts)) }
            @if !report.image.layers.is_empty() {
                (layers::section(report))
                (loader::section(report.facts))
            }
            (judged(report, image))
        }
    }
}

/// The verdicts for hosts, and the main facts.
fn overview(image: &Collected) -> Markup {
    html! {
        @if !image.hosts.is_empty() {
            ul.hosts {
                @for host in &image.hosts {
                    li { (page::verdict(host.verdict, &host.counts)) " for " (host.name) }
                }
            }
        }
        dl.facts {
            @for (name, text) in &image.facts {
                dt { (name) }
                dd { (text) }
            }
        }
    }
}

/// What the verdict rests on: the rules and the policy, what was not read, and the notes.
fn judged(report: &Report<'_>, image: &Collected) -> Markup {
    let notes =
        report.image.notes.iter().map(|note| clean(note)).chain(image.notices.iter().chain(&image.unread).cloned());
    html! {
        section {
            h2 { "What the verdict rests on" }
            ul {
                @if let Some(rules) = report.rules { li { "Judged by " (clean(&rules.to_string())) } }
                @for note in notes { li { (note) } }
                @if let Some(run) = report.run { li { "Run of " (clean(&run.time)) ", " (clean(&run.command)) } }
                @if let Some(sandbox) = report.run.and_then(|run| run.sandbox.as_ref()) {
                    li { "The sandbox was " (clean(&sandbox.to_string())) }
                }
            }
        }
    }
}
