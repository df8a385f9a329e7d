//! Renders reports. A renderer formats and never decides; each format is one file and one line in [`Format`].

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests read files of this repository"))]

mod audited;
mod cluster;
mod collected;
mod counts;
mod csv;
mod difference;
mod entry;
mod explain;
mod fix_text;
mod github;
mod gitlab;
mod html;
mod human;
pub mod json;
mod junit;
mod location;
mod markdown;
mod measured;
mod network;
mod offer;
pub mod pages;
mod plain_text;
mod prometheus;
mod provenance;
mod run;
mod sarif;
mod survey;
mod table;

use std::io::{self, Write};
use std::str::FromStr;

use facts::Facts;
use facts::machine::Host;
use facts::machine::Record;
use image::dockerfile::Dockerfile;
use judge::rules::Judgement;
use judge::{RulesInForce, Verdict};
use model::{FailOn, ImageSummary, Owner};
use probe::recording::Recording;

pub use audited::{AuditedFinding, AuditedImage, AuditedLayer, AuditedResult};
pub use cluster::{
    CLUSTER_SCHEMA, ClusterNode, ClusterReport, NodeDifference, NodeFinding, NodeGap, NodeGroup, OddNode,
};
pub use collected::Collection;
use collected::PageFn;
pub use csv::record as csv_record;
pub use difference::write_difference;
pub use explain::Explanation;
pub use html::write_tables;
pub use human::Style;
pub use json::stored::{REPORT_FORM, Stored, StoredError, StoredReport, StoredRules};
pub use json::{SCHEMA, VERDICT_SCHEMA};
pub use location::relative;
pub use network::{
    NetworkCause, NetworkPart, NetworkPort, NetworkReport, NetworkTest, NetworkTogether, NetworkWrites, SlowRail,
    TogetherBusbw, rate,
};
pub use offer::{Offer, OfferState};
pub use prometheus::write_metric;
pub use run::{ReportRun, Unopened};

/// The content of a report on one image.
#[derive(Debug)]
pub struct Report<'a> {
    /// The image and its layers.
    pub image: &'a ImageSummary,
    /// The host that the image was judged for, if any.
    pub host: Option<&'a Host>,
    /// The facts that were read.
    pub facts: &'a Facts,
    /// One judgement for each rule; `None` if no rules were evaluated (`inspect`).
    pub judgements: Option<&'a [Judgement<'a>]>,
    /// Lowest severity that makes the verdict a failure.
    pub fail_on: FailOn,
    /// Owners whose findings count; findings of other owners do not make the verdict a failure.
    pub fail_for: &'a [Owner],
    /// Notices about the policy and the baseline, such as unused waivers.
    pub notices: &'a [String],
    /// The recording of the image's run, if it ran.
    pub probe: Option<&'a Recording>,
    /// The rules and policies that judged, if any did.
    pub rules: Option<&'a RulesInForce>,
    /// What was asked for, if a command made the report.
    pub run: Option<&'a ReportRun>,
    /// The Dockerfile of the image, in whose lines findings are located.
    pub dockerfile: Option<&'a Dockerfile>,
}

/// Writes the reports on one image: one, or one for each host.
type EachFn = fn(&[Report<'_>], &Style, &mut dyn Write) -> io::Result<()>;
/// Writes that an image could not be opened.
type UnopenedFn = fn(&Unopened, &mut dyn Write) -> io::Result<()>;
/// Writes one document on all images.
type DocumentFn = fn(&Collection, &mut dyn Write) -> io::Result<()>;
/// Writes a row for each image.
type RowsFn = fn(&Collection, &Style, &mut dyn Write) -> io::Result<()>;

/// The functions that write a format.
#[derive(Clone, Copy)]
struct Rendering {
    /// Called for each image.
    each: Option<EachFn>,
    /// Called for each image that could not be opened.
    unopened: Option<UnopenedFn>,
    /// Called at the end.
    last: LastPart,
}

/// What is written at the end of a run, and what must be kept of each image for it.
#[derive(Clone, Copy)]
enum LastPart {
    Nothing,
    /// The entries of rules with a problem, and rows.
    Problems(DocumentFn),
    /// The entries of all rules.
    Entries(DocumentFn),
    /// A row.
    Rows(RowsFn),
}

impl Rendering {
    const fn each(each: EachFn) -> Self {
        Self { each: Some(each), unopened: None, last: LastPart::Nothing }
    }

    const fn last(last: LastPart) -> Self {
        Self { each: None, unopened: None, last }
    }

    const fn or(self, unopened: UnopenedFn) -> Self {
        Self { unopened: Some(unopened), ..self }
    }

    const fn then(self, last: LastPart) -> Self {
        Self { last, ..self }
    }
}

macro_rules! formats {
    ($($about:literal $variant:ident $name:literal $form:expr;)*) => {
        /// Formats of a report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = $about] $variant,)*
        }

        impl Format {
            /// All formats.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Name of the format on the command line.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            const fn form(self) -> Rendering {
                match self {
                    $(Self::$variant => $form,)*
                }
            }
        }
    };
}

