//! Records as files.

use super::Record;
use crate::document::{Document, DocumentError, to_yaml};

impl Record {
    /// Reads a record in JSON or YAML.
    pub fn parse(document: Document<'_>) -> Result<Self, DocumentError> {
        // JSON is YAML too.
        document.parse()
    }

    /// The record in YAML.
    ///
    /// # Errors
    ///
    /// What of the record YAML cannot tell.
    pub fn to_yaml(&self) -> Result<String, String> {
        to_yaml(self)
    }
}
