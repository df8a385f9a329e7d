//! Renders reports. A renderer formats and never decides; each format is one file and one line in [`Format`].

mod collected;
mod difference;
mod explain;
mod fix_text;
mod github;
mod gitlab;
mod human;
pub(crate) mod json;
mod junit;
mod location;
mod markdown;
pub mod pages;
mod plain_text;
mod sarif;

use std::io::{self, Write};
use std::str::FromStr;

use crate::doctor::Offer;
use crate::facts::Facts;
use crate::host::Record;
use crate::judge::Verdict;
use crate::judge::rules::Judgement;
use crate::model::{FailOn, Host, ImageSummary, Owner};
use crate::probe::recording::Recording;

pub use collected::Collection;
pub use difference::write_difference;
pub use explain::Explanation;
pub use human::Style;
pub(crate) use location::relative;

/// The content of a report on one image.
#[derive(Debug)]
#[non_exhaustive]
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
}

/// The function that writes a format.
enum Rendering {
    /// Writes the reports on one image; called for each image.
    Each(fn(&[Report<'_>], &Style, &mut dyn Write) -> io::Result<()>),
    /// Writes one document on all images.
    Whole(fn(&Collection, &mut dyn Write) -> io::Result<()>),
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
    "Text for people." Human "human" Rendering::Each(human::write);
    "JSON for programs: one object on one line for each report." Json "json" Rendering::Each(json::write);
    "SARIF 2.1.0 for code scanning." Sarif "sarif" Rendering::Whole(sarif::write);
    "JUnit XML for CI services that show tests." Junit "junit" Rendering::Whole(junit::write);
    "Workflow commands that make annotations on GitHub." Github "github" Rendering::Whole(github::write);
    "Code quality report for GitLab." Gitlab "gitlab" Rendering::Whole(gitlab::write);
    "Markdown for comments and summaries." Markdown "markdown" Rendering::Whole(markdown::write);
}

impl Format {
    /// Formats for every command; the others show only judgements of images.
    pub const GENERAL: &[Self] = &[Self::Human, Self::Json];

    /// Formats of the comparison of two images.
    pub const OF_DIFFERENCE: &[Self] = &[Self::Human, Self::Json, Self::Github, Self::Markdown];

    /// Maximum images in one document of this format, if there is one.
    pub const fn most_images(self) -> Option<usize> {
        match self {
            Self::Sarif => Some(sarif::RUNS),
            _ => None,
        }
    }

    /// Returns true if the reports are written image by image, false if the format is one document on all images.
    pub const fn is_by_image(self) -> bool {
        matches!(self.form(), Rendering::Each(_))
    }

    /// Writes the reports on one image, one for each host if there are hosts. Formats that are one document on all
    /// images write nothing. `style` affects only [`Format::Human`].
    pub fn write(self, reports: &[Report<'_>], style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match self.form() {
            Rendering::Each(write) => write(reports, style, out),
            Rendering::Whole(_) => Ok(()),
        }
    }

    /// Writes the document on all images. Formats that are written image by image write nothing.
    pub fn finish(self, collection: &Collection, out: &mut dyn Write) -> io::Result<()> {
        match self.form() {
            Rendering::Each(_) => Ok(()),
            Rendering::Whole(write) => write(collection, out),
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
