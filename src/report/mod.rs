//! Renders what was found. Renderers format, they never decide: one file each, one line in [`Format`].

mod difference;
mod explain;
mod human;
pub mod json;
pub mod pages;
mod verdict;

use std::io::{self, Write};

use crate::facts::Facts;
use crate::host::Record;
use crate::model::{Digest, Host, Owner, Platform, Severity};
use crate::probe::recording::Recording;
use crate::rules::Judgement;

pub use difference::{Difference, Side};
pub use explain::Explanation;
pub use human::Style;
pub use verdict::Verdict;

/// All that a report tells of one image.
#[derive(Debug)]
pub struct Report<'a> {
    /// The image and its layers.
    pub image: &'a ImageSummary,
    /// The host that it was judged for, if for one.
    pub host: Option<&'a Host>,
    /// What was read.
    pub facts: &'a Facts,
    /// What the rules say of it; `None` where nobody asked them (`inspect`).
    pub judgements: Option<&'a [Judgement<'a>]>,
    /// Findings from this severity on make the verdict a failure.
    pub fail_on: Severity,
    /// Findings of others make no failure.
    pub fail_for: &'a [Owner],
    /// What became of the policy's waivers that changed nothing.
    pub notices: &'a [String],
    /// What was told by the image as it ran, if it did.
    pub probe: Option<&'a Recording>,
}

/// What was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSummary {
    /// What the user asked for.
    pub reference: String,
    /// Where it was found: a transport and a place, such as `docker://localhost:5000/torch:2.9.0`.
    pub source: String,
    /// Digest of its manifest, where it has one.
    pub manifest: Option<Digest>,
    /// Digest of its configuration: the image ID.
    pub config: Option<Digest>,
    /// The platform that was judged.
    pub platform: Option<Platform>,
    /// Layers with content, the lowest first. A site's layer is an index into these.
    pub layers: Vec<LayerSummary>,
    /// Build steps that made no layer, such as `ENV`, as the builder wrote them.
    pub empty_steps: Vec<String>,
    /// Things worth a word that change nothing: a media type that lies, an attestation that was passed over.
    pub notes: Vec<String>,
}

/// One layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayerSummary {
    /// Digest of the blob as stored, where the medium tells it.
    pub digest: Option<Digest>,
    /// Digest of the tar inside, as the configuration has it.
    pub diff_id: Option<Digest>,
    /// `none`, `gzip` or `zstd`.
    pub compression: &'static str,
    /// Bytes as stored.
    pub size: u64,
    /// Bytes of the tar inside.
    pub unpacked: u64,
    /// Entries of the tar.
    pub entries: usize,
    /// The build step that made it (`created_by` of its history), as the builder wrote it.
    pub history: Option<String>,
}

impl LayerSummary {
    /// What it is called in reports: the digest of the blob, else of the tar inside.
    fn name(&self) -> Option<&Digest> {
        self.digest.as_ref().or(self.diff_id.as_ref())
    }
}

/// The forms of a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// For people.
    Human,
    /// For programs: one JSON object on one line.
    Json,
}

impl Format {
    /// Writes the reports on one image: one, or one for each host. `style` is for people's eyes only.
    pub fn write(self, reports: &[Report<'_>], style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match self {
            Self::Human => human::write(reports, style, out),
            Self::Json => reports.iter().try_for_each(|report| json::write(report, out)),
        }
    }
}

impl Report<'_> {
    /// What all judgements come to; `None` where there are none.
    pub fn verdict(&self) -> Option<Verdict> {
        self.judgements.map(|judgements| Verdict::of(judgements, self.fail_on, self.fail_for))
    }
}

/// What a machine says of itself, for people.
pub fn machine(record: &Record, style: &Style) -> io::Result<String> {
    let mut page = Vec::new();
    human::machine(record, style, &mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

#[cfg(test)]
mod tests;
