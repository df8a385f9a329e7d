//! What every medium offers, and how a reference names one.

use std::path::Path;

use crate::image::source::SourceError;

use super::plan::ImagePlan;
use super::scanned::ScannedLayer;
use super::target::Target;
use super::{ImageError, Request, ScanContext};

/// A place that holds images, opened: it is there, and none of its layers has been read.
pub(super) trait Medium {
    /// Where the images are, for reports: a transport and a place.
    fn name(&self) -> &str;

    /// Returns the requested images as their documents describe them.
    ///
    /// A stream has its documents behind its layers. It is read here, once, and [`Medium::scan`] then hands out what was
    /// scanned on the way.
    fn plans(&mut self, request: &Request, context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError>;

    /// Scans the layers of one of these images and returns them in its order. What concerns all of them becomes a note of the
    /// plan.
    fn scan(
        &self,
        plan: &mut ImagePlan,
        request: &Request,
        context: ScanContext<'_>,
    ) -> Result<Vec<ScannedLayer>, ImageError>;
}

/// Opens the medium that a target names.
type OpenTarget = fn(&Target, &Request) -> Result<Box<dyn Medium>, SourceError>;

/// A way to name a medium: `TRANSPORT:TARGET` (containers-transports(5)).
#[derive(Debug)]
pub struct Transport {
    /// What is typed before the target: `docker://`, `oci:`.
    pub prefix: &'static str,
    /// The target's form, for help: `PATH[:REF]`.
    pub syntax: &'static str,
    /// One line for help.
    pub description: &'static str,
    /// What a target is.
    pub kind: TransportKind,
    /// How a folder without a prefix is known to be a target; `None` where targets are no folders.
    pub(super) mark: Option<FolderMark>,
    /// Reads a target, or returns why it is none.
    pub(super) parse: fn(&str) -> Result<Target, String>,
    /// Opens a target. Reads documents at most.
    pub(super) open: OpenTarget,
}

/// What a folder of one medium has, and others do not.
#[derive(Debug)]
pub(super) struct FolderMark {
    /// For messages: what it shows, and by which files.
    pub(super) description: &'static str,
    /// Whether a folder has it.
    pub(super) is_in: fn(&Path) -> bool,
}

/// What the target of a transport is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportKind {
    /// The name of an image in a registry.
    Registry,
    /// The name of an image in an engine.
    Engine,
    /// A file.
    File,
    /// A folder.
    Folder,
}

impl Transport {
    /// Its name: `docker`, `oci-archive`.
    pub fn name(&self) -> &'static str {
        self.prefix.split(':').next().unwrap_or_default()
    }
}

impl TransportKind {
    /// Whether an image has a name there, and not a path.
    pub const fn is_by_name(self) -> bool {
        matches!(self, Self::Registry | Self::Engine)
    }

    /// For messages: a target of this kind.
    pub(super) const fn target(self) -> &'static str {
        match self {
            Self::Registry | Self::Engine => "the name of an image",
            Self::File => "a file",
            Self::Folder => "a folder",
        }
    }
}