formats! {
    "Text for people." Human "human" Rendering::each(human::write).then(LastPart::Rows(human::finish));
    "A table of images, for people." Table "table" Rendering::last(LastPart::Rows(table::write));
    "JSON for programs: one object on one line for each report." Json "json" Rendering::each(json::write).or(json::write_unopened);
    "CSV: one record for each image." Csv "csv" Rendering::last(LastPart::Rows(csv::write));
    "SARIF 2.1.0 for code scanning." Sarif "sarif" Rendering::last(LastPart::Problems(sarif::write));
    "JUnit XML for CI services that show tests." Junit "junit" Rendering::last(LastPart::Entries(junit::write));
    "Workflow commands that make annotations on GitHub." Github "github" Rendering::last(LastPart::Problems(github::write));
    "Code quality report for GitLab." Gitlab "gitlab" Rendering::last(LastPart::Problems(gitlab::write));
    "Markdown for comments and summaries." Markdown "markdown" Rendering::last(LastPart::Problems(markdown::write));
    "HTML: one page that loads nothing, for people." Html "html" Rendering::last(LastPart::Rows(html::write));
    "Metrics for Prometheus' textfile collector." Prometheus "prometheus" Rendering::last(LastPart::Rows(prometheus::write));
    "in-toto statements for others to sign: one on one line for each image." InToto "in-toto" Rendering::each(json::in_toto::write);
}

impl Format {
    /// Formats for every command; the others show only judgements of images.
    pub const GENERAL: &[Self] = &[Self::Human, Self::Json];

    /// Formats of the comparison of two images.
    pub const OF_DIFFERENCE: &[Self] = &[Self::Human, Self::Json, Self::Github, Self::Markdown];

    /// Formats of all verdicts, also on jobs and of stored reports: a statement is made by the run that judged an image.
    pub fn of_verdicts() -> Vec<Self> {
        Self::ALL.iter().copied().filter(|format| *format != Self::InToto).collect()
    }

    /// Maximum images in one document of this format, if there is one.
    pub const fn most_images(self) -> Option<usize> {
        match self {
            Self::Sarif => Some(sarif::RUNS),
            _ => None,
        }
    }

    /// Returns true if the reports are written image by image, false if the format is one document on all images.
    pub fn is_by_image(self) -> bool {
        self.form().each.is_some()
    }

    /// Why this format cannot have the reports on an image; `None` if it can.
    pub fn refusal(self, image: &ImageSummary) -> Option<String> {
        if self == Self::InToto { json::in_toto::refusal(image) } else { None }
    }

    /// Returns true if no file is left that has the report on no image.
    pub fn is_left_out_if_empty(self) -> bool {
        self == Self::InToto
    }

    /// Returns true if the format has a row for each image.
    fn needs_rows(self) -> bool {
        matches!(self.form().last, LastPart::Rows(_) | LastPart::Problems(_))
    }

    /// What makes the page on an image that is the only one, in a format that has more on it.
    fn page(self) -> Option<PageFn> {
        (self == Self::Html).then_some(html::page as PageFn)
    }

    /// Returns true if the format has an entry for each problem of each image.
    fn needs_entries(self) -> bool {
        matches!(self.form().last, LastPart::Problems(_) | LastPart::Entries(_))
    }

    /// Returns true if the format has an entry for each rule, whatever its outcome.
    fn needs_passes(self) -> bool {
        matches!(self.form().last, LastPart::Entries(_))
    }

    /// Writes the reports on one image, one for each host if there are hosts. Formats that are one document on all
    /// images write nothing. `style` affects only [`Format::Human`] and [`Format::Table`].
    pub fn write(self, reports: &[Report<'_>], style: &Style, out: &mut dyn Write) -> io::Result<()> {
        self.form().each.map_or(Ok(()), |write| write(reports, style, out))
    }

    /// Writes that an image could not be opened, in formats that are written image by image and have a place for it.
    pub fn write_unopened(self, image: &Unopened, out: &mut dyn Write) -> io::Result<()> {
        self.form().unopened.map_or(Ok(()), |write| write(image, out))
    }

    /// Writes the document on all images, or what follows the reports on each of them. The images must be
    /// [named](Collection::name).
    pub fn finish(self, collection: &Collection, style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match self.form().last {
            LastPart::Nothing => Ok(()),
            LastPart::Problems(write) | LastPart::Entries(write) => write(collection, out),
            LastPart::Rows(write) => write(collection, style, out),
        }
    }
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|format| format.name() == text);
        found.copied().ok_or_else(|| format!("there is no format '{text}'"))
    }
}

impl Report<'_> {
    /// The verdict on the image; `None` without judgements.
    pub fn verdict(&self) -> Option<Verdict> {
        self.judgements.map(|judgements| Verdict::of(judgements, self.fail_on, self.fail_for))
    }
}

/// Renders what a machine offers for people.
pub fn offers(offers: &[Offer], style: &Style) -> io::Result<String> {
    let mut page = Vec::new();
    human::offers(offers, style, &mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Renders a host record for people.
pub fn machine(record: &Record, style: &Style) -> io::Result<String> {
    let mut page = Vec::new();
    human::machine(record, style, &mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests;
