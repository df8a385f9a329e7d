//! Renders what was found. Renderers format, they never decide: one file each, one line in [`Format`].

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

use crate::facts::Facts;
use crate::host::Record;
use crate::judge::Verdict;
use crate::judge::rules::Judgement;
use crate::model::{Host, ImageSummary, Owner, Severity};
use crate::probe::recording::Recording;

pub use collected::Collection;
pub use difference::write_difference;
pub use explain::Explanation;
pub use human::Style;
pub(crate) use location::relative;

/// All that a report tells of one image.
#[derive(Debug)]
#[non_exhaustive]
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

/// How a form comes to be.
enum Rendering {
    /// From the reports on one image after the other.
    Each(fn(&[Report<'_>], &Style, &mut dyn Write) -> io::Result<()>),
    /// From all of them at once: it is one document.
    Whole(fn(&Collection, &mut dyn Write) -> io::Result<()>),
}

macro_rules! formats {
    ($($about:literal $variant:ident $name:literal $form:expr;)*) => {
        /// The forms of a report.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Format {
            $(#[doc = $about] $variant,)*
        }

        impl Format {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// What it is called on the command line.
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
    "For people." Human "human" Rendering::Each(human::write);
    "For programs: one JSON object on one line for each report." Json "json" Rendering::Each(json::write);
    "For code scanning: SARIF 2.1.0." Sarif "sarif" Rendering::Whole(sarif::write);
    "For CI services that show tests: JUnit XML." Junit "junit" Rendering::Whole(junit::write);
    "For GitHub: workflow commands that make annotations." Github "github" Rendering::Whole(github::write);
    "For GitLab: code quality report." Gitlab "gitlab" Rendering::Whole(gitlab::write);
    "For comments and summaries: Markdown." Markdown "markdown" Rendering::Whole(markdown::write);
}

impl Format {
    /// Those that show anything; the others know judgements of images alone.
    pub const GENERAL: &[Self] = &[Self::Human, Self::Json];

    /// Writes the reports on one image, one or one for each host, if this form is written piece by piece. `style` is for
    /// people's eyes only.
    pub fn write(self, reports: &[Report<'_>], style: &Style, out: &mut dyn Write) -> io::Result<()> {
        match self.form() {
            Rendering::Each(write) => write(reports, style, out),
            Rendering::Whole(_) => Ok(()),
        }
    }

    /// Writes the document on all images, if this form is one.
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
        found.copied().ok_or_else(|| format!("there is no form '{text}'"))
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
