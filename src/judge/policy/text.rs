//! A policy file as text. It is read before the images, because it may say how to read them; its rules are compiled
//! while the images are read.

use std::path::{Path, PathBuf};

use crate::document::{Document, DocumentError, FileError, read_text};
use crate::model::Limits;

use super::{ImagePatterns, PolicyLayer};

/// A policy file that was read.
#[derive(Clone, Debug)]
pub struct PolicyText {
    /// The path as given.
    pub path: PathBuf,
    /// The path, for messages.
    name: String,
    text: String,
}

impl PolicyText {
    /// Reads a file.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = read_text(path, &Limits::default())?;
        Ok(Self { path: path.to_owned(), name: path.display().to_string(), text })
    }

    /// The text, with its name.
    pub(crate) fn document(&self) -> Document<'_> {
        Document { name: &self.name, text: &self.text }
    }

    /// Names of images that the policy trusts: they are judged by their tables of contents.
    pub fn in_part(&self) -> Result<ImagePatterns, DocumentError> {
        let layer = PolicyLayer::read(self.document())?;
        ImagePatterns::read(&layer.file.in_part, self.document())
    }
}
