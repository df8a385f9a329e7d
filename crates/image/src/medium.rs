//! The interface that every medium implements, and the transports that name media.

use std::path::Path;

use crate::source::SourceError;

use super::needs::PlaceNeeds;
use super::plan::ImagePlan;
use super::scanned::ScannedLayers;
use super::target::Target;
use super::{ImageError, Request, ScanContext};

/// An opened place that holds images: it exists, and none of its layers has been read.
pub(super) trait Medium {
    /// Transport and place, for reports.
    fn name(&self) -> &str;

    /// The reference of this place, to which `@DIGEST` adds the choice of an image; `None` where a reference cannot
    /// choose by digest.
    fn place(&self) -> Option<String> {
        None
    }

    /// The place that serves the image in place of the one in [`Medium::name`].
    fn served_by(&self) -> Option<&str> {
        None
    }

    /// Plans the requested images from their documents.
    ///
    /// A stream stores its documents after its layers. It is read here, once, and [`Medium::scan`] then returns the
    /// scans made on the way.
    fn plans(&mut self, request: &Request, context: ScanContext<'_>) -> Result<Vec<ImagePlan>, ImageError>;

    /// Scans the layers of one planned image and returns them in order. Remarks on all layers become notes of the plan.
    fn scan(&self, plan: &mut ImagePlan, request: &Request, context: ScanContext<'_>) -> ScannedLayers;
}

/// Opens the medium that a target names.
type OpenTarget = fn(&Target, &Request) -> Result<Box<dyn Medium>, SourceError>;

/// A way to name a medium: `TRANSPORT:TARGET` (containers-transports(5)).
#[derive(Debug)]
pub struct Transport {
    /// The text before the target: `docker://`, `oci:`.
    pub prefix: &'static str,
    /// The target's syntax, for help: `PATH[:REF]`.
    pub syntax: &'static str,
    /// One line of help.
    pub description: &'static str,
    /// The kind of target.
    pub kind: TransportKind,
    /// Detects folders that are targets without a prefix; `None` if targets are not folders.
    pub(super) mark: Option<FolderMark>,
    /// What a target needs of this machine.
    pub(super) needs: PlaceNeeds,
    /// Parses a target, or returns the reason why it is invalid.
    pub(super) parse: fn(&str) -> Result<Target, String>,
    /// Opens a target. Reads documents at most.
    pub(super) open: OpenTarget,
}

/// A mark by which folders of one medium are detected.
#[derive(Debug)]
pub(super) struct FolderMark {
    /// The content that the mark shows, and its files, for messages.
    pub(super) description: &'static str,
    /// Returns true if the folder has the mark.
    pub(super) is_in: fn(&Path) -> bool,
}

/// The kind of a transport's target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    /// The transport's name: `docker`, `oci-archive`.
    pub fn name(&self) -> &'static str {
        self.prefix.split(':').next().unwrap_or_default()
    }
}

impl TransportKind {
    /// Returns true if targets are image names, not paths.
    pub const fn is_by_name(self) -> bool {
        matches!(self, Self::Registry | Self::Engine)
    }

    /// A target of this kind, for messages.
    pub(super) const fn target(self) -> &'static str {
        match self {
            Self::Registry | Self::Engine => "the name of an image",
            Self::File => "a file",
            Self::Folder => "a folder",
        }
    }
}
